"""Splits that share no sentence: pairs linked by a common source or target stay together, whatever their order in the input.

Sentences are known by 64-bit fingerprints only, so that millions of them fit into memory as arrays.
"""

import re
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.config.schema import SplitConfig
from nmt.errors import DataError

TRAIN, DEV, TEST = 0, 1, 2

Fingerprints = npt.NDArray[np.uint64]

# Groups of linked pairs larger than this share of a split stay in train; the next share is for data that has no smaller groups.
_LARGEST_SHARES = (0.01, 0.1, 0.5)
_ENOUGH = 0.9

_NO_LETTER_OR_DIGIT = re.compile(r"[\W_]+")


def sentence_key(text: str) -> str:
    """What two sentences have in common if they count as the same: letters and digits, case-folded; the text if it has none."""
    return _NO_LETTER_OR_DIGIT.sub("", text.casefold()) or text


def fingerprint(text: str) -> bytes:
    """8 bytes that stand for `text`, the same on every machine."""
    return blake2b(text.encode("utf-8"), digest_size=8).digest()


def shuffled(fingerprints: Fingerprints, seed: int, purpose: str) -> Fingerprints:
    """Values to sort by for a random order that depends on the seed and the purpose, not on the order of `fingerprints`."""
    salt = np.frombuffer(blake2b(f"{seed} {purpose}".encode(), digest_size=8).digest(), "<u8")
    # The finalizer of splitmix64: every input bit sways every output bit.
    mixed = fingerprints ^ salt
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: Fingerprints = mixed ^ (mixed >> np.uint64(31))
    return result


def first_occurrences(pairs: Fingerprints) -> npt.NDArray[np.bool_]:
    """True where a pair is met for the first time."""
    first = np.zeros(len(pairs), np.bool_)
    first[np.unique(pairs, return_index=True)[1]] = True
    return first


def draw(pairs: Fingerprints, count: int, seed: int, purpose: str) -> npt.NDArray[np.int64]:
    """Positions of `count` pairs drawn at random, in ascending order; all of them if there are no more."""
    order = np.argsort(shuffled(pairs, seed, purpose), kind="stable")
    return np.sort(order[:count])


def components(src: Fingerprints, tgt: Fingerprints) -> npt.NDArray[np.int64]:
    """A number for each pair, equal where a chain of shared sources and targets links two pairs."""
    src_names, src_nodes = np.unique(src, return_inverse=True)
    tgt_names, tgt_nodes = np.unique(tgt, return_inverse=True)
    tgt_nodes = tgt_nodes + len(src_names)
    labels = np.arange(len(src_names) + len(tgt_names))
    while True:
        # Each label is a root, standing for a tree of nodes; hook every root under the lowest that a pair links it to.
        src_roots, tgt_roots = labels[src_nodes], labels[tgt_nodes]
        hooked = labels.copy()
        np.minimum.at(hooked, src_roots, tgt_roots)
        np.minimum.at(hooked, tgt_roots, src_roots)
        while not np.array_equal(hooked, hooked[hooked]):
            hooked = hooked[hooked]
        if np.array_equal(hooked, labels):
            result: npt.NDArray[np.int64] = labels[src_nodes]
            return result
        labels = hooked


def assign(pairs: Fingerprints, src: Fingerprints, tgt: Fingerprints, config: SplitConfig) -> npt.NDArray[np.int8]:
    """TRAIN, DEV or TEST for each pair. `pairs` are fingerprints of whole pairs, `src` and `tgt` those of the sentence keys.

    Raises:
        DataError: there are too few pairs, or too few that can be parted from the others, for the sizes asked for.
    """
    if config.dev + config.test >= len(pairs):
        asked = f"dev {config.dev:,} + test {config.test:,} pairs are asked for"
        raise DataError(f"data.split: {asked}, but there are only {len(pairs):,}, and some must be left to train on")
    _, component, sizes = np.unique(components(src, tgt), return_inverse=True, return_counts=True)
    lowest = np.full(len(sizes), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(lowest, component, pairs)
    order = np.argsort(shuffled(lowest, config.seed, "split"), kind="stable")
    places = np.full(len(sizes), TRAIN, np.int8)
    for split, asked_for, name in ((TEST, config.test, "test"), (DEV, config.dev, "dev")):
        filled = _fill(places, order, sizes, split, asked_for)
        if filled < _ENOUGH * asked_for or np.all(places != TRAIN):
            reason = f"only {filled:,} can be parted from the rest without sharing a sentence with it"
            raise DataError(f"data.split.{name}: {asked_for:,} of {len(pairs):,} pairs are asked for, but {reason}")
    assigned: npt.NDArray[np.int8] = places[component]
    return assigned


def _fill(places: npt.NDArray[np.int8], order: npt.NDArray[Any], sizes: npt.NDArray[Any], split: int, wanted: int) -> int:
    """Put components into `split`, small ones first come first served, and return how many pairs it got."""
    filled = 0
    for share in _LARGEST_SHARES:
        largest = max(1, int(share * wanted))
        candidates = order[(places[order] == TRAIN) & (sizes[order] <= largest)]
        for index in candidates.tolist():
            if filled == wanted:
                return filled
            if filled + sizes[index] <= wanted:
                places[index] = split
                filled += int(sizes[index])
    return filled


def shared(first: Fingerprints, second: Fingerprints) -> int:
    """How many different sentences are in both."""
    return len(np.intersect1d(first, second))


def naive_leak(pairs: Fingerprints, src: Fingerprints, tgt: Fingerprints, config: SplitConfig) -> float:
    """The share of test pairs of a plain random split, of the same sizes, whose source or target sentence would be in train too."""
    order = np.argsort(shuffled(pairs, config.seed, "naive"), kind="stable")
    test, train = order[: config.test], order[config.test + config.dev :]
    return float(np.mean(np.isin(src[test], src[train]) | np.isin(tgt[test], tgt[train])))
