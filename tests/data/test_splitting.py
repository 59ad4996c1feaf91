"""nmt.data.splitting: splits share no sentence, whatever the order of the pairs."""

import tracemalloc
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config.schema import SplitConfig
from nmt.data import splitting
from nmt.data.splitting import (
    DEV,
    TEST,
    TRAIN,
    Fingerprints,
    Numbers,
    assign_splits,
    connected_components,
    find_first,
    fingerprint,
    naive_leak,
    number_sentences,
    random_keys,
    sample_pairs,
    sentence_key,
)
from nmt.errors import DataError

# Few different sentences, so that many pairs are linked.
LINKED = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60, unique=True
)


def fingerprints(texts: list[str]) -> Fingerprints:
    return np.frombuffer(b"".join(map(fingerprint, texts)), "<u8")


def three(pairs: list[tuple[int, int]]) -> tuple[Fingerprints, Fingerprints, Fingerprints]:
    return (
        fingerprints([f"{src}\t{tgt}" for src, tgt in pairs]),
        fingerprints([str(src) for src, _ in pairs]),
        fingerprints([str(tgt) for _, tgt in pairs]),
    )


def components(pairs: list[tuple[int, int]]) -> Numbers:
    return connected_components(*map(number_sentences, three(pairs)[1:]))


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
        # Hindi, with short and with long i.
        ("\u0935\u0939 \u0915\u093f", "\u0935\u0939 \u0915\u0940", False),
        ("\u0935\u0939 \u0915\u093f?", "\u0935\u0939\u0915\u093f", True),
        # Hebrew, with and without its optional points.
        ("\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd", "\u05e9\u05dc\u05d5\u05dd", True),
    ],
)
def test_sentences_count_as_the_same_by_letters_and_digits(
    one: str, other: str, same: bool
) -> None:
    assert (sentence_key(one) == sentence_key(other)) == same
    assert sentence_key(one)


def test_fingerprints_are_the_same_on_every_machine() -> None:
    assert fingerprint("Grüß Gott!").hex() == "75c9a22c1773c2bb"


def test_a_long_chain_is_one_component() -> None:
    pairs = [(index // 2, (index + 1) // 2) for index in range(2000)]
    assert len(set(components(pairs).tolist())) == 1


def split(pairs: list[tuple[int, int]], config: SplitConfig) -> dict[int, set[tuple[int, int]]]:
    splits = assign_splits(three(pairs)[0], components(pairs), config).tolist()
    return {
        number: {pair for pair, own in zip(pairs, splits, strict=True) if own == number}
        for number in (TRAIN, DEV, TEST)
    }


@settings(max_examples=50)
@given(shuffle=st.randoms(use_true_random=False), seed=st.integers(-5, 5), extra=LINKED)
def test_splits_share_nothing_and_do_not_depend_on_the_order(
    shuffle: Random, seed: int, extra: list[tuple[int, int]]
) -> None:
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


@pytest.mark.parametrize(
    ("sizes", "n_linked", "message"),
    [
        *(
            (sizes, 0, r"dev \d+ \+ test \d+ leave no training data, there are only 10 pairs")
            for sizes in ((5, 5), (50, 1), (1, 50))
        ),
        ((20, 20), 90, r"test: 20 of 100 pairs are needed, but only 10 share no sentence"),
    ],
)
def test_sizes_that_are_too_large_are_refused(
    sizes: tuple[int, int], n_linked: int, message: str
) -> None:
    pairs = [(0, index) for index in range(n_linked)] + [(i, i) for i in range(100, 110)]
    with pytest.raises(DataError, match=rf"data\.split.*{message}"):
        split(pairs, SplitConfig(dev=sizes[0], test=sizes[1]))


@given(st.permutations(range(40)), st.integers(0, 50))
def test_a_sample_does_not_depend_on_the_order(order: list[int], count: int) -> None:
    pairs = fingerprints([str(index) for index in range(40)])
    sampled = sample_pairs(pairs, count, 1, "max_pairs")
    assert np.count_nonzero(sampled) == min(count, 40)
    assert sample_pairs(pairs[order], count, 1, "max_pairs").tolist() == sampled[order].tolist()


def test_random_orders_differ_by_seed_and_purpose_and_are_even() -> None:
    pairs = fingerprints([str(index) for index in range(10_000)])
    orders = [
        random_keys(pairs, seed, purpose)
        for seed, purpose in ((1, "split"), (2, "split"), (1, "naive"))
    ]
    for index, one in enumerate(orders):
        assert abs(float(np.mean(one >> np.uint64(63))) - 0.5) < 0.03
        for other in orders[:index]:
            assert abs(float(np.corrcoef(one.astype(float), other.astype(float))[0, 1])) < 0.05


def test_first_occurrences_are_kept() -> None:
    assert np.flatnonzero(find_first(fingerprints(["b", "a", "b", "c", "a"]))).tolist() == [0, 1, 3]


def test_work_in_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(1)
    pairs = list({(random.randrange(400), random.randrange(400)) for _ in range(500)})
    config = SplitConfig(dev=20, test=20)
    whole, *sides = three(pairs)
    results = []
    for size in (splitting.BLOCK, 7):
        monkeypatch.setattr(splitting, "BLOCK", size)
        leak = naive_leak(whole, sides, config)
        results.append((leak, split(pairs, config), components(pairs).tolist()))
    assert results[0] == results[1]
    assert results[0][0] > 0


@pytest.mark.slow
def test_memory_of_a_split_does_not_exceed_its_bound() -> None:
    count = 4 * splitting.BLOCK
    whole = np.random.default_rng(1).integers(0, 1 << 63, count).astype(np.uint64)
    sentences = whole % np.uint64(count)  # most are shared
    tracemalloc.start()
    try:
        numbers = number_sentences(sentences)
        steps = [tracemalloc.get_traced_memory()[1]]
        for step in (
            lambda: connected_components(numbers, numbers[::-1].copy()),
            lambda: assign_splits(whole, numbers, SplitConfig()),
            lambda: find_first(whole),
            lambda: sample_pairs(whole, 1000, 1, "max_pairs"),
            lambda: naive_leak(whole, (sentences,), SplitConfig()),
        ):
            base = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            step()
            steps.append(tracemalloc.get_traced_memory()[1] - base)
    finally:
        tracemalloc.stop()
    assert max(steps) < 40 * count
