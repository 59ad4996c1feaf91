"""Imports between the parts of nmt go one way. These tests read the modules; they do not import
them.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.plugins import extras

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "nmt"

# Imports go left only, and freely within a folder. No file of the core imports an extra.
LAYERS = (
    "errors < plugins < cores < files < lines < config < device < text < report < data < "
    "model < evaluation < decoding < run < texts < training < commands < cli < extras"
)
LEVEL = {part: level for level, part in enumerate([*LAYERS.split(" < "), "__main__"])}

# The extras whose files another extra may import.
NEEDS = {name: extra.needs for name, extra in extras().items()}

MODULES = sorted(PACKAGE.rglob("*.py"))

# The modules of the core that import torch: those of training and of models that are trained.
# Others load quickly, and translating on a CPU can do without it.
WITH_TORCH = {
    *(PACKAGE / f"{name}.py" for name in ("device", "data/batches", "run/weights")),
    PACKAGE / "decoding" / "torch_model.py",
    *(path for path in MODULES if path.parent == PACKAGE / "training"),
    *(path for path in MODULES if path.parent == PACKAGE / "model"),
} - {PACKAGE / "model" / f"{name}.py" for name in ("__init__", "int8", "lexicon")}
WITHOUT_TORCH = [
    path for path in MODULES if path not in WITH_TORCH and PACKAGE / "extras" not in path.parents
]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


each_module = pytest.mark.parametrize("path", MODULES, ids=name_of)


def part_of(path: Path) -> str:
    """The file or folder directly below nmt/ that contains `path`."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of each import in a module; `from a import b` gives a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def upward_imports(path: Path, source: str) -> list[str]:
    """One line for each import in `source`, the text of module `path`, that breaks the order of the
    layers.
    """
    part = part_of(path)
    problems = []
    for line, name in imported(ast.parse(source)):
        package, _, rest = name.partition(".")
        other = rest.split(".")[0]
        if package != "nmt" or other == "__version__":
            continue
        if other == part == "extras":
            own, its = path.relative_to(PACKAGE).parts[1], rest.split(".")[1]
            if its != own and its not in NEEDS.get(own, ()):
                problems.append(f"{name_of(path)}:{line}: {own} must not import {name}")
            continue
        if other == part != path.stem:
            continue
        if LEVEL[other] >= LEVEL[part]:
            problems.append(f"{name_of(path)}:{line}: {part} must not import {name}")
    return problems


@each_module
def test_imports_go_left_only(path: Path) -> None:
    if path != PACKAGE / "__init__.py":
        assert upward_imports(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("model/attention.py", "from nmt.decoding.search import search"),
        ("model/seq2seq.py", "from nmt.evaluation.results import Evaluation"),
        ("evaluation/scores.py", "import nmt.training.loop"),
        ("data/corpus.py", "from nmt.commands import prepare"),
        ("run/folder.py", "from nmt.training import loop"),
        ("config/load.py", "def load():\n    from nmt.cli import main"),
    ],
)
def test_a_forbidden_import_is_found(module: str, line: str) -> None:
    assert upward_imports(PACKAGE / module, line)


IMPORT_ALL = """
import sys
sys.modules["torch"] = None
from importlib import import_module
from nmt.config.parts import FORMATS, PAIR_FORMATS, TOKENIZERS
for name in sys.argv[1:]:
    import_module(name)
for row in [*(FORMATS[name] for name in PAIR_FORMATS), *TOKENIZERS.values()]:
    row.load()
"""


def test_what_translates_or_prepares_needs_no_torch() -> None:
    paths = [path for path in WITHOUT_TORCH if path.stem != "__main__"]
    names = [name_of(path).removesuffix(".py").replace("/", ".") for path in paths]
    subprocess.run([sys.executable, "-c", IMPORT_ALL, *names], check=True)


@each_module
def test_modules_that_windows_lacks_are_imported_on_use(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = ast.Module(
        [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], []
    )
    assert {name.partition(".")[0] for _, name in imported(top)}.isdisjoint(
        {"fcntl", "grp", "pwd", "resource", "termios"}
    )


@each_module
def test_no_pickle(path: Path) -> None:
    """Neither modules that unpickle, nor functions of torch and numpy that do."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    roots = {name.partition(".")[0] for _, name in imported(tree)}
    assert roots.isdisjoint(
        {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    )
    calls = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names = {name for _, name in imported(tree)}
    assert (calls | names).isdisjoint({"torch.load", "torch.save", "torch.serialization"})
    allowed = [
        ast.unparse(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle"
    ]
    assert set(allowed) <= {"False"}


def test_version_is_that_of_the_project() -> None:
    import tomllib

    import yaml

    import nmt

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert nmt.__version__ == project["version"] == citation["version"]
