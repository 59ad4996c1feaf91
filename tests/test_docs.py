"""README and docs/: every block is valid, every command has the options it is called with, and
every name and link exists.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from nmt.cli import all_commands, app
from nmt.commands.evaluate import EvaluateOptions
from nmt.commands.translate import TranslateOptions
from nmt.config.load import config_from_dict, load
from nmt.config.schema import Config
from nmt.config.section import section_of
from nmt.errors import ConfigError
from nmt.extras.analysis.command import AnalyzeOptions
from nmt.extras.augment.command import AugmentOptions
from scripts.reference_pages import PAGES as REFERENCE_PAGES
from tests.documentation import (
    ALL_BLOCKS,
    COMMANDS,
    PAGES,
    ROOT,
    SHELL,
    Block,
    anchors_of,
    command_lines,
    name_of,
    prose_of,
)

GROUP: Any = typer.main.get_command(app)
PARSERS: dict[str, Any] = {
    name: GROUP.get_command(None, name)
    for name, row in all_commands().items()
    if row.place and (not row.hidden or name == "schema")
}
OPTIONS: dict[str, Any] = {
    "analyze": AnalyzeOptions,
    "augment": AugmentOptions,
    "evaluate": EvaluateOptions,
    "translate": TranslateOptions,
}
USAGE_ERROR: Any = typer.BadParameter.__base__
KNOWN_LANGUAGES = {*SHELL, "text", "yaml", "python"}
TYPES = {
    name
    for path in (ROOT / "nmt").rglob("*.py")
    for name in re.findall(r"^(?:class )?(\w+)(?:\(|:| = Literal)", path.read_text("utf-8"), re.M)
}
SECTION = r"(?:data|tokenizer|vocabulary|model|training|decoding)"
NEW_PARTS = (
    "cosine",
)  # that the page "Add your own attention" adds; tests/test_docs_run.py runs its commands

GENERATED: dict[Path, Callable[[], str]] = {
    **{
        ROOT / "docs" / "reference" / f"{name}.md": cache(make)
        for name, make in REFERENCE_PAGES.items()
    },
    ROOT / "docs" / "notebook.md": lambda: (ROOT / "docs" / "notebook.ipynb").read_text(
        encoding="utf-8"
    ),
}

each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


def check(words: Sequence[str]) -> None:
    """Raise an error if the command line cannot work: an unknown program, option, key or value, or
    a missing file.
    """
    program, *arguments = words
    if program == "nmt":
        check_nmt(arguments)
    elif program in ("torchrun", "srun"):
        check(
            arguments[arguments.index("torchrun") :]
            if "torchrun" in arguments
            else arguments[arguments.index("-m") + 1 :]
        )
    elif program in ("python", "python3"):
        check_script(arguments)
    elif program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
        assert set(arguments) <= set(targets)
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "optional-dependencies"
        ]
        assert arguments[0] == "install"
        assert set(
            re.findall(r"\w+", " ".join(re.findall(r"\[(.*?)\]", " ".join(arguments))))
        ) <= set(extras)
    else:
        assert program in (".", "cd", "curl", "export", "tensorboard"), (
            f"{program}: tell the test how to check this program"
        )


def check_nmt(arguments: Sequence[str]) -> None:
    row = all_commands().get(arguments[0])
    n_words = 2 if row is not None and not row.place else 1
    name, rest = " ".join(arguments[:n_words]), list(arguments[n_words:])
    assert name in PARSERS, f"no command nmt {name}"
    values = PARSERS[name].make_context(f"nmt {name}", rest, parent=typer.Context(GROUP)).params
    if name in OPTIONS:
        OPTIONS[name](**values).check()
    path = values.get("config")
    if path is not None and len(path.parts) > 1:
        assert (ROOT / path).is_file(), f"{path}: no such file"
    settings = values.get("set_") or ()
    if settings and not any(part in setting for part in NEW_PARTS for setting in settings):
        known = path is not None and (ROOT / path).is_file()
        load(ROOT / (path if known else "configs/sample.yaml"), settings)


def check_script(arguments: Sequence[str]) -> None:
    if arguments[0] == "-m":
        assert arguments[1] == "venv"
        return
    path = re.sub(
        r"^runs/.*-onnx/", "nmt/extras/export/", arguments[0]
    )  # the translator of an exported run
    source = (ROOT / path).read_text(encoding="utf-8")
    for word in arguments[1:]:
        assert not word.startswith("-") or f'"{word}"' in source, (
            f"{arguments[0]}: no option {word}"
        )
    if settings := [value for option, value in pairwise(arguments) if option == "--set"]:
        config = next(
            (word for word in arguments if word.startswith("configs/")), "configs/sample.yaml"
        )
        load(ROOT / config, settings)


@pytest.mark.parametrize(
    ("page", "words"), COMMANDS, ids=lambda each: each if isinstance(each, str) else " ".join(each)
)
def test_command_is_valid(page: str, words: list[str]) -> None:
    check(words)


@pytest.mark.parametrize(
    "line",
    [
        "nmt trian -c configs/sample.yaml",
        "nmt train --config configs/missing.yaml",
        "nmt train -c configs/sample.yaml --fast",
        "nmt train -c configs/sample.yaml --set training.steps=3",
        "nmt train -c configs/sample.yaml --set training.epochs=many",
        "nmt translate --beam 0 hello",
        "nmt translate --align --n-best 3 hello",
        "torchrun --nproc-per-node 2 -m nmt train -c configs/missing.yaml",
        "python scripts/bench.py --rate 3",
        "python scripts/missing.py",
        "make coffee",
        "pip install -e .[missing]",
        "rm -rf runs",
    ],
)
def test_a_wrong_command_is_found(line: str) -> None:
    with pytest.raises((AssertionError, ConfigError, OSError, USAGE_ERROR)):
        check(line.split())


@pytest.mark.parametrize(
    "block",
    ALL_BLOCKS,
    ids=lambda block: f"{name_of(block.page)}: {block.text.splitlines()[0][:40]}",
)
def test_block_is_valid(block: Block) -> None:
    assert block.language in KNOWN_LANGUAGES
    if block.language == "yaml":
        value = yaml.safe_load(block.text)
        if isinstance(value, dict):
            config_from_dict(value)
        else:
            for step in value:
                for words in command_lines(Block(block.page, "", step.get("run", ""))):
                    check(words)
    elif block.language == "python" and not block.text.startswith(" "):
        compile(block.text, name_of(block.page), "exec")


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", prose_of(page)) + re.findall(r'src="([^"]+)"', text)
    for target in targets:
        if re.match(r"https?:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.is_file() or path in GENERATED, target
        if anchor:
            content = GENERATED[path]() if path in GENERATED else path.read_text(encoding="utf-8")
            assert anchor in anchors_of(content), target


@each_page
def test_names_exist(page: Path) -> None:
    """Classes, files of the project, configuration keys and options that the text names in code
    style.
    """
    for code in re.findall(r"`([^`\n]+)`", prose_of(page)):
        if re.fullmatch(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+", code):
            assert code in TYPES
        if re.fullmatch(r"(?:nmt|configs|scripts|tests)/[\w/.-]+\.\w+", code):
            assert (ROOT / code).exists(), code
        if match := re.match(rf"{SECTION}(?:\.\w+)+", code):
            assert has_key(match[0]), code
        if match := re.match(r"nmt ([a-z]+)", code):
            assert match[1] in all_commands(), code
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", code):
            assert option in ALL_OPTIONS, code


def has_key(dotted: str) -> bool:
    section: Any = Config
    for key in dotted.split("."):
        if section is None or key not in section.model_fields:
            return False
        section = section_of(section, key)
    return True


ALL_OPTIONS = {
    *re.findall(
        r'"(--[a-z-]+)"',
        "".join(path.read_text("utf-8") for path in (ROOT / "scripts").glob("*.py")),
    ),
    *(
        name
        for command in (GROUP, *PARSERS.values())
        for parameter in command.params
        for name in parameter.opts
    ),
    "--help",
    "--requeue",  # of Slurm
}


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100


def test_figures_of_the_readme_are_those_of_the_docs() -> None:
    rows = [line for line in prose_of(ROOT / "README.md").splitlines() if line.startswith("|")]
    cells = [cell.strip() for row in rows for cell in row.split("|")]
    figures = [cell for cell in cells if re.fullmatch(r"\d[\d,.]*(?: \[[\d,. ]+\])?", cell)]
    assert len(figures) > 8
    docs = "".join(
        (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("recipes", "benchmarks")
    )
    assert [figure for figure in figures if figure not in docs] == []
