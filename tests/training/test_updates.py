"""The updates of a training: their plan, for a corpus of several parts; prefetching, with a
simulated GPU; and an update waits for a GPU only once, at its end.
"""

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import Config
from nmt.data import batches as data_batches
from nmt.data.batches import read_batches
from nmt.data.corpus import Corpus
from nmt.run.progress import Progress, Update
from nmt.training import loop
from nmt.training.loop import (
    SINGLE_PROCESS,
    Training,
    World,
    add_gradients,
    prefetch,
    updates,
)
from nmt.training.loss import Loss
from tests.toy import sequences
from tests.training.test_loop import (
    assert_equal,
    make_config,
    make_model,
    make_training,
    make_update,
    never,
)
from tests.training.test_loop import make_corpus as make_pairs

EPOCHS = 2
START = Progress()


def make_corpus(n_pairs: int) -> Corpus:
    """Sentence i of both sides is the id i + 4, repeated."""
    sides = ([[i + 4] * (1 + i % divisor) for i in range(n_pairs)] for divisor in (5, 7))
    return Corpus(*map(sequences, sides))


def plan(
    corpus: Corpus, config: Config, progress: Progress = START, world: World = SINGLE_PROCESS
) -> list[Update]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_batches, "PART_PAIRS", 24)
        patch.setattr(data_batches, "RANGE_PAIRS", 4)
        training = Training.of(make_model(config), corpus, config, world)
        return [*updates(replace(training, progress=progress))]


def contents(planned: list[Update]) -> list[dict[str, Any]]:
    return [
        {
            **vars(update),
            "pairs": update.pairs.tolist(),
            "micro_batches": [batch.tgt_out.tolist() for batch in update.micro_batches],
        }
        for update in planned
    ]


def read_pairs(update: Update) -> list[int]:
    return [ids[0] - 4 for batch in update.micro_batches for ids in batch.src.tolist()]


batches = st.sampled_from(
    [
        {"batch": {"size": 5}},
        {"batch": {"size": 30, "unit": "tokens"}},
    ]
)


@given(st.integers(1, 120), batches, st.integers(1, 2), st.data())
def test_a_resumed_training_makes_the_rest_of_the_updates(
    n_pairs: int, training: dict[str, Any], accumulate: int, data: st.DataObject
) -> None:
    corpus, config = (
        make_corpus(n_pairs),
        make_config(training={"epochs": EPOCHS, **training, "accumulate": accumulate}),
    )
    whole = plan(corpus, config)
    for update in whole:
        assert sorted(read_pairs(update)) == sorted(update.pairs.tolist())
    for epoch in range(EPOCHS):
        pairs = sorted(pair for update in whole if update.epoch == epoch for pair in update.pairs)
        assert pairs == [*range(n_pairs)]
    assert [update.ends_epoch for update in whole] == [
        update.next_position[1:] == (0, 0) for update in whole
    ]
    last = data.draw(st.sampled_from(whole))
    epoch, part, batch = last.next_position
    resumed = plan(corpus, config, Progress(step=last.step, epoch=epoch, part=part, batch=batch))
    assert contents(resumed) == contents(whole[last.step :])


@given(st.integers(1, 120), batches)
def test_the_processes_divide_each_batch(n_pairs: int, training: dict[str, Any]) -> None:
    corpus, config = make_corpus(n_pairs), make_config(training={"epochs": EPOCHS, **training})
    ranks = [plan(corpus, config, world=World(rank=rank, size=2)) for rank in (0, 1)]
    for first, second in zip(*ranks, strict=True):
        assert first.pairs.tolist() == second.pairs.tolist()
        assert sorted(read_pairs(first) + read_pairs(second)) == sorted(first.pairs.tolist())


# --- Prefetching

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.fixture
def current(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, torch.device]]:
    calls: list[tuple[str, torch.device]] = []
    monkeypatch.setattr(
        torch.cuda,
        "set_device",
        lambda device: calls.append((threading.current_thread().name, device)),
    )
    return calls


def test_the_next_item_is_made_while_the_caller_uses_one(
    current: list[tuple[str, torch.device]],
) -> None:
    started = [threading.Event() for _ in range(4)]

    def make() -> Iterator[int]:
        for number, event in enumerate(started):
            event.set()
            yield number

    for number in prefetch(make(), GPU):
        assert all(event.wait(10) for event in started[: number + 2])
        assert not any(event.is_set() for event in started[number + 2 :])
    assert number == 3
    assert current == [("prefetch_0", GPU)]


def test_an_error_of_the_thread_is_raised_in_place_of_its_item(
    current: list[tuple[str, torch.device]],
) -> None:
    def make() -> Iterator[int]:
        yield 1
        raise OSError("the disk is gone")

    items = prefetch(make(), GPU)
    assert next(items) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(items)
    assert list(items) == []


def test_stopping_early_leaves_no_thread(current: list[tuple[str, torch.device]]) -> None:
    before = threading.active_count()
    items = prefetch(iter(range(100)), GPU)
    assert next(items) == 0
    assert threading.active_count() == before + 1
    items.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_prefetching_does_not_change_a_training(
    current: list[tuple[str, torch.device]], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"epochs": 2, "batch": {"size": 16}, "accumulate": 2, "teacher_forcing": {"start": 0.6}}
    config = make_config(training=keys)
    trained = []
    for pretended in (CPU, GPU):
        monkeypatch.setattr(
            loop, "prefetch", lambda tasks, _, device=pretended: prefetch(tasks, device)
        )
        training = make_training(config, seed=5)
        assert loop.fit(training, loop.Record(), never).step == 8
        trained.append(training.model)
    assert len(current) == 1
    assert_equal(*trained)


# --- Waiting

META = torch.device("meta")

LUONG = {"decoder": {"hidden_size": 64}}
FEEDING = {"decoder": {"hidden_size": 64, "input_feeding": True}}
BAHDANAU = {
    "decoder": {"kind": "bahdanau", "readout": "maxout", "hidden_size": 64},
    "attention": {"score": "additive"},
}
KINDS = [
    *(LUONG, FEEDING, BAHDANAU),
    {**LUONG, "attention": {"kind": "coverage", "score": "additive"}},
    {**LUONG, "attention": {"kind": "local_p"}},
    {**LUONG, "attention": {"score": "dot"}},
]


@pytest.mark.parametrize(
    ("kind", "forcing"),
    [
        *((kind, {"start": 0.5}) for kind in KINDS),
        *((kind, {}) for kind in (LUONG, BAHDANAU, {**LUONG, "lexical_bias": 3})),
        (LUONG, {"start": 0.5, "per": "sentence"}),
        (LUONG, {"start": 0.0}),
    ],
    ids=str,
)
def test_an_update_does_not_wait_for_the_gpu(
    kind: dict[str, Any], forcing: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # It knows no such device.
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    keys = {"teacher_forcing": forcing, "label_smoothing": 0.1}
    config = make_config(
        model={"embedding_size": 32, "encoder": {"hidden_size": 32}, "dropout": 0.1, **kind},
        training=keys,
    )
    corpus, sources = make_pairs(60, seed=4)
    alike = np.array([index for index, source in enumerate(sources) if len(source) == 2])
    assert len(alike) > 4
    batches = [batch.to(META) for batch in read_batches(corpus, [alike[:4], alike[4:]])]
    training = Training.of(make_model(config).to(META), corpus, config)
    loss = Loss(training.model, config.training)
    ratio = config.training.teacher_forcing.start
    sums = add_gradients(loss, training, make_update(batches), ratio)
    assert sums is not None
    assert (sums.shape, sums.device) == ((3,), META)
    assert all(
        parameter.grad is not None and parameter.grad.device == META
        for parameter in training.model.parameters()
    )
