"""Several sources of training pairs, and how many of the pairs each one gives.

With a temperature T, the part of a source of n pairs is in proportion to n ** (1 / T) (Arivazhagan
et al. 2019, arXiv 1907.05019). It is done once, in `nmt prepare`: the number of training pairs
stays the same, pairs of a source that needs more are repeated, and of a source that needs fewer a
random part is taken.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from nmt.config.schema import DataConfig
from nmt.data.reading import Pair, Pairs, Tally
from nmt.data.splitting import Fingerprints, Kind, Mask, sample_pairs
from nmt.errors import DataError


@dataclass(frozen=True)
class Source:
    """A source that has been read. part: the indices of its pairs among `pairs`."""

    name: str
    pairs: Pairs
    part: slice
    tally: Tally


@dataclass(frozen=True)
class Split:
    """Some pairs of a source.

    Attributes:
        source: all its pairs. is_member: [N], which of them are in the split; None: all.
        lines: the pairs to stream, in their order. copies: how many times each occurs; None: once.
    """

    source: Pairs
    is_member: Mask | None
    lines: Pairs
    copies: npt.NDArray[np.generic] | None = None

    def __len__(self) -> int:
        return len(self.lines) if self.copies is None else int(self.copies.sum(dtype=np.int64))

    def stream(self) -> Iterator[Pair]:
        """The pairs, read from disk."""
        return self.lines.stream(self.copies)

    def fingerprints(self, kind: Kind) -> Fingerprints:
        """Of the different pairs, in the order of the source."""
        return self.source.fingerprints(kind, self.is_member)


def apply_shares(train: Split, sources: Sequence[Source], data: DataConfig) -> Split:
    """The training pairs, each as often as the shares and the temperature of the sources demand.

    Raises:
        DataError: a source with a share has no training pairs.
    """
    if data.sources is None or (
        data.temperature == 1 and all(source.share is None for source in data.sources.values())
    ):
        return train
    is_member = train.is_member
    assert is_member is not None
    counts = np.array([np.count_nonzero(is_member[source.part]) for source in sources])
    shares = mixture(
        [data.sources[source.name].share for source in sources], counts, data.temperature
    )
    for source, count, share in zip(sources, counts, shares, strict=True):
        if share and not count:
            raise DataError(
                f"data.sources.{source.name}.share: none of its pairs is left for training; "
                "remove the source"
            )
    # Each pair of a source occurs `n_times`, and some of its pairs, chosen at random, once more.
    n_wanted = np.diff(np.rint(shares.cumsum() * counts.sum()).astype(np.int64), prepend=0)
    n_times = n_wanted // np.maximum(counts, 1)
    dtype = np.uint8 if n_times.max() < np.iinfo(np.uint8).max else np.uint32
    copies = np.zeros(len(is_member), dtype)
    fingerprints = train.fingerprints("pair")
    start = 0
    for source, count, wanted, times in zip(
        sources, counts.tolist(), n_wanted.tolist(), n_times.tolist(), strict=True
    ):
        is_once_more = sample_pairs(
            fingerprints[start : start + count], wanted - times * count, data.split.seed, "share"
        )
        copies[source.part][is_member[source.part]] = times + is_once_more.astype(copies.dtype)
        start += count
    return replace(train, copies=copies)


def mixture(
    shares: Sequence[float | None], counts: npt.NDArray[np.int64], temperature: float
) -> npt.NDArray[np.float64]:
    """The part of each source; those without a share divide the rest by counts and temperature."""
    weights = np.array(
        [
            0.0 if share is not None else count ** (1 / temperature)
            for share, count in zip(shares, counts, strict=True)
        ]
    )
    fixed = np.array([share or 0.0 for share in shares])
    parts: npt.NDArray[np.float64] = (
        fixed + (1 - fixed.sum()) * weights / weights.sum()
        if weights.any()
        else fixed / fixed.sum()
    )
    return parts
