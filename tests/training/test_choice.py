"""The choice among the kept checkpoints at the end of a training."""

import json
from pathlib import Path

import pytest

from nmt.files import read_json
from nmt.run.journal import Journal
from tests import toy
from tests.conftest import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Validated by one sentence, which says little."""
    training = {
        "max_steps": 60,
        "validate_every": 12,
        "keep_last": 4,
        "validation_pairs": 1,
        "learning_rate": {"peak": 0.02},
    }
    return toy.train(
        tmp_path_factory.mktemp("choice"), training={**training, "batch": {"size": 16}}
    )


def test_the_checkpoint_with_the_best_translations_of_the_dev_set_is_used(
    nmt: Run, run: Path
) -> None:
    (event,) = (
        event for event in Journal(run / "journal.jsonl").read() if event["event"] == "choice"
    )
    best = read_json(run / "checkpoints" / "best.json")
    assert (event["step"], event["pairs"], event["beam"], event["metric"]) == (60, 20, 5, "bleu")
    assert event["scores"].keys() == {path.name for path in (run / "checkpoints").glob("step-*")}
    assert len(event["scores"]) >= 4
    for name, value in event["scores"].items():  # as `nmt evaluate` scores them
        result = json.loads(
            nmt(
                "evaluate",
                run / "checkpoints" / name,
                "--split",
                "dev",
                "--metric",
                "bleu",
                "--json",
            ).out
        )
        assert result["scores"][0]["score"] == pytest.approx(value, abs=0.01)
    assert len(set(event["scores"].values())) > 1
    assert event["scores"][best["checkpoint"]] == max(event["scores"].values())


def test_the_choice_is_printed_and_changes_no_weights(nmt: Run, run: Path, tmp_path: Path) -> None:
    words = ["train", "-c", run / "config.yaml", "--set", "training.max_steps=24"]
    chosen = nmt(*words, "-o", tmp_path / "a")
    assert "chosen by BLEU of 20 dev pairs with beam 5: step-000000" in chosen.err
    plain = nmt(*words, "-o", tmp_path / "b", "--set", "training.final_pairs=0")
    assert (plain.status, "chosen" in plain.err) == (0, False)
    for name in ("model.safetensors", "optimizer.safetensors"):
        first, second = (
            (tmp_path / each / "checkpoints" / "step-00000024" / name).read_bytes() for each in "ab"
        )
        assert first == second


@pytest.mark.parametrize(
    "settings", [["training.metric=loss"], ["training.keep_last=1", "training.validate_every=24"]]
)
def test_there_may_be_nothing_to_choose(
    nmt: Run, run: Path, tmp_path: Path, settings: list[str]
) -> None:
    overrides = [
        word for setting in ("training.max_steps=24", *settings) for word in ("--set", setting)
    ]
    result = nmt("train", "-c", run / "config.yaml", "-o", tmp_path / "run", *overrides)
    assert (result.status, "chosen" in result.err) == (0, False)


@pytest.mark.slow
def test_a_training_that_goes_on_keeps_the_checkpoints_of_an_uninterrupted_one(
    nmt: Run, run: Path, tmp_path: Path
) -> None:
    words = ["train", "-c", run / "config.yaml", "-q", "--set", "training.max_steps"]
    assert nmt(*words[:-1], "training.max_steps=24", "-o", tmp_path / "a").status == 0
    for folder in "ab":
        resumed = ["--resume"] * (folder == "a")
        assert (
            nmt(*words[:-1], "training.max_steps=60", "-o", tmp_path / folder, *resumed).status == 0
        )
    first, second = (read_json(tmp_path / folder / "checkpoints" / "best.json") for folder in "ab")
    assert first == second
