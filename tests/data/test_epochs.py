"""nmt.data.epochs: the parts of an epoch have each pair once, and mix the whole corpus."""

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data import epochs
from nmt.data.corpus import Corpus, Sequences
from nmt.data.epochs import PART_PAIRS, RANGE_PAIRS, Part, divide_epoch, divide_epochs


def divide(
    n_pairs: int, part_pairs: int, range_pairs: int, *, seed: int = 1, epoch: int = 0
) -> list[Part]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epochs, "PART_PAIRS", part_pairs)
        patch.setattr(epochs, "RANGE_PAIRS", range_pairs)
        return [*divide_epoch(n_pairs, seed=seed, epoch=epoch)]


def ranges(parts: list[Part]) -> list[list[tuple[int, int]]]:
    return [part.ranges for part in parts]


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
    parts = divide(n_pairs, part_pairs, range_pairs, seed=seed, epoch=epoch)
    indices = [part.indices() for part in parts]
    assert sorted(np.concatenate(indices).tolist()) == [*range(n_pairs)]
    assert all(np.all(np.diff(part) > 0) for part in indices)
    assert max(map(len, indices)) <= part_pairs
    assert max(map(len, indices)) - min(map(len, indices)) < 2 * range_pairs
    assert [(part.epoch, part.index, part.n_parts) for part in parts] == [
        (epoch, i, len(parts)) for i in range(len(parts))
    ]
    assert ranges(parts) == ranges(divide(n_pairs, part_pairs, range_pairs, seed=seed, epoch=epoch))
    assert len({part.key(seed) for part in parts}) == len(parts)
    assert parts[0].key(seed) == (seed, epoch)


def test_epochs_and_seeds_divide_the_corpus_in_other_ways() -> None:
    divisions = [
        ranges(divide(1000, 100, 10, seed=seed, epoch=epoch)) for seed in (1, 2) for epoch in (0, 1)
    ]
    assert all(one != other for i, one in enumerate(divisions) for other in divisions[:i])


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


def test_epochs_continue_at_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "PART_PAIRS", 30)
    monkeypatch.setattr(epochs, "RANGE_PAIRS", 5)
    whole = [*divide_epochs(100, range(3), seed=1)]
    assert [(part.epoch, part.index) for part in whole] == [
        (epoch, index) for epoch in range(3) for index in range(4)
    ]
    assert ranges([*divide_epochs(100, range(1, 3), seed=1, first_part=2)]) == ranges(whole[6:])


def test_a_part_of_a_corpus_reads_its_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """From several shards, and shards within shards."""
    monkeypatch.setattr(epochs, "PART_PAIRS", 20)
    monkeypatch.setattr(epochs, "RANGE_PAIRS", 4)
    sentences = [[index] * (index % 3) for index in range(50)]
    bounds = [0, 13, 14, 37, 50]
    shards = [
        (
            np.concatenate([np.zeros(0, np.int32), *(np.array(ids, np.int32) for ids in part)]),
            np.cumsum([0, *map(len, part)]),
        )
        for part in (sentences[start:end] for start, end in pairwise(bounds))
    ]
    corpus = Corpus(Sequences(*shards), Sequences(*shards), Sequences(*shards))
    parts = [*divide_epoch(50, seed=1, epoch=0)]
    assert len(parts) == 3
    for part, pairs in corpus.in_parts(parts):
        expected = [sentences[index] for index in part.indices()]
        assert [ids.tolist() for ids in map(pairs.src.__getitem__, range(len(pairs)))] == expected
        assert pairs.tgt.lengths.tolist() == [*map(len, expected)]
        assert pairs.soft_targets is not None
        assert [
            ids.tolist() for ids in map(pairs.soft_targets.__getitem__, range(len(pairs)))
        ] == expected
        assert pairs.src.n_tokens == sum(map(len, expected))
        assert pairs.src.block(3, 17)[0].tolist() == [*chain.from_iterable(expected[3:17])]
