"""Files of sentence pairs: tables and line-aligned files, plain, .gz or .zip, read as a stream.

To add a format: a function that builds a `PairSource`, its row in `SOURCE_FORMATS`, and its name in `SourceFormat`
(nmt/config/schema.py); also a rule in nmt/config/rules.py if it takes other keys than `path` and `columns`.
"""

import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol, cast

from nmt.config.schema import SourceConfig
from nmt.data import source_checks
from nmt.errors import DataError
from nmt.files import explain_read_errors

BLOCK_BYTES = 1 << 18  # read at once
MAX_LINE_BYTES = 1 << 24  # a file with longer lines is not text
MAX_ZEROS = 0.05  # of the bytes: a few are dirt
# The first bytes of files that look like text only to their owner.
OTHER_FORMATS = {
    b"\xfd7zXZ\x00": "xz; unpack it with `unxz`",
    b"\x28\xb5\x2f\xfd": "Zstandard; unpack it with `unzstd`",
    b"BZh": "bzip2; unpack it with `bunzip2`",
    b"7z\xbc\xaf\x27\x1c": "7z; unpack it with `7z x`",
    b"%PDF-": "PDF; save its table as text, with tabs",
    b"\xd0\xcf\x11\xe0": "an old Office document; save its table as text, with tabs",
}

RawRow = tuple[bytes, ...]  # one undecoded line, or one of each aligned file


class TooFewColumnsError(Exception):
    """A row of a table lacks the source or the target; `args[0]` is its number of columns."""


class PairSource(Protocol):
    """A source of pairs. The main process reads rows, workers decode them: a source is pickled to reach them."""

    @property
    def first_line(self) -> int:
        """The line number of the first row."""
        ...

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def expected(self) -> str:
        """What a row needs, for messages."""
        ...

    def rows(self) -> Iterator[RawRow]:
        """Raises: DataError if a file is missing, damaged or not text."""
        ...

    def pair(self, row: RawRow) -> tuple[str, str]:
        """Source and target text. Raises: UnicodeDecodeError, TooFewColumnsError."""
        ...


@dataclass(frozen=True)
class TableSource:
    """One line per pair, columns separated by tabs. src, tgt: indices of the columns."""

    path: Path
    member: str | None
    src: int
    tgt: int
    has_header: bool = False

    @property
    def first_line(self) -> int:
        return 2 if self.has_header else 1

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def expected(self) -> str:
        return f"{max(self.src, self.tgt) + 1} columns separated by tabs"

    def rows(self) -> Iterator[RawRow]:
        lines = read_raw_lines(self.path, self.member)
        if self.has_header:
            next(lines, None)
        for line in lines:
            yield (line,)

    def pair(self, row: RawRow) -> tuple[str, str]:
        columns = row[0].decode("utf-8").split("\t")
        if len(columns) <= max(self.src, self.tgt):
            raise TooFewColumnsError(len(columns))
        return columns[self.src], columns[self.tgt]


@dataclass(frozen=True)
class LinesSource:
    """Two files; each line of one is the translation of the same line of the other."""

    src: Path
    tgt: Path
    src_language: str
    tgt_language: str
    member: str | None = None

    first_line = 1
    expected = "a line in each file"

    @property
    def name(self) -> str:
        return f"{self.src} and {self.tgt}"

    def rows(self) -> Iterator[RawRow]:
        src = read_raw_lines(self.src, self.member, self.src_language)
        tgt = read_raw_lines(self.tgt, self.member, self.tgt_language)
        for count, pair in enumerate(zip_longest(src, tgt)):
            if None in pair:
                longer = count + 1 + sum(1 for _ in src) + sum(1 for _ in tgt)
                counts = (count, longer) if pair[0] is None else (longer, count)
                raise DataError(
                    f"{self.src} has {counts[0]} lines, but {self.tgt} has {counts[1]}: aligned files need the same number"
                )
            yield cast(RawRow, pair)

    def pair(self, row: RawRow) -> tuple[str, str]:
        src, tgt = row
        return src.decode("utf-8"), tgt.decode("utf-8")


def open_pairs(config: SourceConfig, path: Path | None, src_language: str, tgt_language: str) -> PairSource:
    """The source that `config` describes. `path` is its file, except for the format lines.

    Raises:
        DataError: a file cannot be read, or lacks a configured column.
    """
    return SOURCE_FORMATS[config.format](config, path or Path(), src_language, tgt_language)


def _manythings(config: SourceConfig, path: Path, src_language: str, tgt_language: str) -> PairSource:
    first = next(read_raw_lines(path, config.member), b"").split(b"\t")
    if config.columns is None and len(first) >= 4 and first[0].isdigit() and first[2].isdigit():
        raise DataError(f"{path}: its first line looks like an export from tatoeba.org (id, text, id, text); use format tatoeba")
    return _table(config, path, (src_language, tgt_language), english=1, other=2)


def _tatoeba(config: SourceConfig, path: Path, src_language: str, tgt_language: str) -> PairSource:
    return _table(config, path, (src_language, tgt_language), english=2, other=4)


def _tsv(config: SourceConfig, path: Path, src_language: str, tgt_language: str) -> PairSource:
    source = _table(config, path, (src_language, tgt_language), english=1, other=2)
    if not source.has_header:
        first = next(read_raw_lines(path, config.member), b"").decode("utf-8", "replace")
        source_checks.check_header(str(path), first, (source.src, source.tgt), (src_language, tgt_language))
    return source


def _table(config: SourceConfig, path: Path, languages: tuple[str, str], english: int, other: int) -> TableSource:
    columns = config.columns or {language: english if language == "en" else other for language in languages}
    column_pair = [columns[language] for language in languages]
    has_header = any(isinstance(column, str) for column in column_pair)
    header = next(read_raw_lines(path, config.member), b"").decode("utf-8", "replace").split("\t") if has_header else []
    src, tgt = (_column_index(path, column, [name.strip() for name in header]) for column in column_pair)
    return TableSource(path, config.member, src, tgt, has_header)


def _column_index(path: Path, column: int | str, header: list[str]) -> int:
    if isinstance(column, int):
        if column < 1:
            raise DataError(f"{path}: columns are numbered from 1, there is no column {column}")
        return column - 1
    if column not in header:
        raise DataError(f"{path}: no column is named {column!r} in its first line, which has: {', '.join(header)}")
    return header.index(column)


def _lines(config: SourceConfig, _path: Path, src_language: str, tgt_language: str) -> PairSource:
    files = config.files or {}
    return LinesSource(files[src_language], files[tgt_language], src_language, tgt_language, config.member)


SOURCE_FORMATS: dict[str, Callable[[SourceConfig, Path, str, str], PairSource]] = {
    "manythings": _manythings,
    "tatoeba": _tatoeba,
    "tsv": _tsv,
    "lines": _lines,
}


def read_raw_lines(path: Path, member: str | None = None, language: str = "") -> Iterator[bytes]:
    """The undecoded lines of a plain, .gz or .zip file, without line feeds and byte order mark.

    Args:
        member: the file in a .zip; not needed if there is only one candidate.
        language: prefer the file whose name ends with it (".de").

    Raises:
        DataError: the file is missing, empty, damaged or not text.
    """
    with _open(path, member, language) as file:
        rest = _without_mark(path, file.read(BLOCK_BYTES))
        if not rest:
            raise DataError(f"{path}: is empty")
        count = 0
        while block := file.read(BLOCK_BYTES):
            *lines, rest = (rest + block).split(b"\n")
            yield from lines
            count += len(lines)
            if len(rest) > MAX_LINE_BYTES:
                raise DataError(f"{path}: line {count + 1} has more than {MAX_LINE_BYTES:,} bytes, so this is not a text file")
        if rest:
            yield from rest.removesuffix(b"\n").split(b"\n")


def _without_mark(path: Path, start: bytes) -> bytes:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path}: is UTF-16; save it as UTF-8")
    if start.count(0) > MAX_ZEROS * len(start):
        raise DataError(f"{path}: has many zero bytes, so it is UTF-16 or no text; save it as UTF-8 text")
    return start.removeprefix(b"\xef\xbb\xbf")


@contextmanager
def _open(path: Path, member: str | None, language: str) -> Iterator[BinaryIO]:
    """The uncompressed content. Raises: DataError if it cannot be opened, or an error occurs while the caller reads it."""
    with explain_read_errors(path), _explain_damage(path), path.open("rb") as file:
        start = file.read(8)
        file.seek(0)
        for mark, name in OTHER_FORMATS.items():
            if start.startswith(mark):
                raise DataError(f"{path}: is {name}")
        if start.startswith(b"PK") or path.suffix == ".zip":
            with (
                zipfile.ZipFile(file) as archive,
                _open_member(path, archive, member or _choose_member(path, archive, language)) as text,
            ):
                yield text
        elif start.startswith(b"\x1f\x8b") or (path.suffix == ".gz" and start):
            with gzip.open(file) as text:
                yield cast(BinaryIO, text)
        else:
            yield file


@contextmanager
def _explain_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: is truncated or damaged ({error})") from None


@contextmanager
def _open_member(path: Path, archive: zipfile.ZipFile, member: str) -> Iterator[BinaryIO]:
    try:
        file = archive.open(member)
    except KeyError:
        raise DataError(f"{path}: has no {member}; it holds: {_listing(archive)}") from None
    except (RuntimeError, NotImplementedError) as error:
        raise DataError(f"{path}: {member} cannot be unpacked ({error})") from None
    with file:
        yield cast(BinaryIO, file)


def _choose_member(path: Path, archive: zipfile.ZipFile, language: str) -> str:
    """The only candidate among the members, not counting notes (`_about.txt`, `README`, `LICENSE`) and system files."""
    names = [info.filename for info in archive.infolist() if not info.is_dir()]
    if "[Content_Types].xml" in names:
        raise DataError(f"{path}: is an Office document; save its table as text, with tabs")
    candidates = [name for name in names if PurePosixPath(name).name[0] not in "_." and not name.startswith("__MACOSX/")]
    of_language = [name for name in candidates if language and PurePosixPath(name).suffix == f".{language}"]
    tables = [name for name in candidates if PurePosixPath(name).suffix.lower() in (".txt", ".tsv", ".csv")]
    for group in (of_language, tables, candidates):
        if len(group) == 1:
            return group[0]
    if not candidates:
        raise DataError(f"{path}: has no text file; it holds: {_listing(archive)}")
    raise DataError(f"{path}: set `member` to one of its files: {', '.join(sorted(candidates)[:20])}")


def _listing(archive: zipfile.ZipFile) -> str:
    return ", ".join(sorted(archive.namelist())[:20]) or "nothing"
