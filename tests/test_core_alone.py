"""The core without any extra: the four commands run where no extra and no library of one can be
imported, and no file of the core names one.
"""

import re
import tomllib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest

from nmt.plugins import extras
from tests.conftest import ROOT, in_one_process
from tests.test_cli import write_config

CORE = [path for path in ROOT.glob("nmt/**/*.py") if "extras" not in path.parts]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OTHER_EXTRAS = {"dev", "docs"}
REFUSE = "import sys; sys.modules.update(dict.fromkeys(['nmt.extras', *{libraries}]))\n"


def libraries() -> set[str]:
    """What the optional dependencies import, without what the core needs itself."""
    wanted = chain.from_iterable(
        requirements
        for name, requirements in PROJECT["optional-dependencies"].items()
        if name not in OTHER_EXTRAS
    )
    return packages(wanted) - packages(PROJECT["dependencies"])


def packages(requirements: Iterable[str]) -> set[str]:
    return {re.split(r"[\[<>=]", each)[0].replace("-", "_") for each in requirements}


@pytest.mark.slow
def test_the_four_commands(tmp_path: Path) -> None:
    write_config(tmp_path, ROOT)
    lines = "--help", "prepare -c small.yaml", "train -c small.yaml", "evaluate --split dev"
    commands = [*(line.split() for line in lines), ["translate", "The dog sleeps."]]
    refuse = REFUSE.format(libraries=libraries())
    listing, *_, scores, translation = in_one_process(
        commands, tmp_path, refuse, PYTHONPATH=str(ROOT)
    )
    assert "serve" not in listing
    assert "nmt init" not in listing
    assert "nmt prepare -c sample.yaml" in listing
    assert "BLEU" in scores
    assert translation.count("\n") == 1


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_core_names_no_extra(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "nmt.extras." not in text
    assert not [name for name in extras() if re.search(rf"extras[./]{name}\b", text)]
