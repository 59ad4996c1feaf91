"""Tables of text: which delimiter a file has, whether cells are in quotation marks, and the rows.

Both are decided by the whole file. Programs that put marks around a cell double those inside (RFC
4180); they do so for all cells, or only for those that need it. Texts in which marks stand as they
are, such as those of tatoeba.org, are read as they stand.
"""

import csv
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from nmt.lines import read_raw_lines

DELIMITERS = {",": "commas", ";": "semicolons", "|": "bars", "\t": "tabs"}
MAX_CELL_LINES = 20  # a cell with more is not closed
MARK = b'"'


@dataclass(frozen=True)
class Dialect:
    """How a table is written.

    Attributes:
        n_columns: of its header, or else of most rows; 0 if it has no rows.
        share: the part of its rows that have as many.
    """

    delimiter: str
    is_quoted: bool
    n_columns: int = 0
    share: float = 0.0

    def __str__(self) -> str:
        columns = "1 column" if self.n_columns == 1 else f"{self.n_columns} columns"
        marks = ", cells in quotation marks" if self.is_quoted else ""
        return f"{columns} separated by {DELIMITERS[self.delimiter]}{marks}"

    def cells(self, row: str) -> list[str]:
        """Raises: csv.Error if a quotation mark is not closed, or not doubled inside a cell."""
        if not self.is_quoted or '"' not in row:
            return row.split(self.delimiter)
        row = row.replace("\r", " ")  # not an end of a line
        return next(csv.reader([row], delimiter=self.delimiter, strict=True))


def find_dialect(path: Path, member: str | None, delimiters: Iterable[str]) -> Dialect:
    """The dialect whose delimiter gives most rows the same number of columns.

    Raises:
        DataError: the file cannot be read.
    """
    return max(
        (_dialect(read_raw_lines(path, member), delimiter) for delimiter in delimiters),
        key=lambda dialect: dialect.share * (dialect.n_columns > 1),
    )


def read_rows(lines: Iterable[bytes], dialect: Dialect) -> Iterator[bytes]:
    """The rows of a table, undecoded. After one of several lines come empty ones in their place, so
    that rows have the numbers of their lines.
    """
    if not dialect.is_quoted:
        yield from lines
        return
    lines, ahead = iter(lines), deque[bytes]()
    while (row := ahead.popleft() if ahead else next(lines, None)) is not None:
        # Marks are in pairs, except in the first line of a cell with line breaks, and the last.
        if row.count(MARK) % 2:
            ahead.extend(islice(lines, MAX_CELL_LINES - len(ahead)))
            n_more = _find_end(row, ahead, dialect)
            yield b"\n".join([row, *(ahead.popleft() for _ in range(n_more))])
            yield from [b""] * n_more
        else:
            yield row


def _find_end(row: bytes, following: Sequence[bytes], dialect: Dialect) -> int:
    """How many of the following lines belong to the row; 0 if its last cell is not closed."""
    for count, line in enumerate(following, 1):
        row += b"\n" + line
        if line.count(MARK) % 2:
            cells = _parse(row, dialect)
            if cells and len(cells) == (dialect.n_columns or len(cells)):
                return count
    return 0


def _parse(row: bytes, dialect: Dialect) -> list[str] | None:
    try:
        return dialect.cells(row.decode("utf-8", "replace"))
    except csv.Error:
        return None


def _dialect(lines: Iterable[bytes], delimiter: str) -> Dialect:
    quoted = Dialect(delimiter, is_quoted=True)
    separator = delimiter.encode()
    has_comma = False
    unmarked, as_plain, as_quoted = Counter[int](), Counter[int](), Counter[int]()  # columns
    kinds = Counter[str]()  # of rows with marks
    for row in read_rows(lines, quoted):
        if not row:
            continue
        n_columns = row.count(separator) + 1
        if MARK not in row:
            unmarked[n_columns] += 1
            has_comma = has_comma or b"," in row
            continue
        as_plain[n_columns] += 1
        cells = _parse(row, quoted)
        if cells is None:
            kinds["not quoted"] += 1
        else:
            as_quoted[len(cells)] += 1
            kinds[_kind(cells, row.count(MARK), delimiter)] += 1
    n_rows = unmarked.total() + as_plain.total()
    n_valid = kinds.total() - kinds["not quoted"]
    n_quoted = kinds["minimal"] + kinds["commas"] * (not has_comma)
    if n_valid >= 0.9 * n_rows:  # all texts are in marks
        n_quoted = n_valid
    # A file of commas cannot do without marks.
    is_quoted = delimiter != "\t" or n_quoted > kinds.total() - n_quoted
    unmarked += as_quoted if is_quoted else as_plain
    ((usual, count),) = unmarked.most_common(1) or [(0, 0)]
    return replace(quoted, is_quoted=is_quoted, n_columns=usual, share=count / max(1, n_rows))


def _kind(cells: Sequence[str], n_marks: int, delimiter: str) -> str:
    """Which cells have marks: only those that need them ("minimal"), also those with commas, as
    spreadsheets write them, or others.
    """
    for kind, characters in (("minimal", f'"\n{delimiter}'), ("commas", f'"\n{delimiter},')):
        needy = (cell for cell in cells if any(each in cell for each in characters))
        if n_marks == sum(2 + 2 * cell.count('"') for cell in needy):
            return kind
    return "all"
