"""`nmt init --from`: a configuration that fine-tunes a run with other data."""

import shutil
from pathlib import Path

import pytest

from nmt.commands import prepare
from nmt.config.load import load_config
from nmt.extras.init.proposal import DROPOUT
from nmt.run.folder import write_run_config
from tests import toy
from tests.conftest import Run


def test_fine_tuning(nmt: Run, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    new = [(f"Now {src}", f"Jetzt {tgt}") for src, tgt in toy.sentence_pairs()[:200]]
    toy.write_table(tmp_path / "pairs.tsv", new)
    result = nmt("init", "x", "--data", "pairs.tsv", "--from", run)
    assert (result.status, result.err) == (0, "")
    assert "the others for training; 70% of the training pairs are of the run\n" in result.out
    config, parent = load_config(Path("x/x.yaml")), load_config(run / "config.yaml")
    assert (config.model.dropout, config.model.src_embedding_dropout) == (0.5, 0.3)
    rates = {key: getattr(parent.model, key) for key in DROPOUT}
    assert config.model.model_copy(update=rates) == parent.model
    assert config.tokenizer == parent.tokenizer
    assert (config.training.max_steps, config.training.learning_rate.warmup_steps) == (1000, 200)
    assert config.training.start_from == config.vocabulary.like == run
    assert config.training.learning_rate.peak == parent.training.learning_rate.peak == 0.01
    manifest = prepare.run(load_config(Path("x/x.yaml"), ["data.workers=1"]), progress=False)
    assert [*manifest["counts"]["sources"]] == ["general", "memory"]
    assert manifest["counts"]["sources"]["memory"]["kept"] == 200
    words = ("-c", "x/x.yaml", "-q", "--set", "training.max_steps=2")
    assert nmt("train", *words, "--set", "training.validate_every=2").status == 0
    other = nmt("init", "y", "--data", "pairs.tsv", "--from", run, "--direction", "en-fr")
    assert "translates en-de, so it cannot be fine-tuned for en-fr" in other.err
    assert "no run here" in nmt("init", "y", "--data", "pairs.tsv", "--from", tmp_path).err


def test_the_data_of_the_run_is_gone(
    nmt: Run, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()[:200])
    alone = shutil.copytree(run, tmp_path / "alone")
    write_run_config(alone, load_config(run / "config.yaml", ["data.prepared=gone"]))
    result = nmt("init", "x", "--data", "pairs.tsv", "--from", alone)
    assert result.status == 0
    assert "general     none: gone, the data of the run, is not there; prepare it" in result.out
