"""The core without any extra: the four commands run where no extra and no library of one can be
imported, and no file of the core names one.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from nmt.plugins import extras
from tests.test_cli import write_config

ROOT = Path(__file__).resolve().parent.parent
CORE = [path for path in ROOT.glob("nmt/**/*.py") if "extras" not in path.parts]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OTHER_EXTRAS = {"dev", "docs"}
IMPORTED_AS = {"pillow": "PIL"}
REFUSE = """
import sys
for name in ("nmt.extras", *{libraries}):
    sys.modules[name] = None
from nmt.cli import main
main()
"""


def libraries() -> set[str]:
    """What the optional dependencies import, without what the core needs itself."""
    wanted = {
        re.split(r"[\[<>=]", requirement)[0]
        for name, requirements in PROJECT["optional-dependencies"].items()
        if name not in OTHER_EXTRAS
        for requirement in requirements
    }
    return {name.replace("-", "_") for name in wanted} - {"pillow"}  # matplotlib imports pillow


@pytest.mark.slow
def test_the_four_commands(tmp_path: Path) -> None:
    config = write_config(tmp_path, ROOT)
    run = tmp_path / "run"

    def nmt(*words: object) -> str:
        command = [sys.executable, "-c", REFUSE.format(libraries=libraries()), *map(str, words)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert "serve" not in nmt("--help")
    nmt("prepare", "-c", config)
    nmt("train", "-c", config, "-o", run)
    assert "BLEU" in nmt("evaluate", run, "--split", "dev")
    assert nmt("translate", "--run", run, "The dog sleeps.").count("\n") == 1


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_core_names_no_extra(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "nmt.extras." not in text
    assert not [name for name in extras() if re.search(rf"extras[./]{name}\b", text)]
