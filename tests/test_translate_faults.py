"""What `nmt translate` makes of faults: refused at once where that can be, and nothing lost that was done."""

import os
import sys
from pathlib import Path

import pytest

from nmt import cli, runs
from tests import toy
from tests.conftest import Run

DOG = "The dog sees the tree."


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run; tests read it."""
    return toy.train(tmp_path_factory.mktemp("trained"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--n-best", 9], "9 translations of a sentence: the beam keeps 5; set decoding.beam to 9 or more"),
        (["--n-best", 2, "--beam", 1], "2 translations of a sentence: the beam keeps 1; set decoding.beam to 2 or more"),
        (["--prefix", "Der zebra"], "prefix 'Der zebra': 'zebra' is not in the vocabulary of the target"),
    ],
)
def test_what_cannot_be_is_refused_before_a_line_is_read(
    trained: Path, words: list[object], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()  # nothing ever comes, so reading from it would wait for good
    with open(reading, encoding="utf-8") as stdin, open(writing, "wb"):
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "argv", ["nmt", "translate", "--run", *map(str, [trained, *words])])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
    assert (exit_.value.code, capsys.readouterr().err) == (1, f"nmt: {text}\n")


def test_too_narrow_a_beam_is_refused_before_the_model_is_loaded(
    nmt: Run, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "load_weights", lambda *_: pytest.fail("loaded"))
    assert nmt("translate", "--run", trained, "--n-best", 9, DOG).status == 1
