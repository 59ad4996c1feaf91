"""Whatever rename a training is killed before, and whichever write the disk refuses: the checkpoint
before is whole, and the next call ends with the weights of an uninterrupted training.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nmt.commands import prepare, train
from nmt.config.schema import Config
from nmt.config.yaml_text import dump
from tests import toy
from tests.conftest import Run

resource = pytest.importorskip("resource")  # not on Windows


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("prepared")
    config = toy.configure(
        toy.write_table(folder / "pairs.tsv", toy.sentence_pairs()[:100]),
        data={"split": {"dev": 4, "test": 4}, "prepared": str(folder / "prepared")},
        model={
            "embedding_size": 8,
            "encoder": {"hidden_size": 8},
            "decoder": {"hidden_size": 8},
            "dropout": 0.3,
            "lexical_bias": 3,
        },
        training={
            "max_steps": 4,
            "validate_every": 2,
            "log_every": 1,
            "validation_pairs": 2,
            "keep_last": 2,
            "teacher_forcing": {"start": 0.8},
            "learning_rate": {"schedule": "plateau", "patience": 1},
        },
        decoding={"beam": 2, "max_length_ratio": 0.2},
    )
    prepare.run(config, progress=False)
    return config


@pytest.fixture(autouse=True)
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of TensorBoard, whose files have the time in their names."""
    monkeypatch.setattr("nmt.plugins.extras", dict)


def train_until_rename(config: Config, run: Path, number: int) -> bool:
    """Train in another process, which is killed before this rename; whether it has so many."""
    child = os.fork()
    if child == 0:
        count = 0

        def watch(event: str, _: tuple[Any, ...]) -> None:
            nonlocal count
            count += event == "os.rename"  # also for os.replace
            if event == "os.rename" and count == number:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            train.run(config, run, device="cpu", quiet=True)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    for path in run.rglob("*"):  # the next call may delete what has not changed for a minute
        os.utime(path, (time.time() - 120,) * 2)
    return os.WIFSIGNALED(status)


def contents(run: Path) -> dict[str, object]:
    """Each file by its path, without what the clock says."""
    found: dict[str, object] = {}
    for path in sorted(path for path in run.rglob("*") if path.is_file()):
        name = path.relative_to(run).as_posix()
        found[name] = path.read_bytes() if path.suffix == ".safetensors" else None
    clock = ("seconds", "tokens_per_second")
    for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        event = f"{values['event']} {values['step']}"
        assert event not in found
        found[event] = {key: value for key, value in values.items() if key not in clock}
    return found


@pytest.mark.slow
def test_a_killed_training_ends_like_an_uninterrupted_one(config: Config, tmp_path: Path) -> None:
    train.run(config, tmp_path / "whole", device="cpu", quiet=True)
    expected = contents(tmp_path / "whole")
    assert "choice 4" in expected
    number = 1
    while train_until_rename(config, run := tmp_path / f"run-{number}", number):
        train.run(config, run, resume=True, device="cpu", quiet=True)
        assert contents(run) == expected, number
        number += 1
    assert number > 20


@pytest.mark.parametrize(("size", "place"), [(0, "checksums.json"), (20000, "checkpoints")])
def test_a_training_that_cannot_write_says_so_and_can_be_repeated(
    nmt: Run, config: Config, tmp_path: Path, size: int, place: str
) -> None:
    (tmp_path / "toy.yaml").write_text(dump(config), encoding="utf-8")
    run = tmp_path / "run"
    words = ("train", "-c", tmp_path / "toy.yaml", "-o", run, "--device", "cpu", "-q", "--resume")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # No file may become larger. Also code that is not Python gets this error.
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        result = nmt(*words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert result.status == 1
    last = result.err.splitlines()[-1]
    assert last.startswith(f"nmt: {run / place}: ")
    assert "File too large" in last
    assert "earlier checkpoints are intact" in last
    assert nmt(*words).status == 0
    assert not list(run.rglob(".*.tmp"))
