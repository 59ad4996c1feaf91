"""The progress of a training on stderr: lines for files and pipes, a live view at a terminal. pyte
is the terminal.
"""

import io
import re
import sys
import warnings
from pathlib import Path

import pyte
import pytest

from nmt.config.schema import Config
from nmt.run.journal import Journal
from nmt.run.progress import Progress
from nmt.training.console import Console, open_console
from nmt.training.events import (
    BeginEvent,
    CheckpointEvent,
    EndEvent,
    Event,
    MessageEvent,
    StepEvent,
    ValidationEvent,
)
from nmt.training.live_view import LiveConsole
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
    output     Ein \x1b[2JHund.
done after 30 steps and 1.5 minutes: training.max_steps=30 is reached
next: nmt evaluate runs/toy    nmt translate --run runs/toy "..."
"""
FOLDER = Path("runs/toy")


def configure(**training: object) -> Config:
    return toy.configure(
        Path("pairs.tsv"), training={"log_every": 10, "validate_every": 15, "epochs": 4, **training}
    )


def step(number: int, fraction: float = 0.5, *, batch: int = 20) -> StepEvent:
    return StepEvent(
        number, 1, batch, 100, batch == 100, fraction, 2.5, 9.3, 1234.6, 0.00123, 1.0, 0.7
    )


def validation(
    number: int, bleu: float = 21.5, output: str = "Ein \x1b[2JHund."
) -> ValidationEvent:
    return ValidationEvent(
        number, 2.0, Validation(1.25, bleu, 40.25, (Sample("A dog.", "Ein Hund.", output),))
    )


EVENTS: tuple[Event, ...] = (
    BeginEvent(FOLDER, 1234567, 5200, "cpu", "float32", 2, 1, 10),
    MessageEvent("lexicon: 3 translations of 2 source tokens"),
    *map(step, range(11, 26)),
    MessageEvent("step 25: update skipped", is_warning=True),
    *map(step, range(26, 30)),
    validation(30),
    CheckpointEvent(30, FOLDER / "checkpoints" / "step-00000030", True),
)
END = EndEvent(FOLDER, Progress(step=30, seconds=90.0, finished="training.max_steps=30 is reached"))


class Terminal(io.StringIO):
    """A terminal in place of stderr."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self.screen = pyte.Screen(columns, rows)
        self.screen.set_mode(pyte.modes.LNM)  # a real terminal's driver makes \r\n of \n
        self.stream = pyte.Stream(self.screen)

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.stream.feed(text)
        return super().write(text)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]


def open_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int = 100, rows: int = 40, **environment: str
) -> Terminal:
    terminal = Terminal(columns, rows)
    monkeypatch.setattr(sys, "stderr", terminal)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "JPY_PARENT_PID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "TERM": "xterm-256color",
        "COLUMNS": str(columns),
        "LINES": str(rows),
        **environment,
    }.items():
        monkeypatch.setenv(name, value)
    return terminal


def test_lines_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with open_console(configure(), quiet=False) as console:
        for event in (*EVENTS, END):
            console.show(event)
    assert capsys.readouterr() == ("", LINES)


def test_lines_where_the_cursor_cannot_move(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch, TERM="dumb")
    with open_console(configure(), quiet=False) as console:
        for event in (*EVENTS, END):
            console.show(event)
    assert terminal.getvalue() == LINES


def test_quiet_prints_only_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with open_console(configure(), quiet=True) as console:
        for event in (*EVENTS, END):
            console.show(event)
    assert terminal.getvalue() == "nmt: step 25: update skipped\n"


def test_a_trained_run_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Console(configure()) as console:
        console.show(END)
    assert (
        capsys.readouterr().err
        == "runs/toy: already trained, to step 30 (training.max_steps=30 is reached)\n"
    )


@pytest.mark.parametrize("columns", [60, 78, 200])
def test_the_live_view(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch, columns)
    with open_console(configure(), quiet=False) as console:
        assert isinstance(console, LiveConsole)
        for event in EVENTS:
            console.show(event)
        console.live.refresh()
        width = min(78, columns)
        view = [
            "runs/toy" + "epoch 1 of 4, step 29".rjust(width - 8),
            "━" * (width - 5) + " 50 %",
            "0:00 so far",
            "",
            "loss           2.500     perplexity 9.3",
            "learning rate  0.00123   1,235 tokens/s",
            "dev BLEU       21.50     █  best 21.50 at step 30",
            "dev loss       1.250     perplexity 3.49  chrF 40.25",
            "",
            "source         A dog.",
            "reference      Ein Hund.",
            "output         Ein  [2JHund.",
            "",
        ]
        start = terminal.lines.index(view[0])
        shown = [
            re.sub("━+╸━+", "━" * (width - 5), line)
            for line in terminal.lines[start : start + len(view)]
        ]
        assert (shown[2].startswith("0:0"), shown[:2] + shown[3:]) == (True, view[:2] + view[3:])
        # Lines stay above the view, whole and in order; a long one takes two.
        assert "".join(terminal.lines[:start]) == "".join(
            [*LINES.splitlines()[:3], "nmt: step 25: update skipped"]
        )
        console.show(END)
    shown = terminal.lines[start : start + len(view)]
    assert shown[2].endswith(", done")
    below = [line for line in terminal.lines[start + len(view) :] if line]
    assert "".join(below).replace(" ", "") == "".join(LINES.splitlines()[-2:]).replace(
        " ", ""
    )  # a break may hide a space


def test_the_curve_and_the_best_validation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Earlier validations come from the journal; a long curve is thinned."""
    terminal = open_terminal(monkeypatch)
    for number in range(1, 41):
        Journal(tmp_path / "journal.jsonl").write("validation", number, bleu=float(number % 40))
    with open_console(configure(), quiet=False) as console:
        console.show(BeginEvent(tmp_path, 1, 1, "cpu", "bfloat16", 1, 1, 40))
        console.show(validation(55, 20.0))
    (line,) = [line for line in terminal.lines if line.startswith("dev BLEU")]
    assert line == "dev BLEU       20.00     ▁▂▂▃▃▄▄▅▅▆▆▇▇▇█▅  best 39.00 at step 39"


def test_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(
        "nmt.training.live_view.time",
        type("Clock", (), {"monotonic": staticmethod(lambda: now[0])}),
    )
    terminal = open_terminal(monkeypatch)
    with open_console(configure(), quiet=False) as console:
        assert isinstance(console, LiveConsole)
        console.show(EVENTS[0])
        now[0] += 5
        console.show(step(11, 0.20))  # a training that continues
        now[0] += 60
        console.show(step(12, 0.30))
        console.live.refresh()
        assert "1:05 so far, about 7:00 left" in terminal.lines
        console.show(step(15, 0.40))
        console.live.refresh()
        assert "1:05 so far, about 3:00 left, validating" in terminal.lines
        now[0] += 3600
        console.show(step(16, 0.99))
        console.live.refresh()
        assert "1:01:05 so far, about 0:46 left" in terminal.lines


def test_without_color(monkeypatch: pytest.MonkeyPatch) -> None:
    colors = ("\x1b[36m", "\x1b[38")
    for is_colored in (True, False):
        terminal = (
            open_terminal(monkeypatch) if is_colored else open_terminal(monkeypatch, NO_COLOR="1")
        )
        with open_console(configure(), quiet=False) as console:
            for event in (*EVENTS, END):
                console.show(event)
        assert any(color in terminal.getvalue() for color in colors) is is_colored
        assert "loss           2.500     perplexity 9.3" in terminal.lines


def test_a_terminal_lower_than_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch, columns=60, rows=8)
    with open_console(configure(), quiet=False) as console:
        assert isinstance(console, LiveConsole)
        for event in EVENTS:
            console.show(event)
            console.live.refresh()
        assert sum("step 29" in line for line in terminal.lines) <= 1


def test_warnings_of_others_stay_above_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with open_console(configure(), quiet=False) as console, warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(
            warnings,
            "showwarning",
            lambda message, *_, **__: sys.stderr.write(f"warning: {message}\n"),
        )
        for event in EVENTS:
            console.show(event)
        warnings.warn("beware", stacklevel=1)
        sys.stdout.write("printed\n")
        console.show(END)
    lines = terminal.lines
    assert (
        lines.index("warning: beware")
        < lines.index("printed")
        < lines.index("loss           2.500     perplexity 9.3")
    )
    assert sys.stderr is terminal


def test_an_error_closes_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)

    def fail() -> None:
        with open_console(configure(), quiet=False) as console:
            for event in EVENTS:
                console.show(event)
            raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        fail()
    sys.stderr.write("nmt: bad\n")
    lines = [line for line in terminal.lines if line]
    assert lines[-1] == "nmt: bad"
    assert sum(line.endswith(", stopped") for line in lines) == 1
    assert (
        "\x1b[?25h" in terminal.getvalue().rpartition("\x1b[?25l")[2]
    )  # the cursor is visible again


def test_a_request_to_stop_is_shown_in_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with open_console(configure(), quiet=False) as console:
        assert isinstance(console, LiveConsole)
        for event in EVENTS:
            console.show(event)
        console.notify_stop()
        console.live.refresh()
        assert (
            "stopping and saving after this step; press Ctrl-C again to stop at once"
            in " ".join(terminal.lines)
        )
