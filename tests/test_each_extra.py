"""Any extra can be deleted alone: the four commands run, and so does the help of all others."""

import shutil
from pathlib import Path

import pytest

from nmt.cli import all_commands
from nmt.plugins import extras
from tests.conftest import ROOT, in_one_process
from tests.test_cli import write_config

KEYS = (
    "tokenizer.kind=characters",
    "training.max_steps=2",
    "training.validation_pairs=2",
    "decoding.beam=1",
    "decoding.max_length_ratio=0.2",
)


@pytest.mark.slow
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
    _, _, translation, scores, *helps = in_one_process(commands, tmp_path)
    assert translation.count("\n") == 1
    assert "BLEU" in scores
    assert all(f"nmt {each} " in text for each, text in zip(others, helps, strict=True))
