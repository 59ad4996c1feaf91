"""`nmt runs average`, and averaging at the end of a training."""

from pathlib import Path

import pytest

from nmt.files import read_json, write_json
from nmt.run.folder import lock_run
from nmt.run.journal import read_events
from tests.conftest import Run


def test_a_run_is_averaged_afterwards(nmt: Run, short: Path) -> None:
    result = nmt("runs", "average", short, "--kept", "last")
    assert result.status == 0
    assert result.out.startswith("average of steps 2, 4, 6  dev loss ")
    event = read_events(short / "journal.jsonl")[-1]
    assert (event["event"], event["step"], event["members"]) == ("average", 6, [2, 4, 6])
    # In so short a training the last is by far the best.
    assert result.out.rstrip().endswith(": not better than the best checkpoint, which stays in use")
    assert nmt("translate", "--run", short, "The dog sees the tree.").status == 0
    with lock_run(short):
        result = nmt("runs", "average", short)
    assert result.err == f"nmt: {short}: another training is running in it\n"


def test_an_average_that_is_used_has_graphs(nmt: Run, short: Path) -> None:
    path = short / "checkpoints" / "best.json"
    pointer = read_json(path)
    for kept in pointer["kept"]:
        kept |= {"score": -99.0, "loss": 99.0}  # worse than any average
    write_json(path, pointer)
    average = nmt.prints("runs", "average", short, "--kept", "last")
    assert ": the best checkpoint, used from now on\n" in average
    assert nmt.prints("translate", "--run", short, "The dog sees the tree.")


@pytest.mark.slow
def test_training_average_averages_at_the_end(nmt: Run, made: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train = ("train", "-c", made / "run" / "config.yaml", "-o", run, "--set")
    result = nmt(*train, "training.average=best")
    assert result.status == 0
    assert "average of steps 4, 6  dev loss " in result.err
    assert read_events(run / "journal.jsonl")[-1]["members"] == [4, 6]
    more = ("--resume", "--set", "training.max_steps=8")
    assert nmt(*train, "training.average=best", *more).status == 0
    assert read_events(run / "journal.jsonl")[-1]["members"] == [6, 8]
