"""nmt.data.batches: each pair once, similar lengths together, the same order for the same seed and
epoch.
"""

from itertools import pairwise, product
from math import sqrt
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import BatchConfig, CurriculumConfig
from nmt.data.batches import (
    Batch,
    batch_sizes,
    build_batch,
    cut_batches,
    pad_sources,
    plan_batches,
    read_batches,
    shard,
    update_sizes,
)
from nmt.data.corpus import Corpus, Sequences
from nmt.data.soft_targets import pack
from nmt.text.vocabulary import EOS, PAD, SOS

lengths = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=200)


def plan(
    pairs: list[tuple[int, int]], config: BatchConfig, key: tuple[int, ...] = (1, 0), **options: Any
) -> list[list[int]]:
    src, tgt = np.array(pairs, dtype=np.int32).T
    return [batch.tolist() for batch in plan_batches(src, tgt, config, key=key, **options)]


@given(lengths, st.integers(1, 16), st.sampled_from(["sentences", "tokens"]), st.integers(1, 3))
def test_every_pair_is_in_one_shard_of_one_batch(
    pairs: list[tuple[int, int]], size: int, unit: str, n_shards: int
) -> None:
    config = BatchConfig.model_validate({"size": size, "unit": unit})
    shards = [shard(np.array(batch), n_shards) for batch in plan(pairs, config, n_shards=n_shards)]
    assert sorted(index for batch in shards for part in batch for index in part.tolist()) == list(
        range(len(pairs))
    )
    assert all(max(map(len, batch)) - min(map(len, batch)) <= 1 for batch in shards)


@given(lengths, st.integers(1, 16), st.integers(1, 4))
def test_n_shards_form_a_batch_of_n_times_the_size(
    pairs: list[tuple[int, int]], size: int, n_shards: int
) -> None:
    """So n processes, or n micro-batches, update as one process does with n times the batch
    size.
    """
    assert plan(pairs, BatchConfig(size=size), n_shards=n_shards) == plan(
        pairs, BatchConfig(size=size * n_shards)
    )


@given(lengths, st.integers(1, 60))
def test_batches_do_not_exceed_their_size(pairs: list[tuple[int, int]], size: int) -> None:
    assert all(len(batch) <= size for batch in plan(pairs, BatchConfig(size=size)))
    for batch in plan(pairs, BatchConfig(size=size, unit="tokens")):
        assert len(batch) == 1 or len(batch) * max(pairs[index][1] + 1 for index in batch) <= size


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 9), st.integers(1, 100))
def test_each_batch_is_as_large_as_its_limits_allow(
    costs: list[int], max_items: int, max_padded: int
) -> None:
    def fits(items: list[int]) -> bool:
        return len(items) == 1 or (
            len(items) <= max_items and len(items) * max(items) <= max_padded
        )

    slices = cut_batches(costs, max_items=max_items, max_padded=max_padded)
    batches = [costs[part] for part in slices]
    assert [cost for batch in batches for cost in batch] == costs
    assert all(batch and fits(batch) for batch in batches)
    assert not any(fits([*batch, following[0]]) for batch, following in pairwise(batches))


@given(lengths)
def test_the_order_depends_on_seed_and_epoch_alone(pairs: list[tuple[int, int]]) -> None:
    config = BatchConfig(size=4)
    assert plan(pairs, config, (3, 2)) == plan(pairs, config, (3, 2))


def test_epochs_and_seeds_differ() -> None:
    pairs = [(1 + i % 9, 1 + i % 7) for i in range(300)]
    config = BatchConfig(size=8)
    orders = [plan(pairs, config, key) for key in product((1, 2), (0, 1), (0, 1))]
    assert all(one != other for i, one in enumerate(orders) for other in orders[:i])


def test_nearly_all_batches_hold_one_source_length() -> None:
    random = np.random.default_rng(0)
    pairs = list(
        zip(
            random.integers(1, 20, 5000).tolist(),
            random.integers(1, 20, 5000).tolist(),
            strict=True,
        )
    )
    mixed = [
        batch
        for batch in plan(pairs, BatchConfig(size=16))
        if len({pairs[index][0] for index in batch}) > 1
    ]
    assert len(mixed) < 20


def test_the_batch_size_grows_linearly() -> None:
    steps = np.array([0, 1, 2, 3, 4, 5, 100])
    assert batch_sizes(steps, BatchConfig(size=48, final_size=128, growth_steps=4)).tolist() == [
        48,
        68,
        88,
        108,
        128,
        128,
        128,
    ]
    assert batch_sizes(steps, BatchConfig(size=8, final_size=4, growth_steps=1)).tolist() == [
        8,
        4,
        4,
        4,
        4,
        4,
        4,
    ]
    assert batch_sizes(steps, BatchConfig(size=48)).tolist() == [48] * 7
    assert update_sizes(
        30, BatchConfig(size=4, final_size=8, growth_steps=4), first_step=2
    ).tolist() == [6, 7, 8, 8, 8]
    assert update_sizes(30, BatchConfig(size=10), first_step=9).tolist() == [10, 10, 10]


growing = st.builds(
    lambda **keys: BatchConfig.model_validate(keys),
    size=st.integers(1, 12),
    final_size=st.integers(1, 12),
    growth_steps=st.integers(1, 60),
    unit=st.just("sentences"),
)


@given(lengths, growing, st.integers(0, 80), st.integers(1, 3))
def test_each_update_has_the_size_of_its_step(
    pairs: list[tuple[int, int]], config: BatchConfig, first_step: int, n_shards: int
) -> None:
    """Except for the batch with the longest sentences, which holds the rest."""
    drawn = plan(pairs, config, first_step=first_step, n_shards=n_shards)
    assert sorted(index for batch in drawn for index in batch) == list(range(len(pairs)))
    sizes = n_shards * batch_sizes(first_step + np.arange(len(drawn) + 1), config)
    change = np.abs(
        np.diff(sizes)
    ).max()  # where the last batches would be empty, later ones come a step earlier
    differences = [abs(len(batch) - size) for batch, size in zip(drawn, sizes, strict=False)]
    assert sum(difference > change for difference in differences) <= 1
    assert max(map(len, drawn)) <= sizes.max()


@pytest.mark.parametrize("unit", ["sentences", "tokens"])
@pytest.mark.parametrize(("size", "final_size"), [(100, 300), (300, 100)])
def test_growing_batches_have_sentences_of_all_lengths_at_any_time(
    unit: str, size: int, final_size: int
) -> None:
    random = np.random.default_rng(0)
    pairs = list(zip(*random.integers(1, 9, (2, 20_000)).tolist(), strict=True))
    config = BatchConfig.model_validate(
        {"size": size, "unit": unit, "final_size": final_size, "growth_steps": 100}
    )
    drawn = plan(pairs, config)
    sizes = batch_sizes(np.arange(len(drawn)), config)
    costs = np.array(
        [
            len(batch) * (1 if unit == "sentences" else max(pairs[i][1] + 1 for i in batch))
            for batch in drawn
        ]
    )
    full = costs >= 0.9 * sizes
    assert full.mean() > 0.9
    assert (costs <= 1.05 * sizes).mean() > 0.95
    assert len([batch for batch in drawn if len({pairs[index][0] for index in batch}) > 1]) <= 9
    for part in (drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]):
        assert np.mean([pairs[batch[0]][0] for batch in part]) == pytest.approx(4.5, abs=1)


@pytest.mark.parametrize("unit", ["sentences", "tokens"])
def test_a_final_size_equal_to_the_size_changes_no_size(unit: str) -> None:
    pairs = [(1 + i % 9, 1 + i % 7) for i in range(300)]
    one, other = (
        BatchConfig.model_validate({"size": 20, "unit": unit, "final_size": final_size})
        for final_size in (None, 20)
    )
    assert sorted(map(len, plan(pairs, one))) == sorted(map(len, plan(pairs, other)))


@given(lengths, st.integers(1, 40), st.floats(0.01, 1), st.integers(0, 50))
def test_a_curriculum_draws_from_the_shortest_batches(
    pairs: list[tuple[int, int]], steps: int, start: float, first_step: int
) -> None:
    """The batch at each position is drawn from the part c(t) of the batches in order of length;
    after the curriculum, from all.
    """
    config = BatchConfig(size=4)
    drawn = plan(
        pairs, config, curriculum=CurriculumConfig(steps=steps, start=start), first_step=first_step
    )
    whole = plan(pairs, config)
    by_length = sorted(
        whole, key=lambda batch: [(pairs[index][0], pairs[index][1]) for index in batch]
    )
    keys = [[pairs[index] for index in batch] for batch in by_length]
    assert len(drawn) == len(whole)
    for position, batch in enumerate(drawn):
        t = first_step + position
        c = min(1.0, sqrt(t * (1 - start**2) / steps + start**2))
        assert keys.index([pairs[index] for index in batch]) <= c * len(whole)
        if t >= steps:
            assert batch == whole[position]


def test_a_curriculum_is_uniform_over_the_part_that_it_may_draw() -> None:
    pairs = [(1 + i // 4, 1) for i in range(4000)]  # 1,000 batches of 4, each with its own length
    start, counts = 0.3, np.zeros(1000)
    for epoch in range(80):
        config = CurriculumConfig(steps=10**9, start=start)  # competence stays at its start
        for batch in plan(pairs, BatchConfig(size=4), (1, epoch), curriculum=config):
            counts[pairs[batch[0]][0] - 1] += 1
    assert not counts[300:].any()
    assert counts[:300].min() > 0.85 * counts[:300].mean()
    assert counts[:300].max() < 1.25 * counts[:300].mean()


@pytest.mark.parametrize("stop", [1, 7, 9, 20])
def test_a_plan_made_in_the_middle_of_a_curriculum_is_the_same(stop: int) -> None:
    """A resumed training needs this: the plan of an epoch follows from the number of updates before
    the epoch.
    """
    pairs = [(1 + i % 9, 1 + i % 7) for i in range(40)]  # 10 updates in an epoch
    options = {"curriculum": CurriculumConfig(steps=17, start=0.1)}
    whole = [
        batch
        for epoch in range(3)
        for batch in plan(pairs, BatchConfig(size=4), (1, epoch), first_step=10 * epoch, **options)
    ]
    epoch, batch = divmod(stop, 10)
    assert (
        plan(pairs, BatchConfig(size=4), (1, epoch), first_step=stop - batch, **options)[batch:]
        == whole[stop : 10 * (epoch + 1)]
    )


def test_tensors() -> None:
    batch = build_batch([[5, 6], [7]], [[8], [9, 10]])
    assert batch.src.tolist() == [[5, 6, EOS], [7, EOS, PAD]]
    assert batch.src_lengths.tolist() == [3, 2]
    assert batch.tgt_in.tolist() == [[SOS, 8, PAD], [SOS, 9, 10]]
    assert batch.tgt_out.tolist() == [[8, EOS, PAD], [9, 10, EOS]]
    assert batch.tgt_mask.tolist() == [[True, True, False], [True, True, True]]
    assert batch.n_tokens == 5
    assert batch.src.dtype == torch.int64


def test_an_empty_sentence_is_its_end() -> None:
    src, src_lengths = pad_sources([[]])
    assert src.tolist() == [[EOS]]
    assert src_lengths.tolist() == [1]


def test_a_repeated_batch_holds_each_pair_twice_in_the_same_order() -> None:
    batch = build_batch([[5, 6], [7]], [[8], [9, 10]])
    twice = batch.repeat()
    assert len(twice) == 4
    assert twice.n_tokens == 10
    for name in ("src", "src_lengths", "tgt_in", "tgt_out", "tgt_mask"):
        assert torch.equal(getattr(twice, name), torch.cat([getattr(batch, name)] * 2)), name
    assert torch.equal(
        twice.tgt_out.flatten()[twice.token_positions],
        batch.tgt_out.flatten()[batch.token_positions].repeat(2),
    )


def test_soft_targets_stay_with_their_tokens() -> None:
    """The first word of the soft targets of each token is here the token itself."""
    sentences = [[5, 6], [7], [8, 9, 10], []]
    packed = []
    for sentence in sentences:
        tokens = np.array([*sentence, EOS])
        packed.append(
            pack(
                np.stack([tokens, tokens + 20], 1),
                np.tile(np.array([0.5, 0.25], np.float32), (len(tokens), 1)),
            )
        )

    def sequences(rows: list[Any]) -> Sequences:
        return Sequences.of_blocks(
            [(np.concatenate(rows).astype(np.int32), np.array([*map(len, rows)], np.int32))]
        )

    corpus = Corpus(sequences(sentences), sequences(sentences), sequences(packed))

    def check(batch: Batch) -> None:
        assert batch.soft_targets is not None
        ids, probabilities = batch.soft_targets
        tokens = batch.tgt_out.flatten()[batch.token_positions]
        assert ids.tolist() == torch.stack([tokens, tokens + 20], 1).tolist()
        assert probabilities.tolist() == [[0.5, 0.25]] * batch.n_tokens

    for batch in read_batches(corpus, [np.array([3, 0, 2]), np.array([1])]):
        check(batch)
        check(batch.repeat())
        for half in batch.split_in_half():
            check(half)
        check(batch.repeat().split_in_half()[1])
