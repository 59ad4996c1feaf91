"""`nmt runs average`, and averaging at the end of a training."""

import json
from pathlib import Path

import pytest
import yaml

from nmt.run.folder import lock_run
from tests import toy
from tests.conftest import Run

SIZES = {"embedding_size": 16, "encoder": {"hidden_size": 16}, "decoder": {"hidden_size": 16}}


@pytest.fixture
def config(nmt: Run, tmp_path: Path) -> Path:
    values = toy.configure(
        toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()[:150]),
        data={"split": {"dev": 10, "test": 10}, "prepared": str(tmp_path / "prepared")},
        model=SIZES,
        training={
            "max_steps": 6,
            "validate_every": 2,
            "validation_pairs": 5,
            "keep_best": 2,
            "keep_last": 3,
            "metric": "loss",
        },
    ).to_dict()
    path = tmp_path / "toy.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    assert nmt("prepare", "-c", path).status == 0
    return path


def last_event(run: Path) -> dict[str, object]:
    event: dict[str, object] = json.loads(
        (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    )
    return event


def test_a_run_is_averaged_afterwards(nmt: Run, config: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert nmt("train", "-c", config, "-o", run).status == 0
    result = nmt("runs", "average", run, "--kept", "last")
    assert result.status == 0
    assert result.out.startswith("average of steps 2, 4, 6  dev loss ")
    event = last_event(run)
    assert (event["event"], event["step"], event["members"]) == ("average", 6, [2, 4, 6])
    # In so short a training the last is by far the best.
    assert result.out.rstrip().endswith(": not better than the best checkpoint, which stays in use")
    assert nmt("translate", "--run", run, "The dog sees the tree.").status == 0
    with lock_run(run):
        result = nmt("runs", "average", run)
    assert result.err == f"nmt: {run}: another training is running in it\n"


@pytest.mark.slow
def test_training_average_averages_at_the_end(nmt: Run, config: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = nmt("train", "-c", config, "-o", run, "--set", "training.average=best")
    assert result.status == 0
    assert "average of steps 4, 6  dev loss " in result.err
    assert last_event(run)["members"] == [4, 6]
    more = ("--resume", "--set", "training.max_steps=8")
    again = nmt("train", "-c", config, "-o", run, "--set", "training.average=best", *more)
    assert again.status == 0
    assert last_event(run)["members"] == [6, 8]
