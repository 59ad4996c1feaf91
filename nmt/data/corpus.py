"""The sentence pairs of a prepared folder: ids as memory maps; dev and test also as text.

For each split (train, dev, test) and side (src, tgt), `<split>.<side>.npy` holds the ids of all
sentences one after the other (int32), and `<split>.<side>.offsets.npy` the start of each sentence
and the end of the last one (int64). A split of more than `SHARD_SENTENCES` pairs is divided into
shards of that size, each with such files: `<split>-0001-of-0003.<side>.npy`.

Soft targets are, for each token of the target sentences with <eos> as the last, the distribution
that other models give there (Kim and Rush 2016, 3.1): `train.soft-targets.npy` holds the ids of the
most probable words, then their probabilities in units of `UNIT`.
"""

import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from nmt.data.splitting import Mask
from nmt.data.workers import chunked
from nmt.errors import DataError, pass_on_lack_of_memory
from nmt.files import check_content
from nmt.lines import read_lines
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import SPECIALS, UNK, Vocabulary

SPLITS = ("train", "dev", "test")
SOFT_TARGETS = "train.soft-targets"
UNIT = 2.0**-30  # of the probabilities of soft targets
SHARD_SENTENCES = 1 << 22
# Smaller files are read: a process dies if another program cuts off a file that it has mapped.
MIN_MAPPED_BYTES = 1 << 24
# Of larger files, only the size and the header are checked.
MAX_HASHED_BYTES = 1 << 26
BLOCK_SENTENCES = 1 << 16  # in memory at once in a pass over all sentences
HIDDEN_SHARE = 0.1  # of the pairs in an epoch; with 0.5 the translations are slightly worse
HIDDEN_KEY = 0x756E6B  # tells the draws from other random numbers of the same seed and epoch
PREPARE_AGAIN = "run `nmt prepare -c ... --overwrite`"

Ids = npt.NDArray[np.int32]
Block = tuple[Ids, Ids]  # ids of sentences, one after the other; the number of ids of each


class Sequences:
    """The sentences of one side, read from disk on access.

    Args:
        shards: for each shard its ids, and the start of each sentence and the end of the last one.
    """

    def __init__(self, *shards: tuple[Ids, npt.NDArray[np.int64]]) -> None:
        self._shards = shards
        self._ends = [*accumulate(len(offsets) - 1 for _, offsets in shards)]
        self._starts = [0, *self._ends[:-1]]

    @classmethod
    def load(cls, stem: Path) -> Self:
        """Sentences on disk.

        Args:
            stem: the path of the ids without `.npy`.

        Raises:
            DataError: a file is missing or damaged.
        """
        split, _, side = stem.name.rpartition(".")
        shards = stem.parent.glob(f"{split}-[0-9]*-of-[0-9]*.{side}.npy")
        counts = (path.name.removesuffix(f".{side}.npy").rpartition("-")[2] for path in shards)
        return cls(*map(_load_shard, _shard_stems(stem, max(map(int, counts), default=1))))

    @classmethod
    def of_blocks(cls, blocks: Sequence[Block]) -> Self:
        """The sentences of all blocks, in memory."""
        ids, lengths = zip(*blocks, strict=True)
        return cls((np.concatenate(ids), _offsets(lengths)))

    @cached_property
    def lengths(self) -> Ids:
        """The number of ids of each sentence; for many, use those of a `block` or `selection`."""
        return np.concatenate([np.diff(offsets) for _, offsets in self._shards], dtype=np.int32)

    def block(self, start: int, end: int) -> Block:
        pieces = [*self._pieces(start, end)]
        nothing = np.zeros(0, np.int32)
        return (
            np.concatenate([nothing, *(ids[offsets[0] : offsets[-1]] for ids, offsets in pieces)]),
            np.concatenate([nothing, *(np.diff(offsets) for _, offsets in pieces)], dtype=np.int32),
        )

    def selection(self, ranges: Iterable[tuple[int, int]]) -> "Sequences":
        """The sentences of some ranges (first, end); still read from disk on access."""
        return Sequences(*(piece for start, end in ranges for piece in self._pieces(start, end)))

    def _pieces(self, start: int, end: int) -> Iterator[tuple[Ids, npt.NDArray[np.int64]]]:
        """The sentences from `start` to `end`, as parts of shards."""
        for (ids, offsets), first, last in zip(self._shards, self._starts, self._ends, strict=True):
            if start < last and first < end:
                yield ids, offsets[max(start, first) - first : min(end, last) - first + 1]

    def blocks(self) -> Iterator[Block]:
        for start in range(0, len(self), BLOCK_SENTENCES):
            yield self.block(start, min(start + BLOCK_SENTENCES, len(self)))

    def __len__(self) -> int:
        return self._ends[-1]

    @property
    def n_tokens(self) -> int:
        return sum(int(offsets[-1] - offsets[0]) for _, offsets in self._shards)

    def __getitem__(self, index: int) -> Ids:
        """The ids of a sentence, without <sos> and <eos>. Raises: IndexError."""
        if not 0 <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        shard = bisect_right(self._ends, index)
        ids, offsets = self._shards[shard]
        position = index - self._starts[shard]
        return ids[offsets[position] : offsets[position + 1]]

    def rows(self, indices: npt.NDArray[np.int64]) -> Ids:
        """The ids of N sentences of equal length T: [N, T]."""
        rows = np.empty((len(indices), len(self[int(indices[0])])), np.int32)
        for (ids, offsets), first, last in zip(self._shards, self._starts, self._ends, strict=True):
            is_here = (first <= indices) & (indices < last)
            rows[is_here] = ids[
                offsets[indices[is_here] - first][:, np.newaxis] + np.arange(rows.shape[1])
            ]
        return rows


@dataclass(eq=False)
class Corpus:
    """The sentence pairs of one split.

    Attributes:
        soft_targets: of the target sentences, packed; None if they are not used.
        copies: of a pair, at most; they stand one after the other.
        rare_words: those that `hide_rare_words` hides, as masks [V] of the source and the target;
            None if it hides none.
        is_hidden: [N], for each pair whether its rare words are hidden; None: of no pair.
    """

    src: Sequences
    tgt: Sequences
    soft_targets: Sequences | None = None
    copies: int = field(default=1, kw_only=True)
    rare_words: tuple[Mask, Mask] | None = field(default=None, kw_only=True)
    is_hidden: Mask | None = field(default=None, kw_only=True)

    @classmethod
    def load(cls, folder: Path, split: str) -> Self:
        """Raises: DataError if a file is missing or damaged, or one side has more sentences."""
        src, tgt = (Sequences.load(folder / f"{split}.{side}") for side in ("src", "tgt"))
        if len(src) != len(tgt):
            raise DataError(
                f"{folder}: damaged, {split} has {len(src)} source and {len(tgt)} target "
                f"sentences; {PREPARE_AGAIN}"
            )
        return cls(src, tgt)

    def selection(self, ranges: Sequence[tuple[int, int]]) -> Self:
        """The pairs of some ranges, see `Sequences.selection`."""
        return replace(
            self,
            src=self.src.selection(ranges),
            tgt=self.tgt.selection(ranges),
            soft_targets=self.soft_targets and self.soft_targets.selection(ranges),
        )

    def hide_rare_words(self, key: tuple[int, ...]) -> Self:
        """The same pairs, where `read` shows the rare words of some pairs as `<unk>`, on both
        sides: a name that both have becomes `<unk>` in the source and the target.

        Args:
            key: seeds the random numbers; see `Part.key`.
        """
        if self.rare_words is None:
            return self
        random = np.random.default_rng((*key, HIDDEN_KEY))
        return replace(self, is_hidden=random.random(len(self)) < HIDDEN_SHARE)

    def read(self, pairs: npt.NDArray[np.int64]) -> tuple[list[Ids], list[Ids]]:
        """The sources and targets of some pairs, given by their indices."""
        src = [self.src[pair] for pair in pairs]
        tgt = [self.tgt[pair] for pair in pairs]
        if self.rare_words is None or self.is_hidden is None:
            return src, tgt
        rare_src, rare_tgt = self.rare_words
        for row in np.flatnonzero(self.is_hidden[pairs]):
            src[row] = np.where(rare_src[src[row]], UNK, src[row])
            tgt[row] = np.where(rare_tgt[tgt[row]], UNK, tgt[row])
        return src, tgt

    def __len__(self) -> int:
        return len(self.src)


def pack_soft_targets(ids: npt.NDArray[np.int64], probabilities: npt.NDArray[np.float32]) -> Ids:
    """[T, K] each, for the T tokens of a sentence -> [2 T K], as it is stored."""
    return np.concatenate([ids, np.floor(probabilities / UNIT)], 1).astype(np.int32).ravel()


def unpack_soft_targets(
    sentence: Ids, n_tokens: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """The inverse of `pack_soft_targets`: ids and probabilities, [T, K] each."""
    ids, units = np.split(sentence.reshape(n_tokens, -1), 2, axis=1)
    return ids.astype(np.int64), units.astype(np.float32) * np.float32(UNIT)


class SequencesWriter:
    """Writes `total` sentences block by block, in a `with` block. stem: see `Sequences.load`."""

    def __init__(self, stem: Path, total: int) -> None:
        self._stems = iter(_shard_stems(stem, max(1, -(-total // SHARD_SENTENCES))))
        self._begin_shard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_shard()

    def write(self, ids: Ids, lengths: Ids) -> None:
        """Append sentences: their ids one after the other, and the number of ids of each."""
        while len(lengths):
            if not self._n_free:
                self._end_shard()
                self._begin_shard()
            fitting, lengths = lengths[: self._n_free], lengths[self._n_free :]
            fitting_ids, ids = np.split(ids, [int(fitting.sum())])
            self._file.write(fitting_ids.astype("<i4").tobytes())
            self._lengths.append(fitting)
            self._n_free -= len(fitting)

    def _begin_shard(self) -> None:
        self._stem = next(self._stems)
        self._lengths: list[Ids] = []
        self._n_free = SHARD_SENTENCES
        self._file = self._stem.with_name(f"{self._stem.name}.npy").open("wb")
        self._write_header(0)

    def _end_shard(self) -> None:
        """Write the final header, and the offsets."""
        offsets = _offsets(self._lengths)
        with self._file:
            self._file.seek(0)
            self._write_header(int(offsets[-1]))
        np.save(self._stem.with_name(f"{self._stem.name}.offsets.npy"), offsets, allow_pickle=False)

    def _write_header(self, n_ids: int) -> None:
        """NumPy leaves room for a larger number, so the header keeps its size."""
        np.lib.format.write_array_header_1_0(
            self._file, {"descr": "<i4", "fortran_order": False, "shape": (n_ids,)}
        )


def _shard_stems(stem: Path, count: int) -> list[Path]:
    if count == 1:
        return [stem]
    split, _, side = stem.name.rpartition(".")
    return [
        stem.with_name(f"{split}-{number:04}-of-{count:04}.{side}")
        for number in range(1, count + 1)
    ]


def restore_texts(
    sentences: Sequences, tokenizer: Tokenizer, vocabulary: Vocabulary
) -> Iterator[str]:
    """Encoded sentences as text, with <unk> for unknown words."""
    # Earlier versions marked sentences with tokens that no training text contains.
    tags = {i for i in range(len(SPECIALS), len(vocabulary)) if not vocabulary.counts[i]}
    for i in range(len(sentences)):
        ids = (index for index in sentences[i].tolist() if index not in tags)
        yield tokenizer.join(vocabulary.tokens(ids))


def restore_pairs(
    corpus: Corpus,
    tokenizers: tuple[Tokenizer, Tokenizer],
    vocabularies: tuple[Vocabulary, Vocabulary],
) -> Iterator[tuple[str, str]]:
    """The pairs of a corpus as text, see `restore_texts`; the arguments are (source, target)."""
    src, tgt = zip(tokenizers, vocabularies, strict=True)
    return zip(restore_texts(corpus.src, *src), restore_texts(corpus.tgt, *tgt), strict=True)


def encode_pairs(
    pairs: Iterable[tuple[str, str]],
    tokenizers: tuple[Tokenizer, Tokenizer],
    vocabularies: tuple[Vocabulary, Vocabulary],
) -> Corpus:
    """The pairs as ids, in memory."""
    nothing: Block = np.zeros(0, np.int32), np.zeros(0, np.int32)
    blocks: tuple[list[Block], list[Block]] = ([nothing], [nothing])
    for chunk in chunked(pairs, 4096):
        for side, texts in enumerate(zip(*chunk, strict=True)):
            sentences = [*map(vocabularies[side].ids, tokenizers[side].split_all(texts))]
            ids = np.fromiter(chain.from_iterable(sentences), np.int32)
            blocks[side].append((ids, np.array([*map(len, sentences)], np.int32)))
    return Corpus(*map(Sequences.of_blocks, blocks))


def read_sentences(folder: Path, split: str, side: str) -> list[str]:
    """The sentences of dev or test as text, neither tokenized nor lower-cased.

    Raises:
        DataError: they are missing or damaged.
    """
    path = folder / f"{split}.{side}.txt"
    lines = read_lines(path, needs_final_line_feed=True)
    check_content(path, PREPARE_AGAIN)
    return lines


def _offsets(lengths: Sequence[Ids]) -> npt.NDArray[np.int64]:
    """The start of each sentence, and the end of the last one."""
    return np.concatenate([np.zeros(1, np.int64), *lengths]).cumsum(dtype=np.int64)


def _load_shard(stem: Path) -> tuple[Ids, npt.NDArray[np.int64]]:
    path = stem.with_name(f"{stem.name}.npy")
    ids = _load_array(path, np.dtype(np.int32))
    offsets = _load_array(stem.with_name(f"{stem.name}.offsets.npy"), np.dtype(np.int64))
    if (
        len(offsets) == 0
        or offsets[0] != 0
        or offsets[-1] != len(ids)
        or np.any(np.diff(offsets) < 0)
    ):
        raise DataError(
            f"{path}: damaged, its offsets do not fit its {len(ids)} ids; {PREPARE_AGAIN}"
        )
    return ids, offsets


def _load_array(path: Path, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    try:
        size = path.stat().st_size
        array: npt.NDArray[Any] = np.load(
            path, mmap_mode="r" if size >= MIN_MAPPED_BYTES else None, allow_pickle=False
        )
        if array.ndim != 1 or array.dtype != dtype:
            raise ValueError(
                f"holds {array.dtype} of {array.ndim} dimensions, expected {dtype} of 1"
            )
        if isinstance(array, np.memmap) and array.offset + array.nbytes != size:
            raise ValueError(f"has {size:,} bytes instead of {array.offset + array.nbytes:,}")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; run `nmt prepare -c ...` first") from None
    # NumPy evaluates the header as Python's literals, whose damage has many kinds of errors: a
    # MemoryError comes from one that claims too much.
    except (
        OSError,
        ValueError,
        EOFError,
        OverflowError,
        MemoryError,
        SyntaxError,
        tokenize.TokenError,
        BadZipFile,  # it begins like a zip archive
    ) as error:
        if isinstance(error, OSError):
            pass_on_lack_of_memory(error)
        raise DataError(f"{path}: damaged ({error}); {PREPARE_AGAIN}") from None
    if size <= MAX_HASHED_BYTES:
        check_content(path, PREPARE_AGAIN)
    return array
