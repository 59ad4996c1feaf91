"""How large nmt may be. Statements count, since they do not depend on the width of lines.

The limits only fall: whoever makes something smaller lowers them. A new feature raises those of
nmt and of the tests by its own size; that of the core only for a reason that its commit names.
"""

import ast
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable
from pathlib import Path

import pytest

from nmt.cli import all_commands
from nmt.config import rules
from nmt.config.schema import Config
from nmt.config.section import section_of

ROOT = Path(__file__).resolve().parent.parent
NMT = sorted(ROOT.glob("nmt/**/*.py"))
CORE = [path for path in NMT if "extras" not in path.parts]
MAX_LINES = {"nmt/config/schema.py": 750, "nmt/extras/export/translate.py": 780}


def n_statements(paths: Iterable[Path]) -> int:
    total = 0
    for path in paths:
        with path.open("rb") as file:
            total += sum(
                token.type == tokenize.NEWLINE for token in tokenize.tokenize(file.readline)
            )
    return total


@pytest.mark.parametrize(
    ("pattern", "limit"),
    [("nmt/**/*.py", 19_650), ("tests/**/*.py", 17_372), ("scripts/**/*.py", 2_800)],
)
def test_statements(pattern: str, limit: int) -> None:
    assert n_statements(ROOT.glob(pattern)) <= limit


def test_lines_of_scripts() -> None:
    texts = (path.read_text(encoding="utf-8") for path in ROOT.glob("nmt/**/*.js"))
    lines = [line for text in texts for line in text.splitlines()]
    assert len(lines) <= 1_800
    assert max(map(len, lines)) <= 170


def test_statements_and_files_of_the_core() -> None:
    assert n_statements(CORE) <= 10_189
    assert len([path for path in CORE if path.stat().st_size]) <= 88
    assert len([path for path in (ROOT / "nmt/model").glob("*.py") if path.stat().st_size]) == 9


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
    assert n_keys(Config) <= 152
    assert len(re.findall("yield Problem", Path(rules.__file__).read_text(encoding="utf-8"))) <= 60


def test_commands() -> None:
    commands = all_commands()
    top = [name for name in commands if " " not in name]
    assert len([name for name in top if commands[name].place]) <= 14
    assert [name for name in top if not commands[name].place] == ["runs", "share"]


@pytest.mark.slow
@pytest.mark.parametrize(("what", "files", "hops"), [("train", 15, 4), ("translate", 43, 8)])
def test_files_and_hops(what: str, files: int, hops: int) -> None:
    command = [sys.executable, str(ROOT / "scripts/way.py"), what]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    found = re.search(r"(\d+) files, (\d+) hops", shown)
    assert found is not None, shown
    assert (int(found[1]), int(found[2])) <= (files, hops)
