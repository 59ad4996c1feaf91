"""nmt.data.batches: each pair once, similar lengths together, the same order for the same seed and
epoch.
"""

from itertools import chain, pairwise, product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import BatchConfig
from nmt.data import batches
from nmt.data.batches import (
    PART_PAIRS,
    RANGE_PAIRS,
    build_batch,
    divide_epoch,
    plan_batches,
    read_batches,
    shard,
)
from nmt.data.corpus import Corpus, Sequences, pack_soft_targets
from nmt.text.vocabulary import EOS, PAD, SOS
from tests.toy import sequences

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


def test_tensors() -> None:
    batch = build_batch([[5, 6], [7]], [[8], [9, 10]])
    assert batch.src.tolist() == [[5, 6, EOS], [7, EOS, PAD]]
    assert batch.src_lengths.tolist() == [3, 2]
    assert batch.tgt_in.tolist() == [[SOS, 8, PAD], [SOS, 9, 10]]
    assert batch.tgt_out.tolist() == [[8, EOS, PAD], [9, 10, EOS]]
    assert batch.tgt_mask.tolist() == [[True, True, False], [True, True, True]]
    assert batch.n_tokens == 5
    assert batch.src.dtype == torch.int64


def test_soft_targets_stay_with_their_tokens() -> None:
    """The first word of the soft targets of each token is here the token itself."""
    sentences = [[5, 6], [7], [8, 9, 10], []]
    packed = []
    for sentence in sentences:
        tokens = np.array([*sentence, EOS])
        packed.append(
            pack_soft_targets(
                np.stack([tokens, tokens + 20], 1),
                np.tile(np.array([0.5, 0.25], np.float32), (len(tokens), 1)),
            )
        )
    corpus = Corpus(sequences(sentences), sequences(sentences), soft_targets=sequences(packed))
    for whole in read_batches(corpus, [np.array([3, 0, 2]), np.array([1])]):
        for batch in (whole, *whole.split_in_half()):
            assert batch.soft_targets is not None
            ids, probabilities = batch.soft_targets
            targets = batch.tgt_out.flatten()[batch.token_positions]
            assert ids.tolist() == torch.stack([targets, targets + 20], 1).tolist()
            assert probabilities.tolist() == [[0.5, 0.25]] * batch.n_tokens


@given(
    st.integers(1, 400),
    st.integers(1, 12),
    st.integers(1, 8),
    st.integers(0, 2**63 - 1),
    st.integers(0, 3),
)
def test_each_pair_is_in_one_part_of_bounded_size(
    n_pairs: int, range_pairs: int, n_ranges: int, seed: int, epoch: int
) -> None:
    part_pairs = n_ranges * range_pairs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "PART_PAIRS", part_pairs)
        patch.setattr(batches, "RANGE_PAIRS", range_pairs)
        parts, again = ([*divide_epoch(n_pairs, seed=seed, epoch=epoch)] for _ in range(2))
    indices = [part.indices() for part in parts]
    assert sorted(np.concatenate(indices).tolist()) == [*range(n_pairs)]
    assert all(np.all(np.diff(part) > 0) for part in indices)
    assert max(map(len, indices)) <= part_pairs
    assert max(map(len, indices)) - min(map(len, indices)) < 2 * range_pairs
    assert [(part.epoch, part.index, part.n_parts) for part in parts] == [
        (epoch, i, len(parts)) for i in range(len(parts))
    ]
    assert parts == again
    assert len({part.key for part in parts}) == len(parts)
    assert parts[0].key == (seed, epoch)


def test_up_to_the_limit_the_corpus_is_one_part() -> None:
    (part,) = divide_epoch(PART_PAIRS, seed=1, epoch=3)
    assert part.indices().tolist() == [*range(PART_PAIRS)]
    assert len([*divide_epoch(PART_PAIRS + 1, seed=1, epoch=3)]) == 2


def test_every_part_has_the_sources_in_their_shares() -> None:
    """A corpus of 20 million pairs, whose first tenth comes from one source."""
    n_pairs = 20_000_000
    shares = [
        sum(end - start for start, end in part.ranges if end <= n_pairs // 10)
        / sum(end - start for start, end in part.ranges)
        for part in divide_epoch(n_pairs, seed=1, epoch=0)
    ]
    assert len(shares) == 20
    assert 0.07 < min(shares) < max(shares) < 0.13
    assert RANGE_PAIRS * 1000 < PART_PAIRS


def test_a_part_of_a_corpus_reads_its_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """From several shards, and shards within shards."""
    monkeypatch.setattr(batches, "PART_PAIRS", 20)
    monkeypatch.setattr(batches, "RANGE_PAIRS", 4)
    sentences = [[index] * (index % 3) for index in range(50)]
    bounds = [0, 13, 14, 37, 50]
    shards = [
        (
            np.concatenate([np.zeros(0, np.int32), *(np.array(ids, np.int32) for ids in part)]),
            np.cumsum([0, *map(len, part)]),
        )
        for part in (sentences[start:end] for start, end in pairwise(bounds))
    ]
    corpus = Corpus(Sequences(*shards), Sequences(*shards), soft_targets=Sequences(*shards))
    parts = [*divide_epoch(50, seed=1, epoch=0)]
    assert len(parts) == 3
    for part in parts:
        pairs = part.select(corpus)
        expected = [sentences[index] for index in part.indices()]
        assert [ids.tolist() for ids in map(pairs.src.__getitem__, range(len(pairs)))] == expected
        assert pairs.tgt.lengths.tolist() == [*map(len, expected)]
        assert pairs.soft_targets is not None
        assert [
            ids.tolist() for ids in map(pairs.soft_targets.__getitem__, range(len(pairs)))
        ] == expected
        assert pairs.src.n_tokens == sum(map(len, expected))
        assert pairs.src.block(3, 17)[0].tolist() == [*chain.from_iterable(expected[3:17])]


@pytest.mark.parametrize("n_copies", [39, 40])  # of the small source, where the most are 40
def test_copies_of_a_pair_go_to_different_batches(n_copies: int) -> None:
    pairs = np.repeat(np.arange(600), [n_copies] * 100 + [1] * 500)
    lengths = (5 + pairs % 3).astype(np.int32)
    plan = plan_batches(lengths, lengths, BatchConfig(size=16), key=(1, 0), copies=40)
    assert sorted(np.concatenate(plan).tolist()) == [*range(len(pairs))]
    n_different = [len({*pairs[batch].tolist()}) for batch in plan]
    assert np.mean(n_different) > 15.8
    without = plan_batches(lengths, lengths, BatchConfig(size=16), key=(1, 0))
    assert np.mean([len({*pairs[batch].tolist()}) for batch in without]) < 14
