"""The progress of a training on stderr: lines for files and pipes, a bar at a terminal."""

import io
import sys
from pathlib import Path

import pytest

from nmt.run.progress import Progress
from nmt.training.console import Console
from nmt.training.record import (
    BeginEvent,
    CheckpointEvent,
    EndEvent,
    Event,
    MessageEvent,
    StepEvent,
    ValidationEvent,
)
from nmt.training.validation import Sample, Validation
from tests import toy

LINES = """\
runs/toy: 1,234,567 parameters, 5,200 pairs, on cpu, 2 threads
resuming from step 10
lexicon: 3 translations of 2 source tokens
step 20  epoch 1  loss 2.500  perplexity 9.3  1,235 tokens/s
nmt: step 25: update skipped
step 30  validation  dev loss 1.250  perplexity 3.49  BLEU 21.50  chrF 40.25  (2 s)
    source     A dog.
    reference  Ein Hund.
    output     Ein Hund.
done after 30 steps and 1.5 minutes: training.max_steps=30 is reached
next: nmt evaluate runs/toy    nmt translate --run runs/toy "..."
"""
FOLDER = Path("runs/toy")


CONFIG = toy.configure(
    Path("pairs.tsv"), training={"log_every": 10, "validate_every": 15, "epochs": 4}
)
STEPS = {
    number: StepEvent(number, 1, 20, 100, False, 0.5, 2.5, 9.3, 1234.6, 0.00123, 1.0, 0.7)
    for number in range(11, 30)
}
SAMPLES = (Sample("A dog.", "Ein Hund.", "Ein Hund."),)
EVENTS: tuple[Event, ...] = (
    BeginEvent(FOLDER, 1234567, 5200, "cpu", "float32", 2, 1, 10),
    MessageEvent("lexicon: 3 translations of 2 source tokens"),
    *(STEPS[number] for number in range(11, 26)),
    MessageEvent("step 25: update skipped", is_warning=True),
    *(STEPS[number] for number in range(26, 30)),
    ValidationEvent(30, 2.0, Validation(1.25, {"bleu": 21.5, "chrf": 40.25}, SAMPLES)),
    CheckpointEvent(30, FOLDER / "checkpoints" / "step-00000030", True),
)
END = EndEvent(FOLDER, Progress(step=30, seconds=90.0, finished="training.max_steps=30 is reached"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch, term: str = "xterm-256color") -> Terminal:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", term)
    return terminal


def show(*events: Event, quiet: bool = False) -> None:
    with Console(CONFIG, quiet=quiet) as console:
        for event in events:
            console(event)


def test_lines_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    show(*EVENTS, END)
    assert capsys.readouterr() == ("", LINES)


def test_lines_where_the_cursor_cannot_move(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch, "dumb")
    show(*EVENTS, END)
    assert terminal.getvalue() == LINES


def test_quiet_prints_only_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    show(*EVENTS, END, quiet=True)
    assert terminal.getvalue() == "nmt: step 25: update skipped\n"


def test_a_bar_below_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    show(*EVENTS, END)
    text = terminal.getvalue()
    lines = [line.rpartition("\r")[2] for line in text.splitlines()]
    for line in LINES.splitlines():
        assert (line in lines) is not line.startswith("step 20")
    assert " 50 %|" in text
    assert "step 29  epoch 1  loss 2.500  perplexity 9.3  1,235 tokens/s [" in text
