"""Epochs: the pairs that are shuffled together.

A small corpus is shuffled as a whole. A larger one is divided in each epoch into parts of at most
`PART_PAIRS` pairs; the training goes through one part after another, and batches mix the pairs of
one part. So the memory for an order, and the time to make it, do not grow with the corpus.

A part is a random draw from the whole corpus, so it has all topics, sources and sentence lengths in
their shares: a corpus is often sorted by its sources, and a model forgets what it has not seen for
long. It is drawn as short ranges of neighbors, since a disk reads neighbors fast. If a tenth of the
corpus stands in one place, nearly every part of 1024 ranges has 8 to 12 % of it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

PART_PAIRS = 1 << 20  # to plan batches for it takes about 45 MB and 0.5 s
RANGE_PAIRS = 1 << 10  # about 40 kB of each side


@dataclass(frozen=True)
class Part:
    """Pairs of a corpus that are shuffled together.

    Attributes:
        epoch: from 0. index: in the epoch, from 0.
        n_parts: in the epoch.
        ranges: the first pair of each range and the end of the range, ascending.
    """

    epoch: int
    index: int
    n_parts: int
    ranges: list[tuple[int, int]]

    def key(self, seed: int) -> tuple[int, ...]:
        """For the random numbers of its batches."""
        return (seed, self.epoch, self.index) if self.index else (seed, self.epoch)

    def indices(self) -> NDArray[np.int64]:
        """The pairs, as indices into the corpus, ascending."""
        return np.concatenate([np.arange(start, end) for start, end in self.ranges])


def divide_epoch(n_pairs: int, *, seed: int, epoch: int) -> Iterator[Part]:
    """The parts of an epoch in their order, a pure function of the arguments. Each pair is in one
    part; their sizes are similar.
    """
    starts = np.arange(0, n_pairs, RANGE_PAIRS)
    n_parts = -(-n_pairs // PART_PAIRS)
    if (
        n_parts > 1
        # the batches of part i are drawn with (seed, epoch, i), so this is another sequence of random
        # numbers
    ):
        starts = np.random.default_rng([seed, epoch, n_parts]).permutation(starts)
    for index, part in enumerate(np.array_split(starts, n_parts)):
        yield Part(
            epoch,
            index,
            n_parts,
            [(start, min(start + RANGE_PAIRS, n_pairs)) for start in np.sort(part).tolist()],
        )


def divide_epochs(
    n_pairs: int, epochs: Iterable[int], *, seed: int, first_part: int = 0
) -> Iterator[Part]:
    """The parts of epochs one after the other, from the part `first_part` of the first epoch on."""
    parts = chain.from_iterable(divide_epoch(n_pairs, seed=seed, epoch=epoch) for epoch in epochs)
    return islice(parts, first_part, None)
