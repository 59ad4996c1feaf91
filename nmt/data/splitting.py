"""Splits that share no sentence: pairs linked by a common source or target stay together.

The order of the input has no effect.

Sentences are known only by 64-bit fingerprints, so a hundred million pairs fit into memory as
arrays: no function here needs more than 32 bytes a pair beyond its arguments. Work on whole arrays
is done in blocks where temporary copies would need more.
"""

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nmt.config.schema import SplitConfig
from nmt.errors import DataError
from nmt.text.tokenizers import FIRST_VOWEL_SIGN, WORD_CHARACTERS

TRAIN, DEV, TEST = 0, 1, 2

BLOCK = 1 << 20  # numbers at once

Kind = Literal["pair", "src", "tgt"]  # a fingerprint of the whole pair, or the key of a side
Fingerprints = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.signedinteger[Any]]
Mask = npt.NDArray[np.bool_]

_NOT_LETTER_OR_DIGIT = re.compile(rf"[^{WORD_CHARACTERS}]+|_+")
_FASTER = re.compile(r"[\W_]+")  # equal for characters before `FIRST_VOWEL_SIGN`


class TooFewPairsError(DataError):
    """Dev or test would be too small, as too many pairs share a sentence with others."""


def sentence_key(text: str) -> str:
    """Equal for sentences that count as the same: their letters and digits, without case."""
    folded = text.casefold()
    is_simple = folded.isascii() or max(folded, default="") < FIRST_VOWEL_SIGN
    return (_FASTER if is_simple else _NOT_LETTER_OR_DIGIT).sub("", folded) or text


def fingerprint(text: str) -> bytes:
    """A hash of 8 bytes, the same on every machine."""
    return blake2b(text.encode("utf-8"), digest_size=8).digest()


def blocks(count: int) -> Iterator[slice]:
    """Slices of at most `BLOCK` that cover `count` numbers."""
    for start in range(0, count, BLOCK):
        yield slice(start, min(start + BLOCK, count))


def random_keys(fingerprints: Fingerprints, seed: int, purpose: str) -> Fingerprints:
    """Keys to sort by for a random order: it depends on the seed and the purpose alone.

    Different fingerprints have different keys.
    """
    salt = np.frombuffer(fingerprint(f"{seed} {purpose}"), "<u8")
    keys = np.empty(len(fingerprints), np.uint64)
    for block in blocks(len(fingerprints)):
        # The finalizer of splitmix64: each input bit affects all output bits.
        mixed = fingerprints[block] ^ salt
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        keys[block] = mixed ^ (mixed >> np.uint64(31))
    return keys


def find_first(pairs: Fingerprints) -> Mask:
    """Whether each pair is the first one of those equal to it."""
    order = np.argsort(pairs, kind="stable")
    is_first = np.zeros(len(pairs), np.bool_)
    is_first[order[_starts_run(pairs, order)]] = True
    return is_first


def sample_pairs(pairs: Fingerprints, count: int, seed: int, purpose: str) -> Mask:
    """Which of some different pairs are in a random sample of `count`; all, if they are fewer."""
    keys = random_keys(pairs, seed, purpose)
    return keys <= _bound(keys, count) if count and len(pairs) else np.zeros(len(pairs), np.bool_)


def number_sentences(fingerprints: Fingerprints) -> Numbers:
    """A number for each sentence, equal for equal sentences: 0, 1, ..."""
    order = np.argsort(fingerprints)
    starts = _starts_run(fingerprints, order)
    # The nodes of both sides must fit.
    dtype = np.dtype(np.int32 if len(fingerprints) < 1 << 30 else np.int64)
    ascending: Numbers = np.cumsum(starts, dtype=dtype)
    ascending -= 1
    numbers: Numbers = np.empty(len(fingerprints), dtype)
    numbers[order] = ascending
    return numbers


def connected_components(src: Numbers, tgt: Numbers) -> Numbers:
    """A number for each pair, equal if a chain of shared sources and targets links two pairs.

    src, tgt: the number of each pair's source and target, see `number_sentences`.
    """
    n_sources = int(src.max()) + 1
    # Of the sources, then of the targets.
    labels: Numbers = np.arange(n_sources + int(tgt.max()) + 1, dtype=src.dtype)
    is_final = False
    while not is_final:
        # Each label is the root of a tree of nodes. Hook each root under the lowest root that a
        # pair links it to.
        hooked = labels.copy()
        for block in blocks(len(src)):
            src_roots, tgt_roots = labels[src[block]], labels[n_sources:][tgt[block]]
            np.minimum.at(hooked, src_roots, tgt_roots)
            np.minimum.at(hooked, tgt_roots, src_roots)
        while not _follow(hooked):
            pass
        is_final = np.array_equal(hooked, labels)
        labels = hooked
    return labels[src]


def _follow(parents: Numbers) -> bool:
    """Replace parents by grandparents. Returns whether they are the same: each parent is a root."""
    is_done = True
    for block in blocks(len(parents)):
        grandparents = parents[parents[block]]
        is_done &= np.array_equal(grandparents, parents[block])
        parents[block] = grandparents
    return is_done


def assign_splits(
    pairs: Fingerprints, component: Numbers, config: SplitConfig, is_eligible: Mask | None = None
) -> npt.NDArray[np.int8]:
    """TRAIN, DEV or TEST for each pair.

    Args:
        pairs: fingerprints of whole pairs. component: from `connected_components`.
        is_eligible: which pairs may be in dev or test; by default all. A component with another
            pair stays in train as a whole.

    Raises:
        DataError: there are too few pairs for the configured sizes.
        TooFewPairsError: too many of them share sentences.
    """
    if config.dev + config.test >= len(pairs):
        raise DataError(
            f"data.split: dev {config.dev:,} + test {config.test:,} leave no training data, there "
            f"are only {len(pairs):,} pairs; lower both"
        )
    n_labels = int(component.max()) + 1  # some labels have no pairs
    sizes = np.zeros(n_labels, component.dtype)
    lowest = np.full(n_labels, np.iinfo(np.uint64).max, np.uint64)
    for block in blocks(len(pairs)):
        np.add.at(sizes, component[block], 1)
        np.minimum.at(lowest, component[block], pairs[block])
    if is_eligible is not None:
        sizes[component[~is_eligible]] = 0
    keys = random_keys(lowest, config.seed, "split")
    del lowest
    order = np.argsort(keys)
    splits = np.full(n_labels, TRAIN, np.int8)
    for split, size, name in ((TEST, config.test, "test"), (DEV, config.dev, "dev")):
        n_filled = _fill_split(splits, order, sizes, split, size)
        assigned: npt.NDArray[np.int8] = splits[component]
        if n_filled < 0.9 * size or np.all(assigned != TRAIN):
            n_pairs = len(pairs) if is_eligible is None else int(np.count_nonzero(is_eligible))
            raise TooFewPairsError(
                f"data.split.{name}: {size:,} of {n_pairs:,} pairs are needed, but only "
                f"{n_filled:,} share no sentence with the others; choose a smaller size"
            )
    return assigned


def _fill_split(
    splits: npt.NDArray[np.int8],
    order: npt.NDArray[np.int64],
    sizes: Numbers,
    split: int,
    size: int,
) -> int:
    """Move components to `split` until it has `size` pairs; how many it has.

    A component that is larger than a share of the split stays in train. A larger share is tried
    only if smaller components do not fill the split.
    """
    n_filled = 0
    for share in (0.01, 0.1, 0.5):
        max_group = max(1, int(share * size))
        for block in blocks(len(order)):
            labels = order[block]
            is_candidate = (
                (splits[labels] == TRAIN) & (sizes[labels] > 0) & (sizes[labels] <= max_group)
            )
            for index in labels[is_candidate].tolist():
                if n_filled == size:
                    return n_filled
                if n_filled + sizes[index] <= size:
                    splits[index] = split
                    n_filled += int(sizes[index])
    return n_filled


def naive_leak(pairs: Fingerprints, sides: Iterable[Fingerprints], config: SplitConfig) -> float:
    """The share of test pairs with a sentence in train if pairs were split at random.

    Args:
        sides: the source keys, then the target keys.
    """
    keys = random_keys(pairs, config.seed, "naive")
    is_test = keys <= _bound(keys, config.test)
    is_train = keys > _bound(keys, config.test + config.dev)
    del keys
    leaks = np.zeros(np.count_nonzero(is_test), np.bool_)
    for side in sides:
        sentences, numbers = np.unique(side[is_test], return_inverse=True)
        leaks |= _find(sentences, side, is_train)[numbers]
    return float(np.mean(leaks))


def are_among(few: Fingerprints, many: Fingerprints) -> Mask:
    """Which of a few fingerprints are among many others."""
    different, numbers = np.unique(few, return_inverse=True)
    return _find(different, many)[numbers]


def _find(sentences: Fingerprints, others: Fingerprints, is_wanted: Mask | None = None) -> Mask:
    """Which of some sorted different sentences are among the wanted others."""
    is_found = np.zeros(len(sentences), np.bool_)
    for block in blocks(len(others) if len(sentences) else 0):
        part = others[block] if is_wanted is None else others[block][is_wanted[block]]
        indices = np.minimum(np.searchsorted(sentences, part), len(sentences) - 1)
        is_found[indices[sentences[indices] == part]] = True
    return is_found


def _starts_run(values: Fingerprints, order: npt.NDArray[np.int64]) -> Mask:
    """Whether each value, in ascending order, differs from the one before it."""
    ascending = values[order]
    starts = np.ones(len(values), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=starts[1:])
    return starts


def _bound(keys: Fingerprints, count: int) -> np.uint64:
    """The largest of the `count` lowest keys."""
    index = min(count, len(keys)) - 1
    return np.uint64(np.partition(keys, index)[index])
