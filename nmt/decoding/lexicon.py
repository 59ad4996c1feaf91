"""A lexicon of tokens: what each source token was translated by, as a trained model's own attention has it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.data.batching import Batch
from nmt.errors import DataError
from nmt.files import write_text
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, Vocabulary

MOST = 50  # translations kept of a source token
LEAST = 0.001  # probability of those
PENDING = 1 << 22  # links that wait to be counted: 32 MB
HEADER = "source\ttarget\tprobability\tcount"


@dataclass(frozen=True)
class Entry:
    """A target token, p(target | source), and how often the two were linked."""

    token: str
    probability: float
    count: int


@dataclass(frozen=True)
class Lexicon:
    """Source token -> its translations, the most probable first; those into `<unk>` count too."""

    entries: Mapping[str, Sequence[Entry]]

    def best(self, token: str) -> str | None:
        """The most probable translation; None if there is none, or it is a token without an id."""
        found = self.entries.get(token)
        return found[0].token if found else None

    def save(self, path: Path) -> None:
        """A table with one entry a line; what `path` held before stays until all is written."""
        entries = [(source, entry) for source, found in self.entries.items() for entry in found]
        rows = (f"{source}\t{entry.token}\t{entry.probability:.4f}\t{entry.count}" for source, entry in entries)
        write_text(path, "".join(f"{row}\n" for row in (HEADER, *rows)))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises: DataError if it cannot be read, or a line of it is damaged (the line is named)."""
        try:
            header, *lines = path.read_bytes().decode("utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: cannot be read as UTF-8 text ({error}); `nmt lexicon` makes it again") from None
        if header.rstrip("\r") != HEADER:
            raise DataError(f"{path}, line 1: expected {HEADER!r}, found {header!r}; `nmt lexicon` makes it again")
        entries: dict[str, list[Entry]] = {}
        for number, line in enumerate(lines, 2):
            if line.strip():
                source, entry = _parse(f"{path}, line {number}", line)
                entries.setdefault(source, []).append(entry)
        return cls({source: sorted(found, key=lambda entry: -entry.probability) for source, found in entries.items()})


def _parse(where: str, line: str) -> tuple[str, Entry]:
    cells = line.rstrip("\r").split("\t")
    try:
        source, token, probability, count = cells
        return source, Entry(token, float(probability), int(count))
    except ValueError:
        expected = "source, target, probability and count with tabs between"
        raise DataError(f"{where}: expected {expected}, found {line!r}; `nmt lexicon` makes it again") from None


class Links:
    """How often each source id was linked to each target id."""

    def __init__(self, tgt_vocabulary_size: int) -> None:
        self._size = tgt_vocabulary_size
        self._pairs, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._pending: list[NDArray[np.int64]] = []

    def add(self, src: NDArray[np.int64], tgt: NDArray[np.int64]) -> None:
        """Count links, src [N] to tgt [N]."""
        self._pending.append(src * self._size + tgt)
        if sum(map(len, self._pending)) > PENDING:
            self._count()

    def triples(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Source ids, target ids, and counts, sorted by source id, then count, the largest first."""
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
def link(model: Seq2Seq, batches: Iterable[Batch], tgt_vocabulary_size: int) -> Links:
    """Link each target token of sentence pairs to the source token that has the largest weight when it is to be predicted.

    A token whose largest weight is on <eos> is linked to nothing. The model is in evaluation mode.
    """
    links = Links(tgt_vocabulary_size)
    for batch in batches:
        here = batch.to(model.device)
        peaks = model(here.src, here.src_lengths, here.tgt_in).attention.argmax(-1)  # [B, T]
        src, tgt = here.src.gather(1, peaks), here.tgt_out
        linked = here.tgt_mask & (tgt != EOS) & (src != EOS)
        links.add(src[linked].cpu().numpy(), tgt[linked].cpu().numpy())
    return links


def build_lexicon(links: Links, src_vocabulary: Vocabulary, tgt_vocabulary: Vocabulary) -> Lexicon:
    """Relative frequencies; of each source token the `MOST` most probable translations that are not below `LEAST`."""
    src, tgt, counts = links.triples()
    bounds = [*np.flatnonzero(np.diff(src, prepend=-1)), len(src)]
    entries: dict[str, list[Entry]] = {}
    for start, end in pairwise(bounds):
        total = counts[start:end].sum()
        kept = slice(start, min(end, start + MOST))
        tokens = tgt_vocabulary.tokens(tgt[kept].tolist())
        found = zip(tokens, (counts[kept] / total).tolist(), counts[kept].tolist(), strict=True)
        (source,) = src_vocabulary.tokens([int(src[start])])
        entries[source] = [Entry(*entry) for entry in found if entry[1] >= LEAST]
    return Lexicon(entries)
