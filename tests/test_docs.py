"""README and docs/: every block is valid, every command has the options it is called with, and
every name and link exists.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from nmt.cli import all_commands, app
from nmt.config.load import config_from_dict, load_config
from nmt.errors import ConfigError
from nmt.files import sha256_of
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
    prose_of,
    text_of,
)

GROUP: Any = typer.main.get_command(app)
PARSERS: dict[str, Any] = {
    name: GROUP.get_command(None, name) for name, row in all_commands().items() if row.place
}
USAGE_ERROR: Any = typer.BadParameter.__base__
OTHER_PROGRAMS = (".", "cd", "curl", "export", "hf", "tensorboard", "tr")
NEW_PARTS = re.compile("cosine|couplets|exact")  # tests/test_docs_run.py adds them
CODE = "".join(path.read_text("utf-8") for path in (ROOT / "nmt").rglob("*.py"))
TYPES = set(re.findall(r"^(?:class )?(\w+)(?:\(|:| = Literal)", CODE, re.M))
SCRIPTS = "".join(path.read_text("utf-8") for path in (ROOT / "scripts").glob("*.py"))
PARAMETERS = [each for command in (GROUP, *PARSERS.values()) for each in command.params]
ALL_OPTIONS = {
    *re.findall(r'"(--[a-z-]+)"', SCRIPTS),
    *(name for parameter in PARAMETERS for name in parameter.opts),
    *("--help", "--requeue"),  # the latter of Slurm
}
GENERATED = {f"docs/reference/{name}.md": make() for name, make in REFERENCE_PAGES.items()}
KEYS = anchors_of(GENERATED["docs/reference/configuration.md"])
SECTION = "(?:data|tokenizer|vocabulary|model|training|decoding)"
GENERATED["docs/notebook.md"] = text_of("docs/notebook.ipynb")

each_page = pytest.mark.parametrize("page", PAGES)


def check(words: Sequence[str]) -> None:
    """Raise an error if the command line cannot work: an unknown program, option, key or value, or
    a missing file.
    """
    program, *arguments = words
    if program == "nmt":
        check_nmt(arguments)
    elif program in ("torchrun", "srun"):
        check(arguments[arguments.index("nmt") :])
    elif program in ("python", "python3"):
        check_script(arguments)
    elif program == "make":
        assert set(arguments) <= set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.M))
    elif program == "pip":
        extras = tomllib.loads(text_of("pyproject.toml"))["project"]["optional-dependencies"]
        assert arguments[0] == "install"
        assert set(re.findall(r"\[(\w+)\]", " ".join(arguments))) <= set(extras)
    else:
        assert program in OTHER_PROGRAMS, f"{program}: tell the test how to check this program"


def check_nmt(arguments: Sequence[str]) -> None:
    name = " ".join(arguments[:2]) if " ".join(arguments[:2]) in PARSERS else arguments[0]
    rest = list(arguments[len(name.split()) :])
    assert name in PARSERS, f"no command nmt {name}"
    values = PARSERS[name].make_context(name, rest, parent=typer.Context(GROUP)).params
    path, settings = values.get("config"), values.get("set_") or ()
    if path is not None and len(path.parts) > 1:
        assert (ROOT / path).is_file(), f"{path}: no such file"
    if settings:
        known = path is not None and (ROOT / path).is_file()
        load_config(ROOT / (path if known else "configs/sample.yaml"), settings)


def check_script(arguments: Sequence[str]) -> None:
    if arguments[:2] == ["-m", "venv"]:
        return
    path = arguments[0]
    source = text_of(path)
    for word in arguments[1:]:
        assert not word.startswith("-") or f'"{word}"' in source, f"{path}: no option {word}"
    if settings := [value for option, value in pairwise(arguments) if option == "--set"]:
        configs = [word for word in arguments if word.startswith("configs/")]
        load_config(ROOT / [*configs, "configs/sample.yaml"][0], settings)


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=str)
def test_command_is_valid(page: str, words: list[str]) -> None:
    check(words)


@pytest.mark.parametrize(
    "line",
    [
        "nmt trian -c configs/sample.yaml",
        "nmt train --config configs/missing.yaml",
        "nmt train -c configs/sample.yaml --fast",
        "nmt train -c configs/sample.yaml --set training.steps=3",
        "nmt translate --beam 0 hello",
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


@pytest.mark.parametrize("block", ALL_BLOCKS, ids=lambda block: f"{block.page}: {block.text[:30]}")
def test_block_is_valid(block: Block) -> None:
    assert block.language in (*SHELL, "text", "yaml", "python")
    if block.language == "yaml":
        value = yaml.safe_load(block.text)
        if isinstance(value, dict):
            if not NEW_PARTS.search(block.text):
                config_from_dict(value)
        else:
            for step in value:
                for words in command_lines(Block(block.page, "", step.get("run", ""))):
                    check(words)
    elif block.language == "python":
        compile(block.text, block.page, "exec")


@each_page
def test_links_lead_somewhere(page: str) -> None:
    targets = re.findall(r"\]\(([^)]+)\)", prose_of(page))
    for target in targets + re.findall(r'src="([^"]+)"', text_of(page)):
        if re.match(r"https?:", target):
            continue
        link, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), link)) if link else page
        assert (ROOT / path).is_file() or path in GENERATED, target
        if anchor:
            assert anchor in anchors_of(GENERATED.get(path) or text_of(path)), target


@each_page
def test_names_exist(page: str) -> None:
    """Classes, files of the project, configuration keys and options that the text names in code
    style.
    """
    for code in re.findall(r"`([^`\n]+)`", prose_of(page)):
        if re.fullmatch(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+", code):
            assert code in TYPES
        if re.fullmatch(r"(?:nmt|configs|scripts|tests)/[\w/.-]+\.\w+", code):
            assert (ROOT / code).exists(), code
        if match := re.match(SECTION + r"(?:\.\w+)+", code):
            assert {match[0], f"section-{match[0]}"} & KEYS, code
        if match := re.match(r"nmt ([a-z]+)", code):
            assert match[1] in all_commands(), code
        assert set(re.findall(r"(?<!\S)--[a-z][a-z-]+", code)) <= ALL_OPTIONS, code


def test_figures_of_the_readme_are_those_of_the_docs() -> None:
    figures = re.findall(r"\d+(?:[.,]\d+)+", prose_of("README.md").partition("## What it")[2])
    docs = text_of("docs/recipes.md") + text_of("docs/benchmarks.md")
    assert len(figures) > 15
    assert [figure for figure in figures if figure not in docs] == []


def test_the_sample_is_the_one_that_the_scores_are_of() -> None:
    digest = "8840071b671fa96364bbce56b48691d0692be31d51d564119920c9e706e7a36c"
    assert sha256_of(ROOT / "data/sample/sample.tsv") == digest


# The notebook: its committed outputs are small and clean. After a change of it,
# `jupyter execute --inplace docs/notebook.ipynb` writes them again.


PATH = ROOT / "docs" / "notebook.ipynb"
MAX_LENGTH = 500_000
NUMBER = re.compile(r"\d+\.\d+")


def code_of(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: Any) -> str:
    return "".join(each.text for each in cell.outputs if each.output_type == "stream")


def read_notebook() -> Any:
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient")
    found = nbformat.read(PATH, as_version=4)
    nbformat.validate(found)
    return found


def test_the_notebook_is_small_and_executed() -> None:
    notebook = read_notebook()
    text, code = PATH.read_text(encoding="utf-8"), code_of(notebook)
    assert len(text) < MAX_LENGTH
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(kind in text for kind in ('"stdout"', '"image/png"', '"text/html"'))
    assert "".join(map(printed, code)).count("the same: ") >= 10  # equations that hold
    assert '"stderr"' not in text
    # No name or path of this machine is in it.
    assert re.findall(r"/(?:tmp|home|root|work)\b|\"execution\":", text) == []


@pytest.mark.slow
def test_executing_the_notebook_again_gives_the_same_numbers(tmp_path: Path) -> None:
    """Training rounds differently on other processors, so numbers are compared with a tolerance."""
    client = pytest.importorskip("nbclient").NotebookClient
    pytest.importorskip("ipykernel")
    notebook, again = read_notebook(), read_notebook()
    client(again, timeout=1800, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for before, now in zip(code_of(notebook), code_of(again), strict=True):
        assert NUMBER.sub("#", printed(now)) == NUMBER.sub("#", printed(before))
        numbers = [list(map(float, NUMBER.findall(printed(cell)))) for cell in (now, before)]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.1, abs=0.05)


# The built documentation

LOADED = re.compile(
    r"<(?:script|img|iframe)[^>]* src=\"(?:https?:)?//|<link[^>]* href=\"(?:https?:)?//"
    r"|(?:url\(|@import )[\"']?(?:https?:)?//"
)


@pytest.mark.slow
def test_pages_are_complete_and_load_nothing_from_the_network(tmp_path: Path) -> None:
    """They are built strictly: a missing page or anchor is an error. Equations are MathML, an
    option stays on one line, and a linked configuration has a page.
    """
    pytest.importorskip("mkdocs", reason="needs pip install -e '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", ".mkdocs.yml"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([*command, "-d", str(tmp_path)], cwd=ROOT, env=environment, check=True)
    files = [path for path in tmp_path.rglob("*") if path.suffix in (".html", ".css")]
    pages = {path.relative_to(tmp_path).as_posix(): path.read_text("utf-8") for path in files}
    assert [name for name, text in pages.items() if LOADED.search(text)] == []
    equations = pages["models.html"]
    assert equations.count("<math") > 50
    assert not re.search(r"arithmatex|\$\$|\\(?:frac|sum|mathrm|top)\b", equations)
    assert '<code class="option">--resume</code>' in pages["tutorial.html"]
    assert 'href="files/configs/tatoeba.yaml.html"' in pages["recipes.html"]
    assert "bidirectional" in pages["files/configs/tatoeba.yaml.html"]
