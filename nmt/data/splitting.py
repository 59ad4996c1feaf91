"""Splits that share no sentence: pairs linked by a common source or target stay together. The order of the input has no effect.

Sentences are known only by 64-bit fingerprints, so millions of them fit into memory as arrays.
"""

import re
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.config.schema import SplitConfig
from nmt.errors import DataError
from nmt.text.normalization import FIRST_VOWEL_SIGN, WORD_CHARACTERS

TRAIN, DEV, TEST = 0, 1, 2

Fingerprints = npt.NDArray[np.uint64]

# A group of linked pairs that is larger than this share of a split stays in train. A larger share is tried only if smaller groups
# do not fill the split.
_MAX_GROUP_SHARES = (0.01, 0.1, 0.5)
_MIN_FILLED = 0.9  # share of the configured size

_NOT_LETTER_OR_DIGIT = re.compile(rf"[^{WORD_CHARACTERS}]+|_+")
_FASTER = re.compile(r"[\W_]+")  # equal for characters before `FIRST_VOWEL_SIGN`


def sentence_key(text: str) -> str:
    """Equal for sentences that count as the same: case-folded letters (with vowel signs) and digits; the text if it has none."""
    folded = text.casefold()
    pattern = _FASTER if folded.isascii() or max(folded, default="") < FIRST_VOWEL_SIGN else _NOT_LETTER_OR_DIGIT
    return pattern.sub("", folded) or text


def fingerprint(text: str) -> bytes:
    """A hash of 8 bytes, the same on every machine."""
    return blake2b(text.encode("utf-8"), digest_size=8).digest()


def random_keys(fingerprints: Fingerprints, seed: int, purpose: str) -> Fingerprints:
    """Keys to sort by for a random order that depends on the seed and the purpose, not on the order of `fingerprints`."""
    salt = np.frombuffer(blake2b(f"{seed} {purpose}".encode(), digest_size=8).digest(), "<u8")
    # The finalizer of splitmix64: each input bit affects all output bits.
    mixed = fingerprints ^ salt
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    keys: Fingerprints = mixed ^ (mixed >> np.uint64(31))
    return keys


def first_occurrences(pairs: Fingerprints) -> npt.NDArray[np.int64]:
    """The position of the first occurrence of each different pair, ascending."""
    return np.sort(np.unique(pairs, return_index=True)[1])


def sample_pairs(pairs: Fingerprints, count: int, seed: int, purpose: str) -> npt.NDArray[np.int64]:
    """Positions of `count` random pairs (or of all, if they are fewer), ascending."""
    order = np.argsort(random_keys(pairs, seed, purpose), kind="stable")
    return np.sort(order[:count])


def connected_components(src: Fingerprints, tgt: Fingerprints) -> npt.NDArray[np.int64]:
    """A number for each pair, equal if a chain of shared sources and targets links two pairs."""
    src_names, src_nodes = np.unique(src, return_inverse=True)
    tgt_names, tgt_nodes = np.unique(tgt, return_inverse=True)
    tgt_nodes = tgt_nodes + len(src_names)
    labels = np.arange(len(src_names) + len(tgt_names))
    while True:
        # Each label is the root of a tree of nodes. Hook each root under the lowest root that a pair links it to.
        src_roots, tgt_roots = labels[src_nodes], labels[tgt_nodes]
        hooked = labels.copy()
        np.minimum.at(hooked, src_roots, tgt_roots)
        np.minimum.at(hooked, tgt_roots, src_roots)
        while not np.array_equal(hooked, hooked[hooked]):
            hooked = hooked[hooked]
        if np.array_equal(hooked, labels):
            components: npt.NDArray[np.int64] = labels[src_nodes]
            return components
        labels = hooked


def assign_splits(pairs: Fingerprints, src: Fingerprints, tgt: Fingerprints, config: SplitConfig) -> npt.NDArray[np.int8]:
    """TRAIN, DEV or TEST for each pair. `pairs` are fingerprints of whole pairs, `src` and `tgt` of the sentence keys.

    Raises:
        DataError: there are too few pairs for the configured sizes, or too many of them share sentences.
    """
    if config.dev + config.test >= len(pairs):
        sizes_text = f"dev {config.dev:,} + test {config.test:,}"
        raise DataError(f"data.split: {sizes_text} leave no training data, there are only {len(pairs):,} pairs; lower both")
    _, component, sizes = np.unique(connected_components(src, tgt), return_inverse=True, return_counts=True)
    lowest = np.full(len(sizes), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(lowest, component, pairs)
    order = np.argsort(random_keys(lowest, config.seed, "split"), kind="stable")
    splits = np.full(len(sizes), TRAIN, np.int8)
    for split, size, name in ((TEST, config.test, "test"), (DEV, config.dev, "dev")):
        n_filled = _fill_split(splits, order, sizes, split, size)
        if n_filled < _MIN_FILLED * size or np.all(splits != TRAIN):
            raise DataError(
                f"data.split.{name}: {size:,} of {len(pairs):,} pairs are needed, but only {n_filled:,} share no sentence with the "
                "others; choose a smaller size"
            )
    assigned: npt.NDArray[np.int8] = splits[component]
    return assigned


def _fill_split(splits: npt.NDArray[np.int8], order: npt.NDArray[Any], sizes: npt.NDArray[Any], split: int, size: int) -> int:
    """Move components from TRAIN to `split` until it has `size` pairs, small components first. Returns its number of pairs."""
    n_filled = 0
    for share in _MAX_GROUP_SHARES:
        max_group = max(1, int(share * size))
        candidates = order[(splits[order] == TRAIN) & (sizes[order] <= max_group)]
        for index in candidates.tolist():
            if n_filled == size:
                return n_filled
            if n_filled + sizes[index] <= size:
                splits[index] = split
                n_filled += int(sizes[index])
    return n_filled


def naive_leak(pairs: Fingerprints, src: Fingerprints, tgt: Fingerprints, config: SplitConfig) -> float:
    """The share of test pairs with a sentence in train if the pairs were split at random into the same sizes."""
    order = np.argsort(random_keys(pairs, config.seed, "naive"), kind="stable")
    test, train = order[: config.test], order[config.test + config.dev :]
    return float(np.mean(np.isin(src[test], src[train]) | np.isin(tgt[test], tgt[train])))
