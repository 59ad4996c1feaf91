"""The loop learns, and a training that was stopped and resumed is the training that was not."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config import Config
from nmt.decoding.search import SearchOptions
from nmt.decoding.translator import search_batch
from nmt.errors import TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.text.batching import build_batch
from nmt.text.corpus import Corpus, Sequences
from nmt.training.checkpoint import Checkpoints, Progress, load_optimizer, load_weights, read_progress
from nmt.training.loop import Hooks, Update, build_optimizer, fit, train_step

VOCABULARY = 14


def make_config(**sections: Any) -> Config:
    values = {
        "name": "test",
        "data": {"source": {"path": "none"}},
        "model": {"embedding_size": 32, "encoder": {"hidden_size": 32}, "decoder": {"hidden_size": 64}, "dropout": 0.0},
        **sections,
    }
    return Config.from_dict(values)


def make_corpus(n_pairs: int, seed: int, longest: int = 6) -> tuple[Corpus, list[list[int]]]:
    """Random sequences, and each reversed."""
    random = np.random.default_rng(seed)
    sources = [random.integers(4, VOCABULARY, size=random.integers(1, longest + 1)).tolist() for _ in range(n_pairs)]
    return Corpus(to_sequences(sources), to_sequences([source[::-1] for source in sources])), sources


def to_sequences(rows: Sequence[Sequence[int]]) -> Sequences:
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return Sequences(np.concatenate([np.asarray(row, np.int32) for row in rows]), offsets)


def make_model(config: Config) -> Seq2Seq:
    torch.manual_seed(config.seed)
    return Seq2Seq(config.model, VOCABULARY, VOCABULARY)


def silent(**hooks: Any) -> Hooks:
    return Hooks(**{"log": lambda _: None, "validate": lambda _: 0.0, "save": lambda *_: None, "stop": lambda: False, **hooks})


LUONG = {"decoder": {"hidden_size": 64}}
BAHDANAU = {"decoder": {"kind": "bahdanau", "readout": "state", "hidden_size": 64}, "attention": {"score": "additive"}}


@pytest.mark.parametrize("kind", [LUONG, BAHDANAU], ids=["luong", "bahdanau"])
def test_learns_to_reverse(kind: dict[str, Any]) -> None:
    model_section = {"embedding_size": 32, "encoder": {"hidden_size": 32}, "dropout": 0.0, **kind}
    rate = {"peak": 0.005, "schedule": "cosine", "steps": 900}
    config = make_config(model=model_section, training={"epochs": 100, "max_steps": 900, "learning_rate": rate})
    model = make_model(config)
    corpus, _ = make_corpus(8000, seed=1)
    progress = fit(model, build_optimizer(model, config), corpus, config, Progress(), silent())
    assert progress.finished == "900 steps done"
    _, held_out = make_corpus(300, seed=2)
    found = search_batch(model.eval(), held_out, SearchOptions(beam=1))
    exact = np.mean([hypotheses[0].ids == source[::-1] for hypotheses, source in zip(found, held_out, strict=True)])
    assert exact >= 0.99


VARIATIONAL = {"variational_dropout": True, "word_dropout": 0.1, "attention": {"kind": "coverage", "score": "additive"}}


@pytest.mark.parametrize(("cell", "options"), [("lstm", {}), ("gru", {}), ("gru", VARIATIONAL)], ids=str)
@pytest.mark.parametrize("stop_at", [3, 14, 21])
def test_resuming_equals_never_having_stopped(cell: str, options: dict[str, Any], stop_at: int, tmp_path: Path) -> None:
    """Dropout on, own outputs fed, in the middle of an epoch, and after a validation: the weights are the same to the bit."""
    sizes = {"encoder": {"hidden_size": 8, "cell": cell, "layers": 2}, "decoder": {"hidden_size": 16, "cell": cell, "layers": 2}}
    training = {
        "max_steps": 30,
        "validate_every": 7,
        "batch": {"size": 16},
        "teacher_forcing": {"start": 0.7},
        "learning_rate": {"warmup_steps": 5, "schedule": "inverse_sqrt"},
        "epochs": 10,
    }
    config = make_config(model={"embedding_size": 8, "dropout": 0.3, **sizes, **options}, training=training)
    corpus, _ = make_corpus(150, seed=3)

    def train(progress: Progress, checkpoint: Path | None, stop: int | None, run: Path) -> tuple[Seq2Seq, Progress, list[float]]:
        model = make_model(config)
        optimizer, losses = build_optimizer(model, config), list[float]()
        if checkpoint is not None:
            load_weights(checkpoint, model)
            load_optimizer(checkpoint, model, optimizer)

        def save(progress: Progress, best: bool) -> None:
            Checkpoints(run).save(progress, model, optimizer, best=best)

        def log(update: Update) -> None:
            losses.append(update.loss)

        hooks = silent(log=log, save=save, stop=lambda: len(losses) == stop, validate=float)
        return model, fit(model, optimizer, corpus, config, progress, hooks), losses

    whole, end, losses = train(Progress(), None, None, tmp_path / "whole")
    _, stopped, first = train(Progress(), None, stop_at, tmp_path / "parts")
    assert (stopped.step, stopped.finished) == (stop_at, None)
    last = Checkpoints(tmp_path / "parts").find("last")
    assert last is not None
    assert read_progress(last) == stopped
    parts, resumed_end, second = train(stopped, last, None, tmp_path / "parts")
    assert first + second == losses
    assert replace(resumed_end, seconds=0) == replace(end, seconds=0)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, parts.state_dict()[name]), name


def test_early_stopping_counts_validations_without_a_better_one() -> None:
    scores = iter([1.0, 3.0, 2.0, 3.0, 2.5, 9.0])
    config = make_config(training={"validate_every": 2, "patience": 3, "epochs": 50})
    model = make_model(config)
    saved: list[tuple[int, bool]] = []
    hooks = silent(validate=lambda _: next(scores), save=lambda progress, best: saved.append((progress.step, best)))
    corpus, _ = make_corpus(200, seed=1)
    end = fit(model, build_optimizer(model, config), corpus, config, Progress(), hooks)
    assert saved == [(2, True), (4, True), (6, False), (8, False), (10, False)]
    assert (end.best, end.stale, end.finished) == (3.0, 3, "no better validation for a while")


def test_a_loss_that_is_not_finite_stops_training_and_leaves_the_weights() -> None:
    config = make_config()
    model = make_model(config)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = build_optimizer(model, config)
    with torch.no_grad():
        model.output.logits.bias[5] = float("inf")
    before["output.logits.bias"] = model.output.logits.bias.detach().clone()
    with pytest.raises(TrainingError, match=r"step 7: the loss .* is not finite; lower the learning rate"):
        train_step(model, optimizer, build_batch([[5, 6]], [[6, 5]]), 7, config)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
