"""The training loop: it learns, and a resumed training equals an uninterrupted one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.config.load import config_from_dict
from nmt.config.parts import ATTENTIONS, SCORES
from nmt.config.schema import Config, DecodingConfig, OptimizerName
from nmt.data import batches
from nmt.data.batches import Batch, build_batch, read_batches, shard
from nmt.data.corpus import Corpus
from nmt.decoding.search import search
from nmt.decoding.torch_model import TorchModel
from nmt.device import supports_mixed_precision
from nmt.errors import TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import Checkpoints, read_progress
from nmt.run.progress import Outcome, Progress, Rank, Update
from nmt.run.weights import load_training, save_training
from nmt.training.loop import Record, Training, World, add_gradients, fit, train_step
from nmt.training.loss import Loss
from nmt.training.optimization import OPTIMIZERS
from nmt.training.record import describe_skipped
from tests.toy import sequences

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
    random = np.random.default_rng(seed)
    sources = [
        random.integers(4, VOCABULARY, size=random.integers(1, longest + 1)).tolist()
        for _ in range(n_pairs)
    ]
    targets = [source[::-1] for source in sources]
    return Corpus(sequences(sources), sequences(targets)), sources


def make_model(config: Config) -> Seq2Seq:
    torch.manual_seed(config.seed)
    return Seq2Seq(config.model, VOCABULARY, VOCABULARY)


def make_training(config: Config, n_pairs: int = 100, seed: int = 1) -> Training:
    return Training.of(make_model(config), make_corpus(n_pairs, seed)[0], config)


class Listing(Record):
    """Keeps what the loop tells. `scores` are those of the validations; without, their steps."""

    def __init__(self, scores: Sequence[float] = ()) -> None:
        self.scores = iter(scores)
        self.outcomes: list[Outcome] = []
        self.saved: list[tuple[Progress, Rank | None]] = []

    def update(self, update: Update, outcome: Outcome, progress: Progress) -> None:
        self.outcomes.append(outcome)

    def validate(self, step: int) -> Rank:
        return Rank(next(self.scores, float(step)), -1.0)

    def save(self, progress: Progress, rank: Rank | None) -> None:
        self.saved.append((progress, rank))


def never() -> bool:
    return False


def make_update(parts: Sequence[Batch], step: int = 1) -> Update:
    return Update(step, 0, 0, 0, 1, 1, np.arange(sum(map(len, parts))), [*parts])


def update_once(training: Training, parts: Sequence[Batch], step: int = 1) -> Outcome:
    loss = Loss(training.model, training.config.training)
    return train_step(loss, training, make_update(parts, step), 0.01)


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def assert_equal(first: nn.Module, second: nn.Module, *, atol: float = 0.0) -> None:
    for name, value in weights_of(first).items():
        torch.testing.assert_close(second.state_dict()[name], value, atol=atol, rtol=0)


# Every decoder, kind of attention and score that looks at the state of the decoder.
LEARNERS: dict[str, dict[str, dict[str, Any]]] = {
    **{name: {"attention": {"score": name}} for name in SCORES if name not in ("linear", "none")},
    **{name: {"attention": {"kind": name}} for name in ATTENTIONS if name.startswith("local")},
    "coverage": {"attention": {"kind": "coverage", "score": "additive"}},
    "input feeding": {"decoder": {"input_feeding": True}},
    "bahdanau": {
        "decoder": {"kind": "bahdanau", "readout": "state"},
        "attention": {"score": "additive"},
    },
    "conditional": {"decoder": {"kind": "conditional", "cell": "gru", "readout": "deep"}},
    "gnmt": {"decoder": {"kind": "gnmt", "layers": 2}},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LEARNERS)
def test_learns_to_reverse(kind: str) -> None:
    """Without attention, 92 % of the held-out sequences are right."""
    sections = LEARNERS[kind]
    model_section = {
        "embedding_size": 32,
        "encoder": {"hidden_size": 32},
        "dropout": 0.0,
        **sections,
        "decoder": {"hidden_size": 64, **sections.get("decoder", {})},
    }
    rate = {"peak": 0.01, "schedule": "cosine", "steps": 400}
    config = make_config(
        model=model_section, training={"epochs": 100, "max_steps": 400, "learning_rate": rate}
    )
    training = make_training(config, 8000)
    assert fit(training, Record(), never).finished == "training.max_steps=400 is reached"
    _, held_out = make_corpus(300, seed=2)
    hypotheses = search(TorchModel(training.model.eval()), held_out, DecodingConfig(beam=1))
    exact = np.mean(
        [n_best[0].ids == source[::-1] for n_best, source in zip(hypotheses, held_out, strict=True)]
    )
    assert exact >= 0.98


@pytest.mark.parametrize(
    ("cell", "attention", "stop_at"),
    [
        ("lstm", {}, 3),
        ("gru", {"kind": "coverage", "score": "additive"}, 21),
    ],
    ids=str,
)
def test_a_resumed_training_equals_an_uninterrupted_one(
    cell: str,
    attention: dict[str, Any],
    stop_at: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dropout on, own outputs fed, in the middle of an epoch, and after a validation: the weights
    are the same to the bit. A training that stops at step 21 has epochs of several parts.
    """
    if stop_at == 21:
        monkeypatch.setattr(batches, "PART_PAIRS", 64)
        monkeypatch.setattr(batches, "RANGE_PAIRS", 8)
    sizes = {"embedding_size": 8, "dropout": 0.3, "attention": attention}
    for part, size in (("encoder", 8), ("decoder", 16)):
        sizes[part] = {"hidden_size": size, "cell": cell, "layers": 2}
    schedules = {
        "max_steps": 24,
        "validate_every": 7,
        "batch": {"size": 16},
        "teacher_forcing": {"start": 0.7},
        "learning_rate": {"warmup_steps": 5, "schedule": "inverse_sqrt"},
        "epochs": 10,
    }
    config = make_config(model=sizes, training=schedules)

    def train(
        run: Path, stop: int | None = None, *, resume: bool = False
    ) -> tuple[Training, Progress, list[Outcome]]:
        training, checkpoints = make_training(config, 150, seed=3), Checkpoints(run)
        if resume:
            last = checkpoints.find("last")
            assert last is not None
            training.progress = load_training(last, training.model, training.optimizer)

        class Saving(Listing):
            def save(self, progress: Progress, rank: Rank | None) -> None:
                write = partial(save_training, training.model, training.optimizer)
                checkpoints.save(progress, write, rank=rank)

        n_updates, record = count(1), Saving()
        return training, fit(training, record, lambda: next(n_updates) == stop), record.outcomes

    whole, end, outcomes = train(tmp_path / "whole")
    _, stopped, first = train(tmp_path / "parts", stop_at)
    assert (stopped.step, stopped.finished) == (stop_at, None)
    assert read_progress(tmp_path / f"parts/checkpoints/step-{stop_at:08}") == stopped
    parts, resumed_end, second = train(tmp_path / "parts", resume=True)
    assert first + second == outcomes
    assert resumed_end == end
    assert_equal(whole.model, parts.model)


def test_an_update_that_is_not_finite_is_skipped() -> None:
    config = make_config(training={"epochs": 1, "batch": {"size": 16}, "max_skipped": 3})
    training = make_training(config, 160)
    skipped: list[str] = []
    weights: list[dict[str, Tensor]] = []

    class Breaking(Record):
        def update(self, update: Update, outcome: Outcome, progress: Progress) -> None:
            if not outcome.is_finite:
                skipped.append(describe_skipped(update, outcome))
            weights.append(weights_of(training.model))
            bias = training.model.get_parameter("output.logits.bias")
            with torch.no_grad():  # the fourth and fifth updates meet a weight that is not finite
                bias[5] = float("inf") if update.step in (3, 4) else 0.0

    end = fit(training, Breaking(), never)
    assert (end.step, end.skipped, end.skipped_in_row) == (10, 2, 0)
    assert len(skipped) == 2
    assert re.fullmatch(
        r"step 4: the loss \((inf|nan)\) or its gradient \(nan\) is not finite; update skipped "
        r"\(epoch 1, batch 4: 16 pairs, first (\d+, ){4}\d+\)",
        skipped[0],
    )
    for name, value in weights[3].items():
        assert torch.equal(value, weights[4][name]), name
    assert all(value.isfinite().all() for value in weights[9].values())


@pytest.mark.parametrize("shares", [2, 3])
def test_an_update_does_not_depend_on_the_number_of_micro_batches(shares: int) -> None:
    """The mean is over the tokens of all: shares with fewer of them weigh less."""
    config = make_config(training={"label_smoothing": 0.1})
    corpus, _ = make_corpus(25, seed=4)
    pairs = np.arange(25)
    whole, divided = (Training.of(make_model(config).double(), corpus, config) for _ in range(2))
    one = update_once(whole, [*read_batches(corpus, [pairs])])
    other = update_once(divided, [*read_batches(corpus, shard(pairs, shares))])
    assert other.n_tokens == one.n_tokens
    assert other.objective == pytest.approx(one.objective, rel=1e-12)
    assert other.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-9)
    assert_equal(whole.model, divided.model, atol=1e-10)


def limit_memory(monkeypatch: pytest.MonkeyPatch, fits: Callable[[Batch], bool]) -> list[Batch]:
    """From now on a batch may not fit; returns all that are tried."""
    tried: list[Batch] = []
    forward = Loss.forward

    def limited(loss: Loss, batch: Batch, *arguments: Any) -> tuple[Tensor, Tensor]:
        tried.append(batch)
        if not fits(batch):
            raise torch.OutOfMemoryError
        return forward(loss, batch, *arguments)

    monkeypatch.setattr(Loss, "forward", limited)
    return tried


def test_micro_batches_that_do_not_fit_are_split_in_half_down_to_single_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = make_config()
    corpus, _ = make_corpus(25, seed=4)
    (batch,) = read_batches(corpus, [np.arange(25)])
    whole, parts = (Training.of(make_model(config).double(), corpus, config) for _ in range(2))
    update_once(whole, [batch])
    tried = limit_memory(monkeypatch, lambda batch: len(batch) <= 7)
    outcome = update_once(parts, [batch])
    assert [*map(len, tried)] == [25, 12, 6, 6, 6, 7]
    assert outcome.n_tokens == batch.n_tokens
    assert_equal(whole.model, parts.model, atol=1e-10)
    limit_memory(monkeypatch, lambda _: False)
    with pytest.raises(TrainingError, match="out of memory with a single pair; lower data"):
        update_once(parts, [batch])


@pytest.mark.parametrize("accumulate", [1, 2])
def test_two_ranks_never_draw_the_same_dropout(
    accumulate: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even after an out-of-memory split, which gives a rank more micro-batches than planned."""
    config = make_config(training={"accumulate": accumulate})
    training = make_training(config)
    seeds: list[int] = []
    limit_memory(monkeypatch, lambda _: not seeds.append(torch.initial_seed()))  # type: ignore[func-returns-value]
    update = make_update([build_batch([[5, 6]], [[6, 5]])] * 4, step=7)
    for rank in range(3):
        world = World(rank)
        add_gradients(Loss(training.model), replace(training, world=world), update, 1.0)
    assert len(set(seeds)) == 12


class Clocked(Listing):
    """Each update takes `update_seconds`, each validation 3; a checkpoint is old after a minute."""

    def __init__(self, update_seconds: float, now: float = 0.0) -> None:
        super().__init__()
        self.update_seconds, self.now = update_seconds, now

    @property
    def seconds(self) -> float:
        return self.now

    def update(self, update: Update, outcome: Outcome, progress: Progress) -> None:
        super().update(update, outcome, progress)
        self.now += self.update_seconds

    def validate(self, step: int) -> Rank:
        self.now += 3
        return Rank(1.0, -1.0)

    def is_old(self, progress: Progress) -> bool:
        saved = self.saved[-1][0].seconds if self.saved else 0
        return progress.seconds - saved >= 60


def test_checkpoints_are_also_saved_by_the_clock() -> None:
    """The validations save, too, and the time counts from the last checkpoint."""
    config = make_config(training={"max_steps": 12, "validate_every": 5, "epochs": 9})
    record = Clocked(30)
    fit(make_training(config), record, never)
    saved = [(progress.step, rank and rank.score) for progress, rank in record.saved]
    assert saved == [
        (2, None),
        (4, None),
        (5, 1.0),
        (7, None),
        (9, None),
        (10, 1.0),
        (12, 1.0),
    ]


@pytest.mark.parametrize(
    ("limit", "every", "validated"),
    [
        ({"max_steps": 10}, 0.2, [2, 4, 6, 8, 10]),
        ({"max_steps": 10}, 0.5, [5, 10]),
        ({"max_steps": 7}, 0.3, [3, 5, 7]),  # after 0.43, 0.71, and at the end
        ({"max_minutes": 1}, 0.25, [8, 12, 18, 24]),  # each validation foresees the next one
    ],
)
def test_validations_after_parts_of_the_training(
    limit: dict[str, int], every: float, validated: list[int]
) -> None:
    config = make_config(training={"epochs": 99, **limit, "validate_every": every})
    record = Clocked(2)
    fit(make_training(config), record, never)
    assert [progress.step for progress, rank in record.saved if rank] == validated


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_rate_that_lasts_for_the_training_ends_with_max_minutes(schedule: str) -> None:
    """A resumed training continues from the recorded seconds."""
    rate = {"peak": 0.01, "schedule": schedule, "steps": None, "floor": 0.001}
    config = make_config(
        training={"max_minutes": 1, "validate_every": 7, "epochs": 99, "learning_rate": rate}
    )
    record = Clocked(2)
    end = fit(make_training(config), record, never)
    assert (end.step, end.seconds) == (24, 60)
    rates = [outcome.learning_rate for outcome in record.outcomes]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.002

    n_updates = count(1)
    stopped = fit(make_training(config), Clocked(2), lambda: next(n_updates) == 10)
    resumed, second = make_training(config), Clocked(2, stopped.seconds)
    resumed.progress = stopped
    last = fit(resumed, second, never)
    assert (last.step, last.seconds, last.finished) == (end.step, end.seconds, end.finished)
    assert [outcome.learning_rate for outcome in second.outcomes] == rates[10:]


def test_all_processes_follow_the_first() -> None:
    received = iter([(15.0, False), (30.0, False), (55.0, False), Rank(1.0, -1.0), 60.0])

    class Second(World):
        def broadcast(self, value: Any) -> Any:
            return next(received)

        def sum(self, tensor: Tensor) -> None:
            pass

        def parallel(self, module: nn.Module) -> nn.Module:
            return module

    rate = {"peak": 1.0, "schedule": "linear", "steps": None}
    config = make_config(training={"max_minutes": 1, "validate_every": 3, "learning_rate": rate})
    training, record = make_training(config), Listing()
    training.world = Second(rank=1, size=2)
    end = fit(training, record, never)
    assert (end.seconds, end.validation_seconds) == (60, 5)
    assert [outcome.learning_rate for outcome in record.outcomes] == [1.0, 0.75, 0.5]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_lowers_the_loss_and_resumes_from_a_checkpoint(
    name: OptimizerName, tmp_path: Path
) -> None:
    momentum = {"momentum": 0.9} if name == "sgd" else {}
    config = make_config(training={"optimizer": name, "weight_decay": 0.001, **momentum})
    training, other = make_training(config, 32), make_training(config, 32)
    (batch,) = read_batches(training.corpus, [np.arange(32)])
    outcomes = [update_once(training, [batch], step) for step in range(1, 6)]
    assert outcomes[-1].objective < outcomes[0].objective
    write = partial(save_training, training.model, training.optimizer)
    Checkpoints(tmp_path).save(Progress(step=5), write)
    checkpoint = tmp_path / "checkpoints" / "step-00000005"
    load_training(checkpoint, other.model, other.optimizer)
    for each in (training, other):
        update_once(each, [batch], 6)
    assert_equal(training.model, other.model)


@pytest.mark.parametrize("device", [torch.device("cpu"), torch.device("cuda")], ids=str)
@pytest.mark.parametrize(
    ("model_values", "training"),
    [
        ({}, {}),
        (
            {
                "encoder": {"cell": "gru", "hidden_size": 8},
                "decoder": {"kind": "bahdanau", "cell": "gru", "readout": "deep"},
            },
            {},
        ),
        (
            {"decoder": {"hidden_size": 12, "input_feeding": True}, "lexical_bias": 2},
            {"teacher_forcing": {"start": 0.5}},
        ),
    ],
    ids=["default", "bahdanau", "steps"],
)
def test_bfloat16_gives_nearly_the_same_loss(
    device: torch.device, model_values: dict[str, Any], training: dict[str, Any]
) -> None:
    has_gpu = device.type == "cpu" or torch.cuda.is_available()
    if not has_gpu or not supports_mixed_precision(device):
        pytest.skip(f"no fast bfloat16 on {device}")
    corpus, _ = make_corpus(32, seed=4)
    (batch,) = read_batches(corpus, [np.arange(32)])
    outcomes = []
    for precision in ("float32", "bfloat16", "bfloat16"):
        sizes = {"embedding_size": 32, "encoder": {"hidden_size": 32}, "dropout": 0.0}
        config = make_config(
            model={**sizes, "decoder": {"hidden_size": 64}, **model_values},
            training={"precision": precision, "optimizer": "sgd", **training},
        )
        model = make_model(config).to(device)
        outcomes.append(update_once(Training.of(model, corpus, config), [batch.to(device)]))
        assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    exact, mixed, again = (outcome.objective for outcome in outcomes)
    assert mixed == pytest.approx(exact, rel=0.01)
    assert mixed != exact
    assert device.type == "cuda" or mixed == again
