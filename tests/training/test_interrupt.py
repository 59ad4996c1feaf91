"""Ctrl-C, SIGTERM and a closed terminal during training."""

import errno
import io
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from nmt.commands import train
from nmt.commands.train import stop_on_signal
from nmt.config.load import load_config
from nmt.run.checkpoint import read_progress
from nmt.run.folder import find_checkpoint
from tests import toy


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])],
)
def test_a_signal_only_requests_a_stop(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    with stop_on_signal() as stop:
        assert not stop()
        os.kill(os.getpid(), number)
        deadline = time.monotonic() + 10
        while not stop() and time.monotonic() < deadline:
            time.sleep(0.001)
        assert stop()
    assert signal.getsignal(number) is before
    assert "stopping and saving after this step" in capfd.readouterr().err


def test_a_second_ctrl_c_interrupts_at_once() -> None:
    with stop_on_signal() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        while not stop():
            time.sleep(0.001)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no SIGHUP")
def test_a_training_under_nohup_ignores_a_closed_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signal() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop()
    finally:
        signal.signal(signal.SIGHUP, before)


class ClosedTerminal(io.TextIOBase):
    def write(self, text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


def test_training_works_in_a_thread_and_without_a_terminal(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python refuses signal handlers in a thread; messages cannot be written."""
    sets = [f"training={json.dumps(toy.ONE_UPDATE)}"]
    config = load_config(folder / "run" / "config.yaml", sets)
    run = tmp_path / "run"
    thread = threading.Thread(target=train.run, args=(config, run), kwargs={"device": "cpu"})
    monkeypatch.setattr(sys, "stderr", ClosedTerminal())
    thread.start()
    thread.join()
    monkeypatch.undo()
    assert read_progress(find_checkpoint(run)).finished == "training.max_steps=1 is reached"
