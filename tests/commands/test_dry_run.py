"""`nmt train --dry-run`."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from nmt.commands import dry_run, train
from nmt.config.load import load
from nmt.data.batching import plan_batches
from nmt.data.corpus import Corpus
from nmt.model.seq2seq import Seq2Seq
from tests import toy
from tests.conftest import Run

SIZES = {"embedding_size": 16, "encoder": {"hidden_size": 16}, "decoder": {"hidden_size": 16}}


@pytest.fixture
def config(nmt: Run, tmp_path: Path) -> Path:
    values = toy.configure(
        toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()),
        data={"split": {"dev": 10, "test": 10}, "prepared": str(tmp_path / "prepared")},
        model=SIZES,
        training={"epochs": 3, "batch": {"size": 8}, "learning_rate": {"schedule": "linear", "warmup_steps": 20, "steps": 200}},
    ).to_dict()
    path = tmp_path / "toy.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    assert nmt("prepare", "-c", path).status == 0
    return path


def test_it_says_what_an_epoch_takes_and_leaves_nothing(nmt: Run, config: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    result = nmt("train", "-c", config, "-o", tmp_path / "run", "--dry-run")
    assert result.status == 0
    assert "name: toy" in result.out
    assert "in all" in result.out
    assert f"the run would be {tmp_path / 'run'}" in result.out
    assert "an epoch takes about " in result.out
    assert re.search(r"learning rate   [▁-█]{48}  0.001 at most, 0 at step 2\d\d\n", result.out)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_forecast_of_an_epoch_is_near_its_sum(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With updates that take as long as they have positions, whatever the clock says."""
    loaded = load(config)

    def step(self: dry_run._Stepper, pairs: np.ndarray) -> float:
        return 1.0 + 0.25 * dry_run._cost(self.corpus, pairs)

    monkeypatch.setattr(dry_run._Stepper, "step", step)
    corpus = Corpus.load(loaded.prepared_folder, "train")
    plan = plan_batches(corpus.src.lengths, corpus.tgt.lengths, loaded.training.batch, seed=1, epoch=0)
    seconds, peak = dry_run.measure(Seq2Seq(loaded.model, 60, 60), corpus, plan, loaded)
    assert peak is not None
    expected = sum(1.0 + 0.25 * dry_run._cost(corpus, pairs) for pairs in plan)
    assert seconds == pytest.approx(expected, rel=0.02)
    assert peak > 1e7


def test_a_forecast_leaves_a_training_as_it_would_be(config: Path, tmp_path: Path) -> None:
    loaded = load(config, ["training.max_steps=3", "training.validation_pairs=5"])
    train.run(loaded, tmp_path / "one", device="cpu", quiet=True)
    dry_run.describe(loaded, device="cpu")
    train.run(loaded, tmp_path / "two", device="cpu", quiet=True)
    one, two = ((tmp_path / run / "checkpoints/step-00000003/model.safetensors").read_bytes() for run in ("one", "two"))
    assert one == two


def test_sparkline() -> None:
    assert dry_run.sparkline([0, 1, 2]) == "▁▅█"
    assert dry_run.sparkline([0, 0]) == "▁▁"
