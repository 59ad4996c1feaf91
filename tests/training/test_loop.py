"""The training loop: it learns, and a resumed training equals an uninterrupted one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from nmt.config.load import config_from_dict
from nmt.config.schema import Config, DecodingConfig, OptimizerName
from nmt.data import batches as data_batches
from nmt.data.batches import Batch, build_batch, read_batches, shard
from nmt.data.corpus import Corpus, Sequences
from nmt.decoding.search import search
from nmt.device import supports_mixed_precision
from nmt.errors import TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import Checkpoints, load_optimizer, load_weights, read_progress
from nmt.run.progress import Interval, Progress
from nmt.training import loop, stopwatch
from nmt.training import objective as objective_module
from nmt.training.distributed import World
from nmt.training.loop import Hooks, Outcome, Update, fit, forward_backward, train_step
from nmt.training.loss import Loss, batch_loss
from nmt.training.objective import Objective
from nmt.training.optimization import OPTIMIZERS, averaging_function, build_optimizer
from nmt.training.record import describe_skipped

VOCABULARY = 14


def make_config(**sections: Any) -> Config:
    values = {
        "name": "test",
        "data": {"source": {"path": "none"}},
        "model": {
            "embedding_size": 32,
            "encoder": {"hidden_size": 32},
            "decoder": {"hidden_size": 64},
            "dropout": 0.0,
        },
        **sections,
    }
    return config_from_dict(values)


def make_corpus(n_pairs: int, seed: int, longest: int = 6) -> tuple[Corpus, list[list[int]]]:
    """Random sequences, and each reversed."""
    random = np.random.default_rng(seed)
    sources = [
        random.integers(4, VOCABULARY, size=random.integers(1, longest + 1)).tolist()
        for _ in range(n_pairs)
    ]
    return Corpus(
        to_sequences(sources), to_sequences([source[::-1] for source in sources])
    ), sources


def to_sequences(rows: Sequence[Sequence[int]]) -> Sequences:
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return Sequences((np.concatenate([np.asarray(row, np.int32) for row in rows]), offsets))


def make_model(config: Config) -> Seq2Seq:
    torch.manual_seed(config.seed)
    return Seq2Seq(config.model, VOCABULARY, VOCABULARY)


LUONG = {"decoder": {"hidden_size": 64}}
BAHDANAU = {
    "decoder": {"kind": "bahdanau", "readout": "state", "hidden_size": 64},
    "attention": {"score": "additive"},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LUONG, BAHDANAU], ids=["luong", "bahdanau"])
def test_learns_to_reverse(kind: dict[str, Any]) -> None:
    model_section = {"embedding_size": 32, "encoder": {"hidden_size": 32}, "dropout": 0.0, **kind}
    rate = {"peak": 0.005, "schedule": "cosine", "steps": 900}
    config = make_config(
        model=model_section, training={"epochs": 100, "max_steps": 900, "learning_rate": rate}
    )
    model = make_model(config)
    corpus, _ = make_corpus(8000, seed=1)
    progress = fit_to_end(
        model, build_optimizer(model, config.training), corpus, config, Progress(), Hooks()
    )
    assert progress.finished == "training.max_steps=900 is reached"
    _, held_out = make_corpus(300, seed=2)
    hypotheses = search(model.eval(), held_out, DecodingConfig(beam=1))
    exact = np.mean(
        [n_best[0].ids == source[::-1] for n_best, source in zip(hypotheses, held_out, strict=True)]
    )
    assert exact >= 0.99


COVERAGE = {"attention": {"kind": "coverage", "score": "additive"}}


@pytest.mark.parametrize(
    ("cell", "options", "stop_at"),
    [
        ("lstm", {}, 3),
        ("gru", COVERAGE, 21),
        pytest.param("lstm", {}, 14, marks=pytest.mark.slow),
        pytest.param("lstm", {}, 21, marks=pytest.mark.slow),
        pytest.param("gru", {}, 14, marks=pytest.mark.slow),
        pytest.param("gru", COVERAGE, 3, marks=pytest.mark.slow),
        pytest.param("gru", COVERAGE, 14, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_resumed_training_equals_an_uninterrupted_one(
    cell: str,
    options: dict[str, Any],
    stop_at: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dropout on, own outputs fed, in the middle of an epoch, and after a validation: the weights
    are the same to the bit.

    A training that stops at step 21 has epochs of several parts.
    """
    if stop_at == 21:
        monkeypatch.setattr(data_batches, "PART_PAIRS", 64)
        monkeypatch.setattr(data_batches, "RANGE_PAIRS", 8)
    common = {"cell": cell, "layers": 2}
    sizes = {"encoder": {"hidden_size": 8, **common}, "decoder": {"hidden_size": 16, **common}}
    training = {
        "max_steps": 30,
        "validate_every": 7,
        "batch": {"size": 16},
        "teacher_forcing": {"start": 0.7},
        "learning_rate": {"warmup_steps": 5, "schedule": "inverse_sqrt"},
        "epochs": 10,
    }
    config = make_config(
        model={"embedding_size": 8, "dropout": 0.3, **sizes, **options}, training=training
    )
    corpus, _ = make_corpus(150, seed=3)

    def train(
        progress: Progress, checkpoint: Path | None, stop: int | None, run: Path
    ) -> tuple[Seq2Seq, Progress, list[float]]:
        model = make_model(config)
        optimizer, losses = build_optimizer(model, config.training), list[float]()
        n_updates = count(1)
        if checkpoint is not None:
            load_weights(checkpoint, model)
            load_optimizer(checkpoint, model, optimizer)

        def save(progress: Progress, score: float | None) -> None:
            Checkpoints(run).save(progress, model, optimizer, score=score)

        def log(update: Update, outcome: Outcome, interval: Interval) -> None:
            losses.append(interval.objective)

        hooks = Hooks(log=log, save=save, stop=lambda: next(n_updates) == stop, validate=float)
        return model, fit_to_end(model, optimizer, corpus, config, progress, hooks), losses

    whole, end, losses = train(Progress(), None, None, tmp_path / "whole")
    _, stopped, first = train(Progress(), None, stop_at, tmp_path / "parts")
    assert (stopped.step, stopped.finished) == (stop_at, None)
    last = Checkpoints(tmp_path / "parts").find("last")
    assert last is not None
    assert read_progress(last) == stopped
    parts, resumed_end, second = train(stopped, last, None, tmp_path / "parts")
    assert first + second == losses
    assert replace(resumed_end, seconds=0, validation_seconds=0) == replace(
        end, seconds=0, validation_seconds=0
    )
    for name, value in whole.state_dict().items():
        assert torch.equal(value, parts.state_dict()[name]), name


def test_early_stopping_counts_validations_without_improvement() -> None:
    scores = iter([1.0, 3.0, 2.0, 3.0, 2.5, 9.0])
    config = make_config(training={"validate_every": 2, "patience": 3, "epochs": 50})
    model = make_model(config)
    saved: list[tuple[int, float | None]] = []
    hooks = Hooks(
        validate=lambda _: next(scores),
        save=lambda progress, score: saved.append((progress.step, score)),
    )
    corpus, _ = make_corpus(200, seed=1)
    end = fit_to_end(
        model, build_optimizer(model, config.training), corpus, config, Progress(), hooks
    )
    assert saved == [(2, 1.0), (4, 3.0), (6, 2.0), (8, 3.0), (10, 2.5)]
    assert (end.best, end.stale, end.finished) == (
        3.0,
        3,
        "no improvement in training.patience=3 validations",
    )


def fit_to_end(*args: Any, **kwargs: Any) -> Progress:
    """Train with `fit` until it ends; returns its progress."""
    updates = fit(*args, **kwargs)
    while True:
        try:
            next(updates)
        except StopIteration as end:
            progress: Progress = end.value
            return progress


def weights_of(model: Seq2Seq) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_an_update_that_is_not_finite_is_skipped_and_reported() -> None:
    config = make_config(training={"epochs": 1, "batch": {"size": 16}, "max_skipped": 3})
    model = make_model(config)
    corpus, _ = make_corpus(160, seed=1)
    warnings: list[tuple[int, str]] = []
    weights: list[dict[str, torch.Tensor]] = []

    def log(update: Update, outcome: Outcome, interval: Interval) -> None:
        if not outcome.is_finite:
            warnings.append((update.step, describe_skipped(update, outcome)))
        weights.append(weights_of(model))
        with torch.no_grad():  # the fourth and fifth updates meet a weight that is not finite
            model.get_parameter("output.logits.bias")[5] = (
                float("inf") if update.step in (3, 4) else 0.0
            )

    hooks = Hooks(log=log)
    end = fit_to_end(
        model, build_optimizer(model, config.training), corpus, config, Progress(), hooks
    )
    assert (end.step, end.skipped, end.skipped_in_row) == (10, 2, 0)
    assert [step for step, _ in warnings] == [4, 5]
    assert re.fullmatch(
        r"step 4: the loss \((inf|nan)\) or its gradient \(nan\) is not finite; update skipped "
        r"\(epoch 1, batch 4: 16 pairs, (\d+, ){5}\.\.\.\)",
        warnings[0][1],
    )
    for name, value in weights[3].items():
        assert torch.equal(value, weights[4][name]), name
    assert all(value.isfinite().all() for value in weights[9].values())


def test_training_fails_after_too_many_skipped_updates_in_a_row() -> None:
    config = make_config(training={"max_skipped": 3, "batch": {"size": 16}})
    model = make_model(config)
    corpus, _ = make_corpus(160, seed=1)
    with torch.no_grad():
        model.get_parameter("output.logits.bias")[5] = float("nan")
    saved: list[object] = []
    hooks = Hooks(save=lambda *progress: saved.append(progress))
    with pytest.raises(
        TrainingError,
        match=r"step 3: loss or gradient was not finite in 3 updates in a row; the last checkpoint is",
    ):
        fit_to_end(
            model, build_optimizer(model, config.training), corpus, config, Progress(), hooks
        )
    assert saved == []


@pytest.mark.parametrize("shares", [2, 3])
def test_an_update_does_not_depend_on_the_number_of_micro_batches(shares: int) -> None:
    """The mean is over the tokens of all: shares with fewer of them weigh less."""
    config = make_config(training={"label_smoothing": 0.1})
    corpus, _ = make_corpus(25, seed=4)
    pairs = np.arange(25)
    results = []
    for parts in ([pairs], shard(pairs, shares)):
        model = make_model(config).double()
        optimizer = build_optimizer(model, config.training)
        outcome = train_step(
            Objective(model, config.training),
            optimizer,
            list(read_batches(corpus, parts)),
            1,
            config,
            0.01,
        )
        results.append((outcome, weights_of(model)))
    (whole, whole_weights), (parts_outcome, parts_weights) = results
    assert parts_outcome.n_tokens == whole.n_tokens
    assert parts_outcome.objective == pytest.approx(whole.objective, rel=1e-12)
    assert parts_outcome.gradient_norm == pytest.approx(whole.gradient_norm, rel=1e-9)
    for name, value in whole_weights.items():
        torch.testing.assert_close(parts_weights[name], value, atol=1e-10, rtol=0)


def test_accumulating_equals_a_larger_batch() -> None:
    corpus, _ = make_corpus(100, seed=4)
    trained = []
    for size, accumulate in ((24, 1), (8, 3)):
        config = make_config(
            training={"epochs": 2, "batch": {"size": size}, "accumulate": accumulate}
        )
        model = make_model(config).double()
        end = fit_to_end(
            model, build_optimizer(model, config.training), corpus, config, Progress(), Hooks()
        )
        trained.append((end.step, weights_of(model)))
    (steps, whole), (steps_too, parts) = trained
    assert steps == steps_too == 10
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, atol=1e-10, rtol=0)


def test_micro_batches_that_do_not_fit_are_split_in_half(monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config()
    corpus, _ = make_corpus(25, seed=4)
    (batch,) = read_batches(corpus, [np.arange(25)])
    sizes: list[int] = []

    def small_memory(model: Seq2Seq, batch: Batch, *arguments: Any) -> Loss:
        sizes.append(len(batch))
        if len(batch) > 7:
            raise torch.OutOfMemoryError
        return batch_loss(model, batch, *arguments)

    whole = make_model(config).double()
    train_step(
        Objective(whole, config.training),
        build_optimizer(whole, config.training),
        [batch],
        1,
        config,
        0.01,
    )
    monkeypatch.setattr(objective_module, "batch_loss", small_memory)
    parts = make_model(config).double()
    outcome = train_step(
        Objective(parts, config.training),
        build_optimizer(parts, config.training),
        [batch],
        1,
        config,
        0.01,
    )
    assert sizes == [25, 12, 6, 6, 6, 7]
    assert outcome.n_tokens == batch.n_tokens
    for name, value in weights_of(whole).items():
        torch.testing.assert_close(weights_of(parts)[name], value, atol=1e-10, rtol=0)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_two_ranks_never_draw_the_same_dropout(
    accumulate: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even after an out-of-memory split, which gives a rank more micro-batches than planned."""
    config = make_config(training={"accumulate": accumulate})
    model = make_model(config)
    batch = build_batch([[5, 6]], [[6, 5]])
    seeds: list[int] = []

    def record(model: Seq2Seq, batch: Batch, *arguments: Any) -> Loss:
        seeds.append(torch.initial_seed())
        return batch_loss(model, batch, *arguments)

    monkeypatch.setattr(objective_module, "batch_loss", record)
    for rank in range(3):
        objective = Objective(model, config.training, World(rank))
        forward_backward(objective, build_optimizer(model, config.training), [batch] * 4, 7, config)
    assert len(set(seeds)) == 12


def test_a_single_pair_that_does_not_fit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object, **__: object) -> Loss:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(objective_module, "batch_loss", no_memory)
    config = make_config()
    model = make_model(config)
    batch = build_batch([[5] * 40, [5]], [[6] * 30, [6]])
    with pytest.raises(
        TrainingError, match="out of memory with a single pair of 41 source and 31 target tokens"
    ):
        train_step(
            Objective(model, config.training),
            build_optimizer(model, config.training),
            [batch],
            1,
            config,
            0.01,
        )


def test_checkpoints_are_also_saved_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each update takes half a minute; the validations save, too, and the time counts from the last
    checkpoint.
    """
    config = make_config(
        training={"max_steps": 12, "validate_every": 5, "epochs": 9, "checkpoint_minutes": 1}
    )
    corpus, _ = make_corpus(100, seed=1)
    Clock(monkeypatch, 30.0, update=counted_update)
    saved: list[tuple[int, float | None]] = []
    hooks = Hooks(validate=float, save=lambda progress, score: saved.append((progress.step, score)))
    model = make_model(config)
    fit_to_end(model, build_optimizer(model, config.training), corpus, config, Progress(), hooks)
    assert saved == [(2, None), (4, None), (5, 5.0), (7, None), (9, None), (10, 10.0), (12, 12.0)]


def test_only_a_plateau_lowers_the_rate() -> None:
    scores = iter([5.0, 4.0, 4.0, 4.0, 6.0, 4.0, 4.0])
    rate = {"peak": 0.01, "schedule": "plateau", "patience": 2, "factor": 0.1}
    config = make_config(
        training={"validate_every": 1, "max_steps": 7, "batch": {"size": 16}, "learning_rate": rate}
    )
    model = make_model(config)
    corpus, _ = make_corpus(200, seed=1)
    rates: list[float] = []
    hooks = Hooks(
        validate=lambda _: next(scores),
        log=lambda _, outcome, __: rates.append(outcome.learning_rate),
    )
    fit_to_end(model, build_optimizer(model, config.training), corpus, config, Progress(), hooks)
    assert rates == pytest.approx([0.01, 0.01, 0.01, 0.001, 0.001, 0.001, 0.001])


class Clock:
    """A clock for the training loop: each update takes `update_seconds`; nothing else takes time
    unless the test says so.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        update_seconds: float,
        now: float = 0.0,
        update: Callable[..., Outcome] = train_step,
    ) -> None:
        self.now, self.update_seconds, self.update = now, update_seconds, update
        monkeypatch.setattr(stopwatch, "time", self)
        monkeypatch.setattr(loop, "train_step", self.train_step)

    def monotonic(self) -> float:
        return self.now

    def train_step(self, *arguments: Any) -> Outcome:
        self.now += self.update_seconds
        return self.update(*arguments)


def counted_update(*arguments: Any) -> Outcome:
    """In place of `train_step`: changes nothing."""
    return Outcome(1.0, 1.0, 1, 1.0, learning_rate=arguments[5], forcing_ratio=1.0)


@pytest.mark.parametrize(
    ("update_seconds", "n_updates", "seconds"), [(0.25, 200, 58), (0.5, 104, 60), (4.0, 15, 64)]
)
@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_the_rate_falls_to_0_within_max_minutes_on_any_machine(
    schedule: str,
    update_seconds: float,
    n_updates: int,
    seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The minute includes the last validation. Only where it is the first one, its time is not
    known before.
    """
    rate = {"peak": 0.01, "schedule": schedule, "steps": None}
    training = {"epochs": 1000, "max_minutes": 1, "validate_every": 100, "learning_rate": rate}
    config = make_config(training=training)
    corpus, _ = make_corpus(10, seed=1)
    clock, rates, model = (
        Clock(monkeypatch, update_seconds, update=counted_update),
        list[float](),
        make_model(config),
    )

    def validate(_: int) -> float:
        clock.now += 4
        return 1.0

    hooks = Hooks(validate=validate, log=lambda _, outcome, __: rates.append(outcome.learning_rate))
    end = fit_to_end(
        model, build_optimizer(model, config.training), corpus, config, Progress(), hooks
    )
    assert (end.step, end.seconds, end.finished) == (
        n_updates,
        seconds,
        "training.max_minutes=1 is reached",
    )
    assert rates[0] == 0.01
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] <= 0.01 * 4 / 60


def test_a_resumed_training_with_max_minutes_continues_from_the_recorded_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a clock that gives each update and each validation the same time, rates and weights are
    the same to the bit.
    """
    rate = {"peak": 0.01, "schedule": "linear", "steps": None, "warmup_steps": 4}
    training = {
        "epochs": 100,
        "max_minutes": 1,
        "validate_every": 7,
        "batch": {"size": 16},
        "patience": 100,
        "learning_rate": rate,
    }
    config = make_config(training=training)
    corpus, _ = make_corpus(100, seed=1)

    def train(
        progress: Progress, checkpoint: Path | None, stop: int | None, now: float
    ) -> tuple[Seq2Seq, Progress, list[float]]:
        model, clock, rates = make_model(config), Clock(monkeypatch, 2.0, now), list[float]()
        optimizer = build_optimizer(model, config.training)
        if checkpoint is not None:
            load_weights(checkpoint, model)
            load_optimizer(checkpoint, model, optimizer)

        def validate(_: int) -> float:
            clock.now += 3
            return 1.0

        def save(progress: Progress, score: float | None) -> None:
            Checkpoints(tmp_path).save(progress, model, optimizer, score=score)

        n_updates = count(1)
        hooks = Hooks(
            log=lambda _, outcome, __: rates.append(outcome.learning_rate),
            validate=validate,
            save=save,
            stop=lambda: next(n_updates) == stop,
        )
        return model, fit_to_end(model, optimizer, corpus, config, progress, hooks), rates

    whole, end, rates = train(Progress(), None, None, now=0.0)
    assert (end.step, end.seconds) == (24, 60)
    _, stopped, first = train(Progress(), None, 10, now=100.0)
    checkpoint = tmp_path / "checkpoints" / "step-00000010"
    assert read_progress(checkpoint) == stopped
    parts, resumed_end, second = train(stopped, checkpoint, None, now=1000.0)
    assert (first + second, resumed_end) == (rates, end)
    for name, value in weights_of(whole).items():
        assert torch.equal(value, weights_of(parts)[name]), name


def test_all_processes_follow_the_clock_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    received = iter([(15.0, False), (30.0, False), (55.0, False), 1.0, 60.0])

    class Second(World):
        def broadcast(self, value: Any) -> Any:
            return next(received)

        def parallel(self, module: nn.Module) -> nn.Module:
            return module

    rate = {"peak": 1.0, "schedule": "linear", "steps": None}
    config = make_config(training={"max_minutes": 1, "validate_every": 3, "learning_rate": rate})
    corpus, _ = make_corpus(100, seed=1)
    rates: list[float] = []

    def update(*arguments: Any) -> Outcome:
        rates.append(arguments[5])
        return counted_update(*arguments)

    Clock(monkeypatch, 7.0, now=3.0, update=update)
    model, world = make_model(config), Second(rank=1, size=2)
    end = fit_to_end(
        model,
        build_optimizer(model, config.training),
        corpus,
        config,
        Progress(),
        Hooks(),
        world=world,
    )
    assert (end.seconds, end.validation_seconds) == (60, 5)
    assert rates == [1.0, 0.75, 0.5]


@pytest.mark.parametrize("warmup", [False, True])
def test_the_moving_average_follows_the_weights(warmup: bool) -> None:
    averaging = {"moving_average": 0.5 if warmup else 0.9, "moving_average_warmup": warmup}
    config = make_config(
        training={"max_steps": 12, "validate_every": 3, "batch": {"size": 16}, **averaging}
    )
    model = make_model(config)
    averaged = AveragedModel(model, multi_avg_fn=averaging_function(config.training))
    corpus, _ = make_corpus(200, seed=1)
    trail: list[dict[str, torch.Tensor]] = []
    hooks = Hooks(log=lambda *_: trail.append(weights_of(model)))
    fit_to_end(
        model,
        build_optimizer(model, config.training),
        corpus,
        config,
        Progress(),
        hooks,
        averaged=averaged,
    )
    expected = trail[0]
    for n, weights in enumerate(trail[1:], start=1):
        decay = min(0.5, (1 + n) / (10 + n)) if warmup else 0.9
        expected = {
            name: decay * expected[name] + (1 - decay) * value for name, value in weights.items()
        }
    for name, value in averaged.module.state_dict().items():
        torch.testing.assert_close(value, expected[name])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_lowers_the_loss_and_resumes_from_a_checkpoint(
    name: OptimizerName, tmp_path: Path
) -> None:
    momentum = {"momentum": 0.9} if name == "sgd" else {}
    config = make_config(training={"optimizer": name, "weight_decay": 0.001, **momentum})
    corpus, _ = make_corpus(32, seed=4)
    (batch,) = read_batches(corpus, [np.arange(32)])
    rate = 0.5 if name == "sgd" else 0.01
    model = make_model(config)
    optimizer = build_optimizer(model, config.training)
    losses = [
        train_step(
            Objective(model, config.training), optimizer, [batch], step, config, rate
        ).objective
        for step in range(1, 6)
    ]
    assert losses[-1] < losses[0]
    Checkpoints(tmp_path).save(Progress(step=5), model, optimizer)
    other = make_model(config)
    other_optimizer = build_optimizer(other, config.training)
    load_weights(tmp_path / "checkpoints" / "step-00000005", other)
    load_optimizer(tmp_path / "checkpoints" / "step-00000005", other, other_optimizer)
    for one, its_optimizer in ((model, optimizer), (other, other_optimizer)):
        train_step(Objective(one, config.training), its_optimizer, [batch], 6, config, rate)
    for key, value in weights_of(model).items():
        assert torch.equal(value, other.state_dict()[key]), key


@pytest.mark.parametrize("device", [torch.device("cpu"), torch.device("cuda")], ids=str)
@pytest.mark.parametrize(
    ("model_values", "training"),
    [
        ({}, {}),
        ({"output": "adaptive", "cutoffs": [6]}, {}),
        ({"dropout": 0.1, "lexical_bias": 2}, {}),
        (
            {
                "encoder": {"cell": "gru", "hidden_size": 8},
                "decoder": {"kind": "bahdanau", "cell": "gru", "readout": "deep"},
            },
            {},
        ),
        (
            {
                "encoder": {"cell": "lstm", "hidden_size": 8},
                "decoder": {"kind": "gnmt", "cell": "lstm", "hidden_size": 12, "layers": 2},
            },
            {},
        ),
        (
            {"decoder": {"hidden_size": 12, "input_feeding": True}},
            {"teacher_forcing": {"start": 0.5}},
        ),
    ],
    ids=["default", "adaptive", "lexical", "bahdanau", "gnmt", "steps"],
)
def test_bfloat16_gives_nearly_the_same_loss(
    device: torch.device, model_values: dict[str, Any], training: dict[str, Any]
) -> None:
    if (device.type == "cuda" and not torch.cuda.is_available()) or not supports_mixed_precision(
        device
    ):
        pytest.skip(f"no fast bfloat16 on {device}")
    corpus, _ = make_corpus(32, seed=4)
    (batch,) = read_batches(corpus, [np.arange(32)])
    outcomes = []
    for precision in ("float32", "bfloat16", "bfloat16"):
        model_section = {
            "embedding_size": 32,
            "encoder": {"hidden_size": 32},
            "decoder": {"hidden_size": 64},
            "dropout": 0.0,
        } | model_values
        config = make_config(
            model=model_section, training={"precision": precision, "optimizer": "sgd", **training}
        )
        model = make_model(config).to(device)
        outcomes.append(
            train_step(
                Objective(model, config.training),
                build_optimizer(model, config.training),
                [batch],
                1,
                config,
                0.0,
            )
        )
        assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    exact, mixed, again = (outcome.objective for outcome in outcomes)
    assert mixed == pytest.approx(exact, rel=0.01)
    assert mixed != exact
    assert device.type == "cuda" or mixed == again


def test_every_optimizer_name_has_an_optimizer() -> None:
    assert set(get_args(OptimizerName)) == set(OPTIMIZERS)
