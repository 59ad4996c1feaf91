"""`nmt train` in a real terminal: a pseudo-terminal, whose output pyte draws."""

import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyte
import pytest

from nmt.commands import prepare
from nmt.config.yaml_text import dump
from nmt.run.folder import open_checkpoints
from tests import toy

pty = pytest.importorskip("pty", reason="no pseudo-terminals")
pytestmark = pytest.mark.slow

ENOUGH_SECONDS = 300


class Session:
    """A command whose standard streams are a terminal."""

    def __init__(
        self, command: list[str], folder: Path, columns: int, rows: int, **environment: str
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.output = b""
        self.lock = threading.Lock()
        self.terminal, child = pty.openpty()
        self.resize(columns, rows)
        cleared = {
            "NO_COLOR",
            "FORCE_COLOR",
            "COLUMNS",
            "LINES",
            "TTY_COMPATIBLE",
            "TTY_INTERACTIVE",
        }
        inherited = {name: value for name, value in os.environ.items() if name not in cleared}
        environment = {**inherited, "TERM": "xterm-256color", **environment}
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=child, stdout=child, stderr=child, env=environment
        )
        os.close(child)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self.terminal, 65536)
            except OSError:  # Linux reports the end like this
                return
            if not data:
                return
            with self.lock:
                self.output += data
                self.stream.feed(data)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size. As most terminals do, break lines that are too long, and keep the lines
        above the cursor.
        """
        import fcntl
        import termios

        with self.lock:
            fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            lines = [line.rstrip() for line in self.screen.display[: self.screen.cursor.y + 1]]
            self.screen.resize(rows, columns)
            self.screen.reset()
            parts = (
                line[start : start + columns]
                for line in lines
                for start in range(0, len(line) or 1, columns)
            )
            self.stream.feed("\r\n".join(parts).encode())

    @property
    def lines(self) -> list[str]:
        with self.lock:
            return [line.rstrip() for line in self.screen.display]

    def wait_for(self, condition: Callable[[list[str]], object]) -> list[str]:
        """The lines of the screen once they fulfil the condition."""
        deadline = time.monotonic() + ENOUGH_SECONDS
        while not condition(lines := self.lines):
            assert time.monotonic() < deadline, "\n".join(lines)
            assert self.process.poll() is None, "\n".join(lines)
            time.sleep(0.05)
        return lines

    def finish(self) -> int:
        """Wait for the end of the command; its exit status."""
        status = self.process.wait(ENOUGH_SECONDS)
        self.reader.join(ENOUGH_SECONDS)
        return status


@contextmanager
def train(
    folder: Path, columns: int, rows: int, *words: str, **environment: str
) -> Iterator[Session]:
    command = [
        sys.executable,
        "-m",
        "nmt",
        "train",
        "-c",
        str(folder / "toy.yaml"),
        "-o",
        "run",
        *words,
    ]
    session = Session(command, folder, columns, rows, **environment)
    try:
        yield session
    finally:
        session.process.kill()
        session.process.wait()
        session.reader.join(ENOUGH_SECONDS)
        os.close(session.terminal)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Prepared data with a configuration that trains for long."""
    config = toy.configure(
        toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()),
        data={"split": {"dev": 20, "test": 40}, "prepared": str(tmp_path / "prepared")},
        tokenizer={"kind": "words"},
        model={
            "embedding_size": 16,
            "encoder": {"hidden_size": 16},
            "decoder": {"hidden_size": 16},
        },
        training={
            "max_steps": 1000000,
            "epochs": 1000000,
            "validate_every": 50,
            "patience": 1000,
            "batch": {"size": 16},
        },
    )
    prepare.run(config, progress=False)
    (tmp_path / "toy.yaml").write_text(dump(config), encoding="utf-8")
    return tmp_path


def shows(text: str) -> Callable[[list[str]], bool]:
    return lambda lines: any(text in line for line in lines)


def shows_bar(width: int) -> Callable[[list[str]], bool]:
    return lambda lines: any(re.search(r"━ +\d+ %$", line) and len(line) == width for line in lines)


def shows_one_bar(width: int) -> Callable[[list[str]], bool]:
    """Without remains of a view of another width."""
    return lambda lines: shows_bar(width)(lines) and sum(" %" in line for line in lines) == 1


def test_resize_and_interrupt(folder: Path) -> None:
    with train(folder, 100, 40) as session:
        session.wait_for(shows("dev BLEU"))
        for columns, rows in ((60, 40), (35, 40), (79, 40), (100, 12), (100, 40)):
            session.resize(columns, rows)
            session.wait_for(shows_one_bar(min(columns, 78)))
        session.process.send_signal(signal.SIGINT)
        assert session.finish() == 1
    lines = [line for line in session.lines if line]
    step = open_checkpoints(folder / "run", toy.configure(folder)).kept("last")[0].step
    end = "nmt: interrupted; step {} is saved in run; repeat the command with --resume to continue"
    assert lines[-1] == end.format(step)
    # The last state stays above the message, in one copy below the lines of the begin.
    (stopped,) = [index for index, line in enumerate(lines) if line.endswith(", stopped")]
    assert f"step {step:,}" in lines[stopped - 2]
    assert lines[stopped + 1].startswith("loss ")
    assert lines[-2].startswith("output ")
    assert b"Traceback" not in session.output
    assert session.output.rindex(b"\x1b[?25h") > session.output.rindex(
        b"\x1b[?25l"
    )  # the cursor is visible again


def test_an_error_leaves_the_view_and_a_line(folder: Path) -> None:
    checkpoints = folder / "run" / "checkpoints"
    with train(folder, 80, 30) as session:
        session.wait_for(shows("dev BLEU"))
        checkpoints.rename(folder / "elsewhere")
        checkpoints.write_text("a file in its place")
        assert session.finish() == 1
    lines = [line for line in session.lines if line]
    (stopped,) = [index for index, line in enumerate(lines) if line.endswith(", stopped")]
    (error,) = [index for index, line in enumerate(lines) if line.startswith("nmt: ")]
    assert stopped < error
    assert lines[error - 1].startswith("output ")
    assert "checkpoint" in lines[error]
    assert b"Traceback" not in session.output


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"NO_COLOR": "1"}], ids=str)
def test_simple_terminals(folder: Path, environment: dict[str, str]) -> None:
    limits = ["--set", "training.max_steps=60", "--set", "training.log_every=20"]
    with train(folder, 80, 40, *limits, **environment) as session:
        assert session.finish() == 0
    lines = session.lines
    assert "done after 60 steps" in "\n".join(lines)
    if "TERM" in environment:
        assert b"\x1b" not in session.output
        assert [line.split("  ")[0] for line in lines if line.startswith("step")] == [
            f"step {n}" for n in (20, 40, 50, 60, 60)
        ]
    else:
        assert not re.search(rb"\x1b\[[\d;]*3\dm", session.output)
        assert shows("100 %")(lines)
