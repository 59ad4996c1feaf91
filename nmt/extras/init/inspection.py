"""Looks at files of sentence pairs: how many pairs, which columns, which languages."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nmt.data.checks import guess_language, spacy_languages
from nmt.errors import DataError
from nmt.lines import read_text_lines

MAX_SAMPLE = 4000  # rows, evenly spaced in the file
SEPARATORS = {"\t": "tabs", ",": "commas"}
HEADER_WORDS = {
    "source",
    "src",
    "target",
    "tgt",
    "text",
    "sentence",
    "original",
    "translation",
    "sentence1",
    "sentence2",
}
NO_TEXT = ("CC-BY", "http://", "https://")  # attributions and addresses


@dataclass(frozen=True)
class Column:
    """One side of the pairs.

    Attributes:
        number: from 1. name: in the header row; None without a header.
        language: None if it is not clear.
        example: a short text.
        n_characters: how many different characters its sample has.
    """

    number: int
    name: str | None
    language: str | None
    example: str
    n_characters: int


@dataclass(frozen=True)
class PairFiles:
    """Files of sentence pairs.

    Attributes:
        paths: one table, or two files with a sentence per line.
        n_pairs: rows, without the header.
        columns: of the two sides.
        separator: between columns; empty for two files.
    """

    paths: tuple[Path, ...]
    n_pairs: int
    columns: tuple[Column, Column]
    separator: str


def inspect_table(path: Path) -> PairFiles:
    """A file with a pair per row, separated by tabs or commas; plain, .gz or .zip.

    Raises:
        DataError: the file cannot be read, or has no two columns of text.
    """
    separator = _find_separator(path)
    header: Sequence[str] = next(read_rows(path, separator), [])
    rows, n_rows = _sample(read_rows(path, separator))
    columns = {index: _cells(rows, index) for index in range(max(map(len, rows)))}
    texts = {index: cells for index, cells in columns.items() if _is_text(cells, len(rows))}
    if len(texts) < 2:
        raise DataError(
            f"{path}: has no two columns of text; give a table of two columns, or two files with "
            "--data twice"
        )
    # Of more than two, those whose language is clear, or else the first ones.
    clear = [index for index in texts if guess_language(texts[index])] if len(texts) > 2 else []
    indices = (clear if len(clear) >= 2 else [*texts])[:2]
    has_header = _is_header(header, indices)
    src, tgt = (
        _describe(index, texts[index], header[index] if has_header and index < len(header) else "")
        for index in indices
    )
    return PairFiles((path,), n_rows - has_header, (src, tgt), separator)


def inspect_files(src: Path, tgt: Path) -> PairFiles:
    """Two files; each line of one is the translation of the same line of the other.

    Raises:
        DataError: a file cannot be read, or they have different numbers of lines.
    """
    (src_rows, n_src), (tgt_rows, n_tgt) = (
        _sample([line] for line in read_text_lines(path)) for path in (src, tgt)
    )
    if n_src != n_tgt:
        raise DataError(
            f"{src} has {n_src:,} lines, but {tgt} has {n_tgt:,}: aligned files need the same "
            "number"
        )
    src_column, tgt_column = (
        _describe(0, _cells(rows, 0), path.name.removesuffix(".gz").rpartition(".")[2])
        for path, rows in ((src, src_rows), (tgt, tgt_rows))
    )
    return PairFiles((src, tgt), n_src, (src_column, tgt_column), "")


def read_rows(path: Path, separator: str) -> Iterator[list[str]]:
    """The rows of a table. Only commas allow quotes around a cell.

    Raises:
        DataError: the file cannot be read, is not UTF-8, or has a broken cell.
    """
    lines = read_text_lines(path)
    try:
        yield from (
            csv.reader(f"{line}\n" for line in lines)
            if separator == ","
            else (line.split("\t") for line in lines)
        )
    except csv.Error as error:
        raise DataError(f"{path}: not a readable table ({error})") from None


def _find_separator(path: Path) -> str:
    """The separator that gives most rows the same number of columns, two or more.

    Raises:
        DataError: there is none.
    """
    for separator in SEPARATORS:
        rows = [row for row in _sample(read_rows(path, separator))[0] if row not in ([], [""])]
        ((n_columns, count),) = Counter(map(len, rows)).most_common(1) or [(0, 0)]
        if n_columns > 1 and count >= 0.9 * len(rows):
            return separator
    raise DataError(
        f"{path}: no columns found (tried {' and '.join(SEPARATORS.values())}); give a table, or "
        "two files with --data twice"
    )


def _sample(rows: Iterable[Sequence[str]]) -> tuple[list[Sequence[str]], int]:
    """Evenly spaced rows, and the number of all rows."""
    sample: list[Sequence[str]] = []
    stride, count = 1, 0
    for count, row in enumerate(rows, 1):
        if (count - 1) % stride == 0:
            sample.append(row)
            if len(sample) > MAX_SAMPLE:
                sample, stride = sample[::2], 2 * stride
    return sample, count


def _is_text(cells: Sequence[str], n_rows: int) -> bool:
    """Whether most cells of a column have letters, are no attributions or addresses, and differ."""
    n_texts = sum(
        any(letter.isalpha() for letter in cell) and not cell.startswith(NO_TEXT) for cell in cells
    )
    return n_texts >= 0.8 * n_rows and len(set(cells)) >= 0.2 * n_rows


def _cells(rows: Sequence[Sequence[str]], index: int) -> list[str]:
    return [row[index].strip() for row in rows if len(row) > index]


def _is_header(header: Sequence[str], indices: Sequence[int]) -> bool:
    cells = [cell.strip() for cell in header]
    if len(set(cells)) < len(cells) or any(
        len(cell.split()) > 3 or cell.endswith((".", "!", "?")) for cell in cells
    ):
        return False
    names = [cells[index].lower() for index in indices if index < len(cells)]
    return any(name in HEADER_WORDS or language_of_name(name) for name in names)


def _describe(index: int, cells: Sequence[str], name: str) -> Column:
    name = name.strip()
    language = language_of_name(name) or guess_language(cells)
    example = next((cell for cell in cells[len(cells) // 2 :] if cell), "")
    if len(example) > 30:
        example = f"{example[:27]}..."
    return Column(index + 1, name or None, language, example, len(set("".join(cells))))


def language_of_name(name: str) -> str | None:
    """The code of a language by its code or English name: "DE" or "German" gives "de"."""
    word, names = name.strip().lower(), _names()
    return word if word in names.values() else names.get(word)


@cache
def _names() -> dict[str, str]:
    """English name -> code, from the names of spaCy's classes."""
    pattern = re.compile(r'__all__ = \["(\w+)"')
    matches = {
        path.parent.name: pattern.search(path.read_text("utf-8"))
        for path in spacy_languages().glob("*/__init__.py")
    }
    return {match[1].lower(): code for code, match in matches.items() if match and code != "xx"}
