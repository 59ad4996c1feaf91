"""Validations, and the choice among the kept checkpoints at the end of a training."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from nmt.config.load import load_config
from nmt.files import read_json
from nmt.run.folder import load_run_config, load_vocabularies
from nmt.run.journal import read_events
from nmt.run.weights import build_model
from nmt.training.validation import Validator, choose, choose_checkpoint
from tests import toy
from tests.conftest import Run

CPU = torch.device("cpu")


def test_validation_follows_the_weights(folder: Path) -> None:
    run = folder / "run"
    config = load_run_config(run)
    model = build_model(run, config).eval()
    validator = Validator(model, config, run)
    before = validator.validate()
    favorite = load_vocabularies(run)[1].ids(["Hund"])[0]
    with torch.no_grad():
        model.output.get_parameter("logits.weight").zero_()
        model.output.get_parameter("logits.bias")[favorite] += 1e-3
    after = validator.validate()
    assert all(set(sample.output.split()) == {"Hund"} for sample in after.samples)
    assert [sample.output for sample in before.samples] != [
        sample.output for sample in after.samples
    ]
    assert model.output.get_parameter("logits.weight").requires_grad


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was validated by one sentence, which says little."""
    training = {
        "max_steps": 48,
        "validate_every": 12,
        "keep_last": 4,
        "validation_pairs": 1,
        "learning_rate": {"peak": 0.02},
        "batch": {"size": 16},
    }
    return toy.train(tmp_path_factory.mktemp("choice"), training=training)


def test_the_checkpoint_with_the_best_translations_of_the_dev_set_is_used(
    nmt: Run, chosen: Path
) -> None:
    event = read_events(chosen / "journal.jsonl")[-1]
    best = read_json(chosen / "checkpoints" / "best.json")
    assert (event["step"], event["pairs"], event["beam"], event["metric"]) == (48, 20, 5, "bleu")
    assert event["scores"].keys() == {path.name for path in (chosen / "checkpoints").glob("step-*")}
    assert len(event["scores"]) == 4
    options = ("--split", "dev", "--metric", "bleu", "--json")
    for name, value in event["scores"].items():  # as `nmt evaluate` scores them
        result = json.loads(nmt("evaluate", chosen / "checkpoints" / name, *options).out)
        assert result["scores"][0]["score"] == pytest.approx(value, abs=0.01)
    assert len(set(event["scores"].values())) > 1
    assert event["scores"][best["checkpoint"]] == max(event["scores"].values())


def test_the_choice_is_printed_and_made_once(chosen: Path, tmp_path: Path) -> None:
    run, config = tmp_path / "run", load_run_config(chosen)
    shutil.copytree(chosen, run)
    assert choose(run, config, CPU, 48) is None
    path, best = run / "journal.jsonl", (run / "checkpoints" / "best.json").read_bytes()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    line = choose(run, config, CPU, 48)
    assert line is not None
    assert line.startswith("chosen by BLEU of 20 dev pairs with beam 5: step-000000")
    assert (run / "checkpoints" / "best.json").read_bytes() == best
    assert len(read_events(path)) == len(read_events(chosen / "journal.jsonl"))


@pytest.mark.parametrize("key", ["metric=loss", "final_pairs=0", "one checkpoint"])
def test_there_may_be_nothing_to_choose(chosen: Path, folder: Path, key: str) -> None:
    run = folder / "run" if key == "one checkpoint" else chosen
    config = load_config(run / "config.yaml", [f"training.{key}"] if "=" in key else [])
    assert choose_checkpoint(run, config, CPU) is None


@pytest.mark.slow
def test_a_training_that_goes_on_keeps_the_checkpoints_of_an_uninterrupted_one(
    nmt: Run, chosen: Path, tmp_path: Path
) -> None:
    words = ["train", "-c", chosen / "config.yaml", "-q", "-o", tmp_path / "run", "--resume"]
    for steps in (24, 48):
        assert nmt(*words, "--set", f"training.max_steps={steps}").status == 0
    first, second = (read_json(run / "checkpoints/best.json") for run in (tmp_path / "run", chosen))
    assert first == second
