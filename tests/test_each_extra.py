"""Any extra can be deleted alone: the four commands run, and so does the help of all others."""

import json
import os
import shutil
import sys
import traceback
import warnings
from pathlib import Path

import pytest

from nmt.cli import all_commands
from nmt.plugins import extras
from tests.conftest import COMMANDS, ROOT
from tests.test_cli import write_config

KEYS = (
    "tokenizer.kind=characters",
    "training.max_steps=2",
    "training.validation_pairs=2",
    "decoding.beam=1",
    "decoding.max_length_ratio=0.2",
)


def run_copy(folder: Path, commands: list[list[str]]) -> list[str]:
    """Run commands of the copy of nmt in a folder; what each prints. A fork runs them, because it
    has all libraries already.
    """
    if (child := os.fork()) == 0:
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == "nmt"]:
            del sys.modules[name]
        warnings.simplefilter("ignore")
        sys.argv[1:] = [json.dumps(commands)]
        with open("out", "w") as sys.stdout, open("err", "w") as sys.stderr:
            try:
                exec(COMMANDS, {})
            except BaseException:  # noqa: BLE001
                traceback.print_exc()
        os._exit(0)
    os.waitpid(child, 0)
    assert (folder / "out").stat().st_size, (folder / "err").read_text()
    return [*json.loads((folder / "out").read_text())]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forks a process")
@pytest.mark.parametrize("name", [*extras()])
def test_without_one_extra(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "nmt", tmp_path / "nmt")
    shutil.rmtree(tmp_path / "nmt/extras" / name)
    write_config(tmp_path, ROOT)
    others = [each for each in all_commands() if each not in extras()[name].commands]
    small = ["-q", "-c", "small.yaml", *(word for key in KEYS for word in ("--set", key))]
    commands = [
        ["prepare", *small],
        ["train", *small],
        ["translate", "The dog sees {x}. The tree is here."],
        ["evaluate", "--split", "dev"],
        *([*each.split(), "--help"] for each in others),
    ]
    _, _, translation, scores, *helps = run_copy(tmp_path, commands)
    assert translation.count("\n") == 1
    assert "BLEU" in scores
    assert all(f"nmt {each} " in text for each, text in zip(others, helps, strict=True))
