"""A lexicon: the translations of each source token with their probabilities, counted from the
attention of a trained model.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.config.schema import Config
from nmt.config.section import key_of
from nmt.data.batches import Batch
from nmt.errors import DataError
from nmt.files import MAX_TEXT_BYTES, warn_if_changed, write_recorded
from nmt.lines import read_lines
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, Vocabulary

MAX_TRANSLATIONS = 50  # per source token
MIN_PROBABILITY = 0.001  # of a translation
MAX_PENDING = 1 << 22  # links kept before they are counted: 32 MB
LEXICON_FILE = "lexicon.tsv"
HEADER = "source\ttarget\tprobability\tcount"


@dataclass(frozen=True)
class Entry:
    """A target token, p(target | source), and the number of links between the two."""

    token: str
    probability: float
    count: int


@dataclass(frozen=True)
class Lexicon:
    """Source token -> its translations, most probable first; `<unk>` is one of them."""

    entries: Mapping[str, Sequence[Entry]]

    def best(self, token: str) -> str | None:
        """The most probable translation; None if the lexicon does not have the token."""
        entries = self.entries.get(token)
        return entries[0].token if entries else None

    def save(self, path: Path) -> None:
        """Write a table with one entry per line, whole or not at all."""
        rows = [
            f"{source}\t{entry.token}\t{entry.probability:.4f}\t{entry.count}"
            for source, entries in self.entries.items()
            for entry in entries
        ]
        write_recorded(path, "".join(f"{row}\n" for row in (HEADER, *rows)))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises: DataError if the file cannot be read, or a line is damaged."""
        header, *lines = read_lines(
            path, advice="run `nmt lexicon` again", max_bytes=MAX_TEXT_BYTES
        ) or [""]
        if header != HEADER:
            raise DataError(
                f"{path}, line 1: expected {HEADER!r}, found {header!r}; run `nmt lexicon` again"
            )
        entries: dict[str, list[Entry]] = {}
        for number, line in enumerate(lines, 2):
            if line.strip():
                source, entry = _parse(f"{path}, line {number}", line)
                entries.setdefault(source, []).append(entry)
        warn_if_changed(path)
        return cls(
            {
                source: sorted(unsorted, key=lambda entry: -entry.probability)
                for source, unsorted in entries.items()
            }
        )


def words(run: Path, config: Config) -> Callable[[str], str | None] | None:
    """The translations of source words, to replace <unk>; None if the run has no lexicon, or
    decoding does not use it.

    Raises:
        DataError: the lexicon is damaged.
    """
    path, decoding = run / LEXICON_FILE, config.decoding
    is_used = decoding.replace_unknown and key_of(decoding, "lexicon", bool)
    return Lexicon.load(path).best if is_used and path.exists() else None


def files(run: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """The lexicon of a run, and the function that reads it."""
    if (path := run / LEXICON_FILE).exists():
        yield LEXICON_FILE, partial(Lexicon.load, path)


def _parse(location: str, line: str) -> tuple[str, Entry]:
    cells = line.split("\t")
    try:
        source, token, probability, count = cells
        return source, Entry(token, float(probability), int(count))
    except ValueError:
        expected = "source, target, probability and count with tabs between"
        raise DataError(
            f"{location}: expected {expected}, found {line!r}; run `nmt lexicon` again"
        ) from None


class LinkCounts:
    """The number of links between each source id and each target id."""

    def __init__(self, tgt_vocabulary_size: int) -> None:
        self._size = tgt_vocabulary_size
        self._pairs, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._pending: list[NDArray[np.int64]] = []

    def add(self, src: NDArray[np.int64], tgt: NDArray[np.int64]) -> None:
        """Add links from src [N] to tgt [N]."""
        self._pending.append(src * self._size + tgt)
        if sum(map(len, self._pending)) > MAX_PENDING:
            self._count()

    def triples(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Source ids, target ids and counts, sorted by source id, then by count, largest first."""
        self._count()
        src, tgt = np.divmod(self._pairs, self._size)
        order = np.lexsort((tgt, -self._counts, src))
        return src[order], tgt[order], self._counts[order]

    def _count(self) -> None:
        pairs = np.concatenate([self._pairs, *self._pending])
        weights = np.concatenate([self._counts, np.ones(len(pairs) - len(self._counts), np.int64)])
        self._pairs, rows = np.unique(pairs, return_inverse=True)
        self._counts = np.bincount(rows, weights).astype(np.int64)
        self._pending = []


@torch.inference_mode()
def count_links(model: Seq2Seq, batches: Iterable[Batch], tgt_vocabulary_size: int) -> LinkCounts:
    """Count links from each target token to the source token that it attends to most.

    A target token whose largest weight is on <eos> has no link. The model must be in evaluation
    mode.
    """
    links = LinkCounts(tgt_vocabulary_size)
    for batch in batches:
        moved = batch.to(model.device)
        peaks = model(moved.src, moved.src_lengths, moved.tgt_in).attention.argmax(-1)  # [B, T]
        src, tgt = moved.src.gather(1, peaks), moved.tgt_out
        linked = moved.tgt_mask & (tgt != EOS) & (src != EOS)
        links.add(src[linked].cpu().numpy(), tgt[linked].cpu().numpy())
    return links


def build_lexicon(
    links: LinkCounts, src_vocabulary: Vocabulary, tgt_vocabulary: Vocabulary
) -> Lexicon:
    """Relative frequencies of the links, limited to `MAX_TRANSLATIONS` and `MIN_PROBABILITY`."""
    src, tgt, counts = links.triples()
    bounds = [*np.flatnonzero(np.diff(src, prepend=-1)), len(src)]
    entries: dict[str, list[Entry]] = {}
    for start, end in pairwise(bounds):
        total = counts[start:end].sum()
        kept = slice(start, min(end, start + MAX_TRANSLATIONS))
        tokens = tgt_vocabulary.tokens(tgt[kept].tolist())
        rows = zip(tokens, (counts[kept] / total).tolist(), counts[kept].tolist(), strict=True)
        (source,) = src_vocabulary.tokens([int(src[start])])
        entries[source] = [Entry(*row) for row in rows if row[1] >= MIN_PROBABILITY]
    return Lexicon(entries)
