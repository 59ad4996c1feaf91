"""Word vectors that were trained elsewhere, for the tokens of a vocabulary: GloVe's text, and that of word2vec and fastText.

A line holds a token and its numbers, parted by spaces; word2vec and fastText begin with a line `count dimension`. Plain or .gz.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.data.sources import read_raw_lines
from nmt.errors import DataError
from nmt.text.tokenizers import JOINER, SPACE
from nmt.text.vocabulary import SPECIALS, Vocabulary

Line = tuple[int, bytes]  # with its number
Row = tuple[int, bytes, bytes]  # the number of the line, the token, its numbers

UNFOUND = 127  # above any rank
START = 16  # lines in which a binary file shows
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
# Published files hold some tokens that were broken in the making; of a German file in another encoding it is every tenth.
MOST_BROKEN = 1e-3


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of those tokens of a vocabulary that a file has.

    Attributes:
        path: the file.
        ids: [n], ascending; none is that of a special token.
        matrix: [n, dimension], a row for each id.
        n_tokens: of the vocabulary, without the special ones.
        running_share: of the running words of the training data, unknown ones included, how many are one of `ids`: 0 to 1.
    """

    path: Path
    ids: npt.NDArray[np.int64]
    matrix: npt.NDArray[np.float32]
    n_tokens: int
    running_share: float

    @property
    def coverage(self) -> str:
        """The same in words."""
        found = f"{len(self.ids):,} of {self.n_tokens:,} tokens ({100 * len(self.ids) / self.n_tokens:.1f} %)"
        return f"{found}, {100 * self.running_share:.1f} % of the running words, from {self.path.name}"


def load_vectors(path: Path, vocabulary: Vocabulary, dimension: int) -> Vectors:
    """Read the vectors of the vocabulary's tokens, in memory for these alone.

    A token that the file lacks takes the vector of its lower-cased form; failing that, of itself without the mark that a tokenizer
    put before it for a space or for none, as it stands and then lower-cased. The order in the file does not matter, except that of
    a token's several vectors the first counts. Numbers are checked where they are used.

    Raises:
        DataError: the file is missing, empty, damaged, binary or not UTF-8; its vectors have not `dimension` finite numbers; or it
            has none of the vocabulary's tokens.
    """
    wanted = _wanted(vocabulary)
    ranks = np.full(len(vocabulary), UNFOUND, np.int8)
    matrix = np.zeros((len(vocabulary), dimension), np.float32)
    for number, token, numbers in _rows(path, dimension):
        better = [(index, rank) for index, rank in wanted.get(token, ()) if rank < ranks[index]]
        if better:
            vector = _vector(path, number, numbers, dimension)
        for index, rank in better:
            matrix[index], ranks[index] = vector, rank
    (ids,) = np.nonzero(ranks < UNFOUND)
    n_tokens = len(vocabulary) - len(SPECIALS)
    if len(ids) == 0:
        raise DataError(f"{path}: has none of the vocabulary's {n_tokens:,} tokens; give a file of the text's language")
    if matrix[ids].std(dtype=np.float64) == 0:
        raise DataError(f"{path}: all numbers of the vocabulary's {len(ids):,} tokens are the same; give another file")
    counts = np.array(vocabulary.counts)
    return Vectors(path, ids, matrix[ids], n_tokens, float(counts[ids].sum() / max(1, counts.sum())))


def _wanted(vocabulary: Vocabulary) -> dict[bytes, list[tuple[int, int]]]:
    """Spelling in the file -> ids that can take its vector, each with the rank of that spelling: 0 is the token itself."""
    wanted: dict[bytes, list[tuple[int, int]]] = {}
    for index, token in islice(enumerate(vocabulary), len(SPECIALS), None):
        bare = token[1:] if token.startswith((JOINER, SPACE)) else ""
        for rank, form in enumerate(dict.fromkeys([token, token.lower(), bare, bare.lower()])):
            if form:
                wanted.setdefault(form.encode(), []).append((index, rank))
    return wanted


def _rows(path: Path, dimension: int) -> Iterator[Row]:
    """Raises: DataError if the file is no text, or not of lines with a token and `dimension` numbers."""
    lines = _lines(path)
    start = list(islice(lines, START))
    if CONTROL.search(b"\n".join(line for _, line in start)):
        raise DataError(f"{path}: is binary; save the vectors as text (gensim: `save_word2vec_format(..., binary=False)`)")
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
    if n_broken > MOST_BROKEN * count:
        raise DataError(f"{path}, line {first_broken}: not UTF-8 ({n_broken:,} in {count:,} lines); save the file as UTF-8")
    if not count:
        raise DataError(f"{path}: holds no vectors; give another file")


def _lines(path: Path) -> Iterator[Line]:
    number = 0
    try:
        for number, line in enumerate(read_raw_lines(path), start=1):
            yield number, line.rstrip(b" \t\r")
    except DataError as error:
        after = f" after line {number}" if number else ""
        raise DataError(f"{error}{after}; a whole text file of word vectors is needed, plain or .gz") from None


def _is_header(path: Path, line: bytes, dimension: int) -> bool:
    """Whether the first line is `count dimension`. Raises: DataError if it shows vectors of another dimension, or none."""
    fields = line.split()
    is_header = len(fields) == 2 and all(field.isdigit() for field in fields)
    if is_header:
        found = int(fields[1])
    elif len(fields) in (0, dimension + 1):
        found = dimension
    else:  # a token may have spaces, and be a number itself
        n_numbers = next((n for n, field in enumerate(reversed(fields)) if not _is_number(field)), len(fields))
        found = min(n_numbers, len(fields) - 1)
    if found == 0:
        raise _malformed(path, 1, line, dimension)
    if found != dimension:
        raise DataError(
            f"{path}, line 1: vectors of {found} numbers, but model.embedding_size is {dimension}; set it to {found}, "
            "or give another file"
        )
    return is_header


def _split(path: Path, number: int, line: bytes, dimension: int) -> Row:
    if line.count(b" ") == dimension:  # several times faster than splitting, and nearly always so
        token, _, numbers = line.partition(b" ")
    else:  # a token with spaces, or other space than one each
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
        culprit = _excerpt(fields[int(np.argmin(finite))])
        raise DataError(f"{path}, line {number}: {culprit} is not a finite number; mend the line or leave it out")
    return vector


def _malformed(path: Path, number: int, line: bytes, dimension: int) -> DataError:
    return DataError(
        f"{path}, line {number}: expected a token and {dimension} numbers, found {_excerpt(line)}; mend the line or leave it out"
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
