"""How large nmt may be. Statements count, since they do not depend on the width of lines.

A limit says what is too much, not how little is good: a name or a blank line that helps a reader is
worth a statement. Whoever makes a ring smaller lowers its limit; a new feature raises those of the
rings that it is in by its own size, and says so in its commit.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer

from nmt.cli import Commands, all_commands
from nmt.config import rules
from nmt.config.schema import Config
from nmt.config.section import section_of
from nmt.plugins import Extra

ROOT = Path(__file__).resolve().parent.parent
NMT = sorted(ROOT.glob("nmt/**/*.py"))
EXTRAS = [path for path in NMT if ROOT / "nmt/extras" in path.parents]
TEXTS = [path for path in NMT if path.parent == ROOT / "nmt/texts"]
CORE = [path for path in NMT if path not in EXTRAS and path not in TEXTS]
RINGS = {
    "core": (CORE, 9_992),
    "texts": (TEXTS, 1_734),
    "extras": (EXTRAS, 8_084),
    "tests": ([*ROOT.glob("tests/**/*.py")], 15_317),
    "scripts": ([*ROOT.glob("scripts/**/*.py")], 2_080),
}
MAX_LINES = {"nmt/config/schema.py": 650}
FUNCTION_LINES, FUNCTION_STATEMENTS = 50, 30  # after the signature


def ends_of_statements(path: Path) -> list[int]:
    """The line in which each statement ends."""
    source = io.StringIO(path.read_text(encoding="utf-8"))
    tokens = tokenize.generate_tokens(source.readline)
    return [token.start[0] for token in tokens if token.type == tokenize.NEWLINE]


def n_statements(paths: Iterable[Path]) -> int:
    return sum(len(ends_of_statements(path)) for path in paths)


@pytest.mark.parametrize("ring", RINGS)
def test_statements(ring: str) -> None:
    paths, limit = RINGS[ring]
    assert n_statements(paths) <= limit


def test_lines_of_scripts_for_browsers() -> None:
    texts = (path.read_text(encoding="utf-8") for path in ROOT.glob("nmt/**/*.js"))
    lines = [line for text in texts for line in text.splitlines()]
    assert len(lines) <= 1_784
    assert max(map(len, lines)) <= 100


def test_files_of_the_core() -> None:
    assert len([path for path in [*CORE, *TEXTS] if path.stat().st_size]) <= 105
    assert len([path for path in (ROOT / "nmt/model").glob("*.py") if path.stat().st_size]) == 10


def long_functions(path: Path) -> Iterator[str]:
    """Functions with too many lines or statements in their bodies."""
    ends = ends_of_statements(path)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first, last = node.body[0].lineno, node.end_lineno or 0
            n_lines, n_ends = last - first + 1, sum(first <= end <= last for end in ends)
            if n_lines > FUNCTION_LINES or n_ends > FUNCTION_STATEMENTS:
                yield f"{path.name}: {node.name} has {n_lines} lines, {n_ends} statements"


def test_functions() -> None:
    assert [each for path in NMT for each in long_functions(path)] == []


@pytest.mark.parametrize("path", NMT, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_lines_of_a_file(path: Path) -> None:
    limit = MAX_LINES.get(path.relative_to(ROOT).as_posix(), 450)
    assert len(path.read_text(encoding="utf-8").splitlines()) <= limit


@pytest.mark.parametrize("name", ["fit", "train_step"])
def test_the_loop_is_on_one_screen(name: str) -> None:
    tree = ast.parse((ROOT / "nmt/training/loop.py").read_text(encoding="utf-8"))
    (function,) = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    assert function.end_lineno is not None
    assert function.end_lineno - function.lineno + 1 <= 30


def n_keys(section: type) -> int:
    below = (section_of(section, key) for key in section.model_fields)  # type: ignore[attr-defined]
    return sum(1 if each is None else n_keys(each) for each in below)


def test_keys_and_rules() -> None:
    assert n_keys(Config) <= 145
    assert len(re.findall(r"\byield \(", Path(rules.__file__).read_text(encoding="utf-8"))) <= 46


def test_commands() -> None:
    commands = all_commands()
    top = [name for name in commands if " " not in name]
    assert len([name for name in top if commands[name].place]) <= 13
    assert [name for name in top if not commands[name].place] == ["runs", "share"]


def options(command: Any, name: str) -> list[tuple[str, str]]:
    """Each option of a command, or of the commands of a group, --help too."""
    if isinstance(command, Commands):
        members = [(each, command.get_command(None, each)) for each in command.list_commands(None)]
        return [row for each, member in members for row in options(member, f"{name} {each}")]
    shown = command.get_params(typer.Context(command))
    return [(name, each.opts[-1]) for each in shown if each.param_type_name == "option"]


def test_options() -> None:
    assert len(options(Commands(name="nmt"), "nmt")) <= 140


def test_what_an_extra_may_add() -> None:
    assert len(fields(Extra)) <= 12


@pytest.mark.slow
@pytest.mark.parametrize(("what", "files", "hops"), [("train", 14, 4), ("translate", 30, 5)])
def test_files_and_hops(what: str, files: int, hops: int) -> None:
    command = [sys.executable, str(ROOT / "scripts/way.py"), what]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    found = re.search(r"(\d+) files, (\d+) hops", shown)
    assert found is not None, shown
    assert int(found[1]) <= files
    assert int(found[2]) <= hops
