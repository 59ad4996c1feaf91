"""The updates that the loop plans for a corpus of several parts: each pair once, and the same rest
after a resume.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import Config
from nmt.data import batches as data_batches
from nmt.data.corpus import Corpus, Sequences
from nmt.run.progress import Progress, Update
from nmt.training.loop import SINGLE_PROCESS, Training, World, updates
from tests.training.test_loop import make_config, make_model

EPOCHS = 2
START = Progress()


def make_corpus(n_pairs: int) -> Corpus:
    """Sentence i of both sides is the id i + 4, repeated."""

    def sequences(divisor: int) -> Sequences:
        lengths = 1 + np.arange(n_pairs) % divisor
        return Sequences(
            (
                np.repeat(np.arange(4, n_pairs + 4), lengths).astype(np.int32),
                np.cumsum([0, *lengths]),
            )
        )

    return Corpus(sequences(5), sequences(7))


def plan(
    corpus: Corpus, config: Config, progress: Progress = START, world: World = SINGLE_PROCESS
) -> list[Update]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_batches, "PART_PAIRS", 24)
        patch.setattr(data_batches, "RANGE_PAIRS", 4)
        training = Training.of(make_model(config), corpus, config, world)
        return [*updates(replace(training, progress=progress))]


def configure(**training: Any) -> Config:
    return make_config(training={"epochs": EPOCHS, **training})


def contents(planned: list[Update]) -> list[tuple[Any, ...]]:
    return [
        (
            *(
                update.step,
                update.epoch,
                update.part,
                update.batch,
                update.n_parts,
                update.n_batches,
                update.pairs.tolist(),
            ),
            [batch.tgt_out.tolist() for batch in update.micro_batches],
        )
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
    corpus, config = make_corpus(n_pairs), configure(**training, accumulate=accumulate)
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
    corpus, config = make_corpus(n_pairs), configure(**training)
    ranks = [plan(corpus, config, world=World(rank=rank, size=2)) for rank in (0, 1)]
    for first, second in zip(*ranks, strict=True):
        assert first.pairs.tolist() == second.pairs.tolist()
        assert sorted(read_pairs(first) + read_pairs(second)) == sorted(first.pairs.tolist())
