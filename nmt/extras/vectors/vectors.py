"""Pretrained word vectors for the embeddings, from text files in the format of GloVe, word2vec or
fastText.

A line holds a token and its numbers, separated by spaces. word2vec and fastText files begin with a
line `count dimension`. Files are plain text or .gz.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from nmt.config.schema import Config
from nmt.errors import DataError
from nmt.lines import read_raw_lines
from nmt.run.folder import load_vocabularies
from nmt.text.tokenizers import JOINER, SPACE, Side
from nmt.text.vocabulary import SPECIALS, Vocabulary

Line = tuple[int, bytes]  # line number, text
Row = tuple[int, bytes, bytes]  # line number, token, numbers

NO_RANK = 127  # above any rank
N_CHECKED_LINES = 16  # the first lines; a binary file has control characters there
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
# Published files hold a few broken tokens; in a German file in another encoding, every tenth token
# is broken.
MAX_BROKEN_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class WordVectors:
    """The vectors that a file has for the tokens of a vocabulary.

    Attributes:
        path: the file.
        ids: [n], the tokens with a vector, ascending, without special tokens.
        matrix: [n, dimension], a row for each id.
        n_tokens: size of the vocabulary without special tokens.
        running_share: share of the running words of the training data, unknown ones included, that
            are one of `ids`, 0 to 1.
    """

    path: Path
    ids: npt.NDArray[np.int64]
    matrix: npt.NDArray[np.float32]
    n_tokens: int
    running_share: float

    @property
    def coverage(self) -> str:
        """The share of tokens and running words with a vector, as text."""
        tokens = (
            f"{len(self.ids):,} of {self.n_tokens:,} tokens "
            f"({100 * len(self.ids) / self.n_tokens:.1f} %)"
        )
        return (
            f"{tokens}, {100 * self.running_share:.1f} % of the running words, from "
            f"{self.path.name}"
        )


def load_configured_vectors(config: Config) -> dict[Side, WordVectors]:
    """The word vectors that the configuration names. Raises: DataError: a file cannot be used."""
    paths: dict[Side, Path | None] = {
        "src": config.model.src_vectors,
        "tgt": config.model.tgt_vectors,
    }
    vocabularies = dict(zip(paths, load_vocabularies(config.prepared_folder), strict=True))
    loaded: dict[Side, WordVectors] = {}
    for side, path in paths.items():
        if path is not None:
            try:
                loaded[side] = load_vectors(path, vocabularies[side], config.model.embedding_size)
            except DataError as error:
                raise DataError(f"model.{side}_vectors: {error}") from None
    return loaded


@torch.no_grad()
def set_rows(weight: torch.Tensor, vectors: WordVectors) -> None:
    """Copy word vectors into the rows of `weight` [V, E] of their tokens.

    One factor scales them all, so that their standard deviation becomes that of the initial
    weights. Directions and relative lengths stay. Without scaling, published vectors are often so
    small that attention takes long to form.
    """
    scale = weight.std(correction=0).item() / float(vectors.matrix.std(dtype=np.float64))
    rows = torch.from_numpy(vectors.matrix.astype(np.float64) * scale)
    weight[torch.from_numpy(vectors.ids).to(weight.device)] = rows.to(weight)


def load_vectors(path: Path, vocabulary: Vocabulary, dimension: int) -> WordVectors:
    """Read the vectors of the vocabulary's tokens; other lines take no memory.

    If the file lacks a token, its lower-cased form is used; then the token without the mark that a
    tokenizer put before it (for a space or for no space); then that form lower-cased. If a token
    has several vectors, the first counts. Only the numbers of vectors that are used are checked.

    Raises:
        DataError: the file is missing, empty, damaged, binary or not UTF-8; its vectors do not have
            `dimension` finite numbers; or it has none of the vocabulary's tokens.
    """
    wanted = _wanted(vocabulary)
    ranks = np.full(len(vocabulary), NO_RANK, np.int8)
    matrix = np.zeros((len(vocabulary), dimension), np.float32)
    for number, token, numbers in _rows(path, dimension):
        improved = [(index, rank) for index, rank in wanted.get(token, ()) if rank < ranks[index]]
        if improved:
            vector = _vector(path, number, numbers, dimension)
        for index, rank in improved:
            matrix[index], ranks[index] = vector, rank
    (ids,) = np.nonzero(ranks < NO_RANK)
    n_tokens = len(vocabulary) - len(SPECIALS)
    if len(ids) == 0:
        raise DataError(
            f"{path}: has none of the vocabulary's {n_tokens:,} tokens; give a file of the "
            "text's "
            "language"
        )
    if matrix[ids].std(dtype=np.float64) == 0:
        raise DataError(
            f"{path}: all numbers of the vocabulary's {len(ids):,} tokens are the same; give "
            "another file"
        )
    counts = np.array(vocabulary.counts)
    return WordVectors(
        path, ids, matrix[ids], n_tokens, float(counts[ids].sum() / max(1, counts.sum()))
    )


def _wanted(vocabulary: Vocabulary) -> dict[bytes, list[tuple[int, int]]]:
    """Spelling in the file -> (id that can take its vector, rank of the spelling); rank 0 is the
    token itself.
    """
    wanted: dict[bytes, list[tuple[int, int]]] = {}
    for index, token in islice(enumerate(vocabulary), len(SPECIALS), None):
        bare = token[1:] if token.startswith((JOINER, SPACE)) else ""
        for rank, form in enumerate(dict.fromkeys([token, token.lower(), bare, bare.lower()])):
            if form:
                wanted.setdefault(form.encode(), []).append((index, rank))
    return wanted


def _rows(path: Path, dimension: int) -> Iterator[Row]:
    """Raises: DataError: the file is not text, or a line is not a token and `dimension` numbers."""
    lines = _lines(path)
    start = list(islice(lines, N_CHECKED_LINES))
    if CONTROL.search(b"\n".join(line for _, line in start)):
        raise DataError(
            f"{path}: is binary; save the vectors as text (gensim: `save_word2vec_format(..., "
            "binary=False)`)"
        )
    if start and _is_header(path, start[0][1], dimension):
        del start[0]
    count = n_broken = first_broken = 0
    for number, line in chain(start, lines):
        if line:
            row = _split(path, number, line, dimension)
            count += 1
            if not _is_utf8(row[1]):
                n_broken += 1
                first_broken = first_broken or number
            yield row
    if n_broken > MAX_BROKEN_SHARE * count:
        raise DataError(
            f"{path}, line {first_broken}: not UTF-8 ({n_broken:,} in {count:,} lines); save "
            "the "
            "file as UTF-8"
        )
    if not count:
        raise DataError(f"{path}: holds no vectors; give another file")


def _lines(path: Path) -> Iterator[Line]:
    number = 0
    try:
        for number, line in enumerate(read_raw_lines(path), start=1):
            yield number, line.rstrip(b" \t\r")
    except DataError as error:
        after = f" after line {number}" if number else ""
        raise DataError(
            f"{error}{after}; name a complete text file of word vectors, plain or .gz"
        ) from None


def _is_header(path: Path, line: bytes, dimension: int) -> bool:
    """Whether the first line is `count dimension`. Raises: DataError: the vectors have another
    dimension.
    """
    fields = line.split()
    is_header = len(fields) == 2 and all(field.isdigit() and len(field) <= 18 for field in fields)
    if is_header:
        size = int(fields[1])
    elif len(fields) in (0, dimension + 1):
        size = dimension
    else:  # a token may have spaces, and be a number itself
        n_numbers = next(
            (n for n, field in enumerate(reversed(fields)) if not _is_number(field)), len(fields)
        )
        size = min(n_numbers, len(fields) - 1)
    if size == 0:
        raise _malformed(path, 1, line, dimension)
    if size != dimension:
        raise DataError(
            f"{path}, line 1: vectors of {size} numbers, but model.embedding_size is {dimension}; "
            f"set it to {size}, "
            "or give another file"
        )
    return is_header


def _split(path: Path, number: int, line: bytes, dimension: int) -> Row:
    if (
        line.count(b" ") == dimension
    ):  # several times faster than splitting, and nearly always possible
        token, _, numbers = line.partition(b" ")
    else:  # a token with spaces, or tabs, or several spaces in a row
        token, *fields = line.rsplit(None, dimension)
        if len(fields) < dimension:
            raise _malformed(path, number, line, dimension)
        numbers = b" ".join(fields)
    return number, token, numbers


def _vector(path: Path, number: int, numbers: bytes, dimension: int) -> npt.NDArray[np.float32]:
    fields = numbers.split()
    if len(fields) != dimension:
        raise _malformed(path, number, numbers, dimension)
    try:
        values = list(map(float, fields))
    except ValueError:
        values = [float(field) if _is_number(field) else np.nan for field in fields]
    with np.errstate(over="ignore"):
        vector = np.array(values).astype(np.float32)
    finite = np.isfinite(vector)
    if not finite.all():
        field = _excerpt(fields[int(np.argmin(finite))])
        raise DataError(
            f"{path}, line {number}: {field} is not a finite number; fix the line or delete it"
        )
    return vector


def _malformed(path: Path, number: int, line: bytes, dimension: int) -> DataError:
    return DataError(
        f"{path}, line {number}: expected a token and {dimension} numbers, found "
        f"{_excerpt(line)}; fix the line or delete it"
    )


def _excerpt(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace") + ("..." if len(text) > 40 else ""))


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _is_utf8(token: bytes) -> bool:
    try:
        token.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
