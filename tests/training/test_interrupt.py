"""Ctrl-C and SIGTERM during training."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from nmt.commands import prepare, train
from nmt.training.interrupt import stop_on_signal
from tests import toy


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_only_requests_a_stop(number: signal.Signals, capfd: pytest.CaptureFixture[str]) -> None:
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


def test_training_works_in_a_thread(tmp_path: Path) -> None:
    """Python refuses signal handlers there."""
    config = toy.configure(
        toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()[:60]),
        data={"split": {"dev": 10, "test": 10}, "prepared": str(tmp_path / "prepared")},
        model={"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 8}},
        training={"max_steps": 1, "validation_pairs": 2},
    )
    prepare.run(config, progress=False)
    reasons: list[str | None] = []
    thread = threading.Thread(target=lambda: reasons.append(train.run(config, tmp_path / "run", device="cpu", quiet=True).finished))
    thread.start()
    thread.join()
    assert reasons == ["training.max_steps=1 is reached"]
