"""Which sentences go into a batch, and their ids as an array."""

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from nmt.text.vocabulary import EOS, PAD

SentenceIds = NDArray[np.int32] | Sequence[int]


def cut_batches(
    lengths: Sequence[int], *, max_items: float = inf, max_padded: float = inf
) -> list[slice]:
    """Cut a sequence of items into batches of neighbors, as slices; sort the items by length first
    to keep padding small.

    Args:
        lengths: the cost of each item, for example its tokens.
        max_items: limit on the items of a batch.
        max_padded: limit on items * longest, the size with padding. An item that is longer is a
            batch of its own.
    """
    slices, start, longest = list[slice](), 0, 0
    for index, length in enumerate(lengths):
        longest = max(longest, length)
        n_items = index + 1 - start
        if n_items > 1 and (n_items > max_items or n_items * longest > max_padded):
            slices.append(slice(start, index))
            start, longest = index, length
    return [*slices, slice(start, len(lengths))] if lengths else []


def pad_with_eos(sentences: Sequence[SentenceIds]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids with <eos> appended and padded, [B, S], and their lengths [B]."""
    rows = [np.concatenate((ids, [EOS])) for ids in sentences]
    return pad(rows), np.array([*map(len, rows)], dtype=np.int64)


def pad(rows: Sequence[NDArray[np.generic]]) -> NDArray[np.int64]:
    """Rows of ids, each filled with <pad> to the length of the longest."""
    padded = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return padded
