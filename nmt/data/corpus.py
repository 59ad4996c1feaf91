"""The sentence pairs of a prepared folder: ids as memory maps; dev and test also as text.

For each split (train, dev, test) and side (src, tgt), `<split>.<side>.npy` holds the ids of all sentences one after the other
(int32), and `<split>.<side>.offsets.npy` the start of each sentence and the end of the last one (int64).
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nmt.errors import DataError
from nmt.files import check_content, read_lines
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import Vocabulary

SPLITS = ("train", "dev", "test")
MIN_MAPPED_BYTES = 4096  # smaller files are read
PREPARE_AGAIN = "run `nmt prepare -c ... --overwrite`"

Ids = npt.NDArray[np.int32]
Block = tuple[Ids, Ids]  # the ids of some sentences, one after the other, and the number of ids of each


class Sequences:
    """The sentences of one side, read from disk on access."""

    def __init__(self, ids: Ids, offsets: npt.NDArray[np.int64]) -> None:
        self._ids = ids
        self._offsets = offsets
        self.lengths: Ids = np.diff(offsets).astype(np.int32)

    @classmethod
    def load(cls, stem: Path) -> Self:
        """`stem` is the path of the ids without `.npy`. Raises: DataError if a file is missing or damaged."""
        path = stem.with_name(f"{stem.name}.npy")
        ids = _load_array(path, np.dtype(np.int32))
        offsets = _load_array(stem.with_name(f"{stem.name}.offsets.npy"), np.dtype(np.int64))
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(ids) or np.any(np.diff(offsets) < 0):
            raise DataError(f"{path}: damaged, its offsets do not fit its {len(ids)} ids; {PREPARE_AGAIN}")
        return cls(ids, offsets)

    @classmethod
    def of_blocks(cls, blocks: Sequence[Block]) -> Self:
        """The sentences of all blocks, in memory."""
        return cls(np.concatenate([ids for ids, _ in blocks]), _offsets([lengths for _, lengths in blocks]))

    def block(self, start: int, end: int) -> Block:
        """The sentences from `start` to `end`."""
        offsets = self._offsets[start : end + 1]
        return self._ids[offsets[0] : offsets[-1]], self.lengths[start:end]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def ids(self) -> Ids:
        """The ids of all sentences, one after the other."""
        return self._ids

    def __getitem__(self, index: int) -> Ids:
        """The ids of a sentence, without <sos> and <eos>. Raises: IndexError."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        start, end = self._offsets[index % len(self)], self._offsets[index % len(self) + 1]
        return self._ids[start:end]

    def rows(self, indices: npt.NDArray[np.int64]) -> Ids:
        """The ids of N sentences of equal length T: [N, T]."""
        return np.asarray(self._ids[self._offsets[indices][:, np.newaxis] + np.arange(self.lengths[indices[0]])])


class Corpus:
    """The sentence pairs of one split."""

    def __init__(self, src: Sequences, tgt: Sequences) -> None:
        self.src = src
        self.tgt = tgt

    @classmethod
    def load(cls, folder: Path, split: str) -> Self:
        """Raises: DataError if a file is missing or damaged, or one side has more sentences."""
        src, tgt = (Sequences.load(folder / f"{split}.{side}") for side in ("src", "tgt"))
        if len(src) != len(tgt):
            raise DataError(f"{folder}: damaged, {split} has {len(src)} source and {len(tgt)} target sentences; {PREPARE_AGAIN}")
        return cls(src, tgt)

    def in_epoch(self, epoch: int) -> "Corpus":
        """The sentences that epoch `epoch` of a training sees: these, unless a subclass draws others."""
        return self

    def in_epochs(self, epochs: Iterable[int]) -> Iterator[tuple[int, "Corpus"]]:
        """Each epoch with its sentences."""
        for epoch in epochs:
            yield epoch, self.in_epoch(epoch)

    def __len__(self) -> int:
        return len(self.src)


class SequencesWriter:
    """Writes `total` ids block by block into `<stem>.npy`, then the offsets."""

    def __init__(self, stem: Path, total: int) -> None:
        self._stem = stem
        self._total = total
        self._lengths: list[Ids] = []
        self._file = stem.with_name(f"{stem.name}.npy").open("wb")
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype("<i4")), "fortran_order": False, "shape": (total,)}
        np.lib.format.write_array_header_1_0(self._file, header)

    def write(self, ids: Ids, lengths: Ids) -> None:
        """Append sentences: `ids` holds them one after the other, `lengths` the number of ids of each."""
        self._file.write(ids.astype("<i4").tobytes())
        self._lengths.append(lengths)

    def close(self) -> None:
        self._file.close()
        offsets = _offsets(self._lengths)
        assert offsets[-1] == self._total
        np.save(self._stem.with_name(f"{self._stem.name}.offsets.npy"), offsets, allow_pickle=False)


def restore_texts(sentences: Sequences, tokenizer: Tokenizer, vocabulary: Vocabulary) -> Iterator[str]:
    """Encoded sentences as text, with <unk> for unknown words: the training data is stored only as ids."""
    for i in range(len(sentences)):
        yield tokenizer.join(vocabulary.tokens(sentences[i].tolist()))


def restore_pairs(
    corpus: Corpus, tokenizers: tuple[Tokenizer, Tokenizer], vocabularies: tuple[Vocabulary, Vocabulary]
) -> Iterator[tuple[str, str]]:
    """The pairs of a corpus as text; see `restore_texts`. tokenizers, vocabularies: (source, target)."""
    src, tgt = zip(tokenizers, vocabularies, strict=True)
    return zip(restore_texts(corpus.src, *src), restore_texts(corpus.tgt, *tgt), strict=True)


def read_sentences(folder: Path, split: str, side: str) -> list[str]:
    """The sentences of dev or test as text, neither tokenized nor lower-cased. Raises: DataError if they are missing or damaged."""
    path = folder / f"{split}.{side}.txt"
    lines = read_lines(path, needs_final_line_feed=True)
    check_content(path, PREPARE_AGAIN)
    return lines


def _offsets(lengths: Sequence[Ids]) -> npt.NDArray[np.int64]:
    """The start of each sentence, and the end of the last one."""
    return np.concatenate([np.zeros(1, np.int64), *lengths]).cumsum(dtype=np.int64)


def _load_array(path: Path, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    try:
        # An array without elements cannot be mapped.
        is_mapped = path.stat().st_size >= MIN_MAPPED_BYTES
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r" if is_mapped else None, allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; run `nmt prepare -c ...` first") from None
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: damaged ({error}); {PREPARE_AGAIN}") from None
    if array.ndim != 1 or array.dtype != dtype:
        raise DataError(f"{path}: damaged, holds {array.dtype} of {array.ndim} dimensions, expected {dtype} of 1; {PREPARE_AGAIN}")
    check_content(path, PREPARE_AGAIN)
    return array
