"""Files of sentence pairs, read as a stream: tables and line-aligned files.

To add a format: a function that opens its files as `PairSource`s, and its row in `FORMATS` of
nmt/config/parts.py, or in an extra.
"""

import csv
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from glob import glob, has_magic
from itertools import islice, zip_longest
from pathlib import Path, PurePosixPath
from typing import cast

from nmt.config.parts import FORMATS
from nmt.config.schema import SourceConfig
from nmt.data.tables import Dialect, find_dialect, read_rows
from nmt.errors import DataError
from nmt.files import explain_read_errors
from nmt.lines import candidates, ignore_progress, read_raw_lines, tables_of

# Why a row has no pair.
UNDECODABLE = "undecodable"
TOO_FEW_COLUMNS = "too few columns"
TOO_MANY_COLUMNS = "too many columns"
BAD_QUOTATION = "bad quotation marks"
BAD_RECORD = "bad record"

RawRow = tuple[bytes, ...]  # one undecoded line, or the two sides of a pair
Languages = tuple[str, str]  # of source and target
Files = Mapping[str, Sequence[Path]]  # under the language, or all under ""


class NoPairError(Exception):
    """A row holds no pair. Its arguments are a reason, one of those above, and what is wrong."""


@dataclass(frozen=True)
class PairSource(ABC):
    """A file of pairs, or two aligned files. The main process reads rows; workers decode them, and
    get a pickled source.

    Attributes:
        unit: what a row is called in messages. first_line: the number of the first row.
        has_accelerators: whether marks of accelerators are to leave the pairs.
    """

    path: Path
    has_accelerators: bool = field(default=False, kw_only=True)

    unit = "line"
    first_line = 1

    @property
    def name(self) -> str:
        """For messages."""
        return str(self.path)

    @property
    @abstractmethod
    def expected(self) -> str:
        """What a row needs, for messages."""

    @abstractmethod
    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        """All rows.

        Args:
            advance: called with numbers of bytes that were read.

        Raises:
            DataError: a file is missing or damaged.
        """

    def pair(self, row: RawRow) -> tuple[str, str] | None:
        """Source and target text; None if the row is blank, where blank lines are no rows. Raises:
        UnicodeDecodeError, NoPairError.
        """
        src, tgt = row
        return src.decode("utf-8"), tgt.decode("utf-8")

    def held_out(self) -> Iterable[tuple[str, str]]:
        """Pairs of a dev or test set whose sentences no source may bring into training."""
        return ()


@dataclass(frozen=True)
class TableSource(PairSource):
    """A row per pair. src, tgt: indices of the columns. min_columns: the last may be missing."""

    member: str | None
    src: int
    tgt: int
    dialect: Dialect
    min_columns: int
    first_line: int = 1

    @property
    def expected(self) -> str:
        return str(self.dialect)

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        lines = read_raw_lines(self.path, self.member, advance=advance)
        rows = read_rows(lines, self.dialect)
        return ((row,) for row in islice(rows, self.first_line - 1, None))

    def pair(self, row: RawRow) -> tuple[str, str] | None:
        text = row[0].decode("utf-8")
        if not text.strip(" "):
            return None
        try:
            cells = self.dialect.cells(text)
        except csv.Error as error:
            raise NoPairError(BAD_QUOTATION, f"has bad quotation marks ({error})") from None
        # With another number, a cell is missing or has a delimiter in it; no one knows which.
        if not self.min_columns <= len(cells) <= self.dialect.n_columns:
            is_short = len(cells) < self.min_columns
            count = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
            raise NoPairError(TOO_FEW_COLUMNS if is_short else TOO_MANY_COLUMNS, f"has {count}")
        return cells[self.src], cells[self.tgt]


@dataclass(frozen=True)
class LinesSource(PairSource):
    """Two files; a line is the translation of the same line of the other. path: of the source."""

    tgt_path: Path
    languages: Languages
    member: str | None = None

    expected = "a line in each file"

    @property
    def name(self) -> str:
        return f"{self.path} and {self.tgt_path}"

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        src = read_raw_lines(self.path, self.member, self.languages[0], advance)
        tgt = read_raw_lines(self.tgt_path, self.member, self.languages[1], advance)
        for count, pair in enumerate(zip_longest(src, tgt)):
            if None in pair:
                paths = (self.path, self.tgt_path)
                shorter, longer = paths if pair[0] is None else paths[::-1]
                raise DataError(
                    f"{shorter} has {count} lines, but {longer} has more: aligned files need the "
                    "same number"
                )
            yield cast(RawRow, pair)


def find_files(path: Path | Sequence[Path]) -> list[Path]:
    """The files of a path, of a pattern such as `parts/*.gz` (in order), or of a list of both.

    Raises:
        DataError: no file matches a pattern, or the path has a zero byte.
    """
    if not isinstance(path, Path):
        return [file for entry in path for file in find_files(entry)]
    if "\0" in str(path):
        raise DataError(f"{path}: contains a zero byte, so it cannot be a path")
    with explain_read_errors(path):
        if not has_magic(str(path)) or path.exists():
            return [path]
        files = sorted(filter(Path.is_file, map(Path, glob(str(path), recursive=True))))
    if not files:
        raise DataError(
            f"{path}: no file matches; check the pattern (relative paths start in the current "
            "folder)"
        )
    return files


def files_in(path: Path) -> list[Path]:
    """The files of pairs in a folder or a zip, in order; another file itself, and a zip of files of
    several kinds.

    Raises:
        DataError: a folder has files of several kinds, or none.
    """
    names = member_names(path) or [
        each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file()
    ]
    tables = tables_of(candidates(names))
    kinds = sorted({PurePosixPath(name).suffix.lower() for name in tables})
    if len(kinds) == 1 and (len(tables) > 1 or path.is_dir()):
        return [Path(f"{path}/{name}") for name in sorted(tables)]
    if path.is_dir():
        found = ", ".join(kinds) or "no files of pairs"
        raise DataError(
            f"{path}: is a folder with {found}; name files of one kind, such as {path}/*.po"
        )
    return [path]


def member_names(path: Path) -> list[str]:
    """None for a file that is no zip; reading it reports a damaged one."""
    with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as archive:
        return archive.namelist()
    return []


def named(files: Sequence[str]) -> str:
    """The names of files in short, for messages."""
    n_others = len(files) - 1
    return f"{files[0]} and {n_others} more files" if n_others else files[0]


def open_source(config: SourceConfig, files: Files, languages: Languages) -> list[PairSource]:
    """The files of a source, each with its pairs, or each two with theirs.

    Raises:
        DataError: a file cannot be read, lacks a configured column, or has no partner.
    """
    sources = FORMATS[config.format].load()(config, files, languages)
    return [replace(source, has_accelerators=config.accelerators) for source in sources]


def open_lines(config: SourceConfig, files: Files, languages: Languages) -> list[PairSource]:
    """Pairs of files that correspond line by line."""
    src, tgt = (files[language] for language in languages)
    if len(src) != len(tgt):
        counts = f"{len(src)} files for {languages[0]}, but {len(tgt)} for {languages[1]}"
        raise DataError(f"{src[0].parent}: {counts}; name as many for both")
    return [LinesSource(*pair, languages, config.member) for pair in zip(src, tgt, strict=True)]


def open_table(config: SourceConfig, files: Files, languages: Languages) -> list[PairSource]:
    """Tables: manythings, tatoeba, tsv and csv, which differ in their columns and delimiters."""
    return [_open_table(config, path, languages) for path in files[""]]


def _open_table(config: SourceConfig, path: Path, languages: Languages) -> TableSource:
    delimiters = FORMATS[config.format].trait("delimiters") or "\t"
    dialect = find_dialect(path, config.member, delimiters)
    lines = read_raw_lines(path, config.member)
    first_row = next(read_rows(lines, dialect)).decode("utf-8", "replace")
    try:
        first = [cell.strip() for cell in dialect.cells(first_row)]
    except csv.Error as error:
        raise DataError(f"{path}, line 1: has bad quotation marks ({error})") from None
    has_ids = len(first) >= 4 and first[0].isdigit() and first[2].isdigit()
    if config.format == "manythings" and config.columns is None and has_ids:
        raise DataError(
            f"{path}: its first line looks like an export from tatoeba.org (id, text, id, text); "
            "use format tatoeba"
        )
    columns: Mapping[str, int | str] = config.columns or {}
    if config.columns is None:
        english, other = FORMATS[config.format].trait("english_first")
        columns = {language: english if language == "en" else other for language in languages}
    names = [columns[language] for language in languages]
    has_header = any(isinstance(name, str) for name in names)
    src, tgt = (_column_index(path, name, first) for name in names)
    has_names = FORMATS[config.format].trait("needs_columns")
    if has_names and not has_header and len(first) > max(src, tgt):
        header = first[src].lower(), first[tgt].lower()
        if header in (("source", "target"), ("src", "tgt"), languages):
            raise DataError(
                f"{path}, line 1: names of columns, not a pair; delete the line, or set `columns` "
                f"to {{{languages[0]}: {first[src]}, {languages[1]}: {first[tgt]}}}"
            )
    n_needed = max(src, tgt) + 1
    n_columns = len(first) if has_header else max(dialect.n_columns, n_needed)
    return TableSource(
        path,
        config.member,
        src,
        tgt,
        replace(dialect, n_columns=n_columns),
        min_columns=n_needed if config.format == "manythings" else n_columns,
        first_line=2 if has_header else 1,
    )


def _column_index(path: Path, column: int | str, header: list[str]) -> int:
    if isinstance(column, int):
        if column < 1:
            raise DataError(f"{path}: columns are numbered from 1, there is no column {column}")
        return column - 1
    if column not in header:
        raise DataError(
            f"{path}: no column is named {column!r} in its first line, which has: "
            f"{', '.join(header)}"
        )
    return header.index(column)
