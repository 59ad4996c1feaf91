"""nmt.data.splitting: splits share no sentence, whatever the order of the pairs."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config.schema import SplitConfig
from nmt.data.splitting import (
    DEV,
    TEST,
    TRAIN,
    Fingerprints,
    assign_splits,
    connected_components,
    fingerprint,
    first_occurrences,
    naive_leak,
    random_keys,
    sample_pairs,
    sentence_key,
)
from nmt.errors import DataError

# Few different sentences, so that many pairs are linked.
LINKED = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60, unique=True)


def fingerprints(texts: list[str]) -> Fingerprints:
    return np.frombuffer(b"".join(map(fingerprint, texts)), "<u8")


def three(pairs: list[tuple[int, int]]) -> tuple[Fingerprints, Fingerprints, Fingerprints]:
    return (
        fingerprints([f"{src}\t{tgt}" for src, tgt in pairs]),
        fingerprints([str(src) for src, _ in pairs]),
        fingerprints([str(tgt) for _, tgt in pairs]),
    )


def naive_components(pairs: list[tuple[int, int]]) -> set[frozenset[tuple[int, int]]]:
    groups: list[set[tuple[int, int]]] = []
    for pair in pairs:
        linked = [group for group in groups if any(pair[0] == src or pair[1] == tgt for src, tgt in group)]
        groups = [group for group in groups if group not in linked] + [{pair}.union(*linked)]
    return set(map(frozenset, groups))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Wie geht's?", "wie gehts", True),
        ("STRASSE 5", "Straße, 5!", True),
        ("snake_case", "snakecase", True),
        ("Hallo", "Hallo du", False),
        ("?!", "!?", False),
        ("...", "...", True),
        ("5", "6", False),
        ("\u0935\u0939 \u0915\u093f", "\u0935\u0939 \u0915\u0940", False),  # Hindi, with short and with long i
        ("\u0935\u0939 \u0915\u093f?", "\u0935\u0939\u0915\u093f", True),
        ("\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd", "\u05e9\u05dc\u05d5\u05dd", True),  # Hebrew, with and without its optional points
    ],
)
def test_sentences_count_as_the_same_by_letters_and_digits(one: str, other: str, same: bool) -> None:
    assert (sentence_key(one) == sentence_key(other)) == same
    assert sentence_key(one)


def test_fingerprints_are_the_same_on_every_machine() -> None:
    assert fingerprint("Grüß Gott!").hex() == "75c9a22c1773c2bb"


@given(LINKED)
def test_components_are_chains_of_shared_sentences(pairs: list[tuple[int, int]]) -> None:
    _, src, tgt = three(pairs)
    groups: dict[int, set[tuple[int, int]]] = {}
    for label, pair in zip(connected_components(src, tgt).tolist(), pairs, strict=True):
        groups.setdefault(label, set()).add(pair)
    assert set(map(frozenset, groups.values())) == naive_components(pairs)


def test_a_long_chain_is_one_component() -> None:
    pairs = [(index // 2, (index + 1) // 2) for index in range(2000)]
    assert len(set(connected_components(*three(pairs)[1:]).tolist())) == 1


def split(pairs: list[tuple[int, int]], config: SplitConfig) -> dict[int, set[tuple[int, int]]]:
    splits = assign_splits(*three(pairs), config).tolist()
    return {number: {pair for pair, own in zip(pairs, splits, strict=True) if own == number} for number in (TRAIN, DEV, TEST)}


@settings(max_examples=50)
@given(shuffle=st.randoms(use_true_random=False), seed=st.integers(-5, 5), extra=LINKED)
def test_splits_share_nothing_and_do_not_depend_on_the_order(shuffle: Random, seed: int, extra: list[tuple[int, int]]) -> None:
    pairs = [(index, index) for index in range(100, 150)] + extra
    config = SplitConfig(dev=10, test=10, seed=seed)
    parts = split(pairs, config)
    assert [len(parts[number]) for number in (DEV, TEST)] == [10, 10]
    for side in (0, 1):
        sentences = [{pair[side] for pair in parts[number]} for number in (TRAIN, DEV, TEST)]
        assert sum(map(len, sentences)) == len(set().union(*sentences))
    reordered = list(pairs)
    shuffle.shuffle(reordered)
    assert split(reordered, config) == parts


def test_another_seed_is_another_split() -> None:
    pairs = [(index, index) for index in range(200)]
    assert split(pairs, SplitConfig(dev=20, test=20, seed=1)) != split(pairs, SplitConfig(dev=20, test=20, seed=2))


def test_a_giant_component_stays_in_train() -> None:
    pairs = [(0, index) for index in range(30)] + [(index, index) for index in range(100, 400)]
    for seed in range(20):
        parts = split(pairs, SplitConfig(dev=100, test=100, seed=seed))
        assert {(0, index) for index in range(30)} <= parts[TRAIN]
        assert [len(parts[number]) for number in (DEV, TEST)] == [100, 100]


def test_larger_components_are_taken_if_there_are_no_smaller_ones() -> None:
    pairs = [(index // 2, index) for index in range(200)]
    parts = split(pairs, SplitConfig(dev=20, test=31))
    assert [len(parts[number]) for number in (DEV, TEST)] == [20, 30]


@pytest.mark.parametrize(("dev", "test"), [(5, 5), (50, 1), (1, 50)])
def test_sizes_that_leave_nothing_to_train_on_are_refused(dev: int, test: int) -> None:
    pairs = [(index, index) for index in range(10)]
    with pytest.raises(DataError, match=rf"data\.split: dev {dev} \+ test {test} leave no training data, there are only 10 pairs"):
        split(pairs, SplitConfig(dev=dev, test=test))


def test_sizes_that_need_linked_pairs_are_refused_with_the_numbers() -> None:
    pairs = [(0, index) for index in range(90)] + [(index, index) for index in range(100, 110)]
    with pytest.raises(DataError, match=r"data\.split\.test: 20 of 100 pairs are needed, but only 10 share no sentence"):
        split(pairs, SplitConfig(dev=20, test=20))


@given(st.permutations(range(40)), st.integers(0, 50))
def test_a_sample_does_not_depend_on_the_order(order: list[int], count: int) -> None:
    pairs = fingerprints([str(index) for index in range(40)])
    sampled = sample_pairs(pairs, count, 1, "max_pairs")
    assert len(sampled) == min(count, 40)
    again = np.array(order)[sample_pairs(pairs[order], count, 1, "max_pairs")]
    assert sorted(again.tolist()) == sampled.tolist()


def test_random_orders_differ_by_seed_and_purpose_and_are_even() -> None:
    pairs = fingerprints([str(index) for index in range(10_000)])
    orders = [random_keys(pairs, seed, purpose) for seed, purpose in ((1, "split"), (2, "split"), (1, "naive"))]
    for index, one in enumerate(orders):
        assert abs(float(np.mean(one >> np.uint64(63))) - 0.5) < 0.03
        for other in orders[:index]:
            assert abs(float(np.corrcoef(one.astype(float), other.astype(float))[0, 1])) < 0.05


def test_first_occurrences_are_kept() -> None:
    assert first_occurrences(fingerprints(["b", "a", "b", "c", "a"])).tolist() == [0, 1, 3]


def test_the_leak_of_a_naive_split() -> None:
    apart = [(index, index) for index in range(100)]
    assert naive_leak(*three(apart), SplitConfig(dev=10, test=10)) == 0
    twins = [(index // 2, index) for index in range(1000)]
    assert 0.7 < naive_leak(*three(twins), SplitConfig(dev=50, test=100)) < 1
