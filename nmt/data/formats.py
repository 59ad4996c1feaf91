"""Files of sentence pairs, read as a stream: tables, line-aligned files, and files of records (see
`record_sources`).

To add a format: a function that builds a `PairSource`, its row in `SOURCE_FORMATS`, and its name in
`SourceFormat` (nmt/config/schema.py); also a rule in nmt/config/rules.py if it takes other keys
than `path` and `columns`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import zip_longest
from pathlib import Path
from typing import cast

from nmt.config.schema import SourceConfig
from nmt.data import checks as source_checks
from nmt.errors import DataError
from nmt.extras.formats.readers import (
    JsonLinesSource,
    PairSource,
    ParquetSource,
    RawRow,
    TmxSource,
    TooFewColumnsError,
)
from nmt.files import explain_read_errors
from nmt.lines import ignore_progress, read_raw_lines


@dataclass(frozen=True)
class TableSource:
    """One line per pair, columns separated by tabs. src, tgt: indices of the columns."""

    path: Path
    member: str | None
    src: int
    tgt: int
    has_header: bool = False

    unit = "line"

    @property
    def first_line(self) -> int:
        return 2 if self.has_header else 1

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def expected(self) -> str:
        return f"{max(self.src, self.tgt) + 1} columns separated by tabs"

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        lines = read_raw_lines(self.path, self.member, advance=advance)
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
    unit = "line"
    expected = "a line in each file"

    @property
    def name(self) -> str:
        return f"{self.src} and {self.tgt}"

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        src = read_raw_lines(self.src, self.member, self.src_language, advance)
        tgt = read_raw_lines(self.tgt, self.member, self.tgt_language, advance)
        for count, pair in enumerate(zip_longest(src, tgt)):
            if None in pair:
                longer = count + 1 + sum(1 for _ in src) + sum(1 for _ in tgt)
                counts = (count, longer) if pair[0] is None else (longer, count)
                raise DataError(
                    f"{self.src} has {counts[0]} lines, but {self.tgt} has {counts[1]}: "
                    "aligned "
                    "files need the same number"
                )
            yield cast(RawRow, pair)

    def pair(self, row: RawRow) -> tuple[str, str]:
        src, tgt = row
        return src.decode("utf-8"), tgt.decode("utf-8")


def find_files(path: Path | Sequence[Path]) -> list[Path]:
    """The files of a path, of a pattern such as `parts/*.gz`, or of a list of both; those of a
    pattern in the order of their names.

    Raises:
        DataError: no file matches a pattern.
    """
    if not isinstance(path, Path):
        return [file for entry in path for file in find_files(entry)]
    if "\0" in str(path):
        raise DataError(f"{path}: is no path; it has a zero byte")
    with explain_read_errors(path):
        if not has_magic(str(path)) or path.exists():
            return [path]
        files = sorted(
            Path(name) for name in glob(str(path), recursive=True) if Path(name).is_file()
        )
    if not files:
        raise DataError(
            f"{path}: no file matches; check the pattern (relative paths start in the current "
            "folder)"
        )
    return files


def open_source(
    config: SourceConfig, files: Mapping[str, Sequence[Path]], src_language: str, tgt_language: str
) -> list[PairSource]:
    """The files of a source, each with its pairs. files: under the language for the format lines,
    else all under "".

    Raises:
        DataError: a file cannot be read, lacks a configured column, or has no partner.
    """
    if config.format != "lines":
        return [open_pairs(config, path, src_language, tgt_language) for path in files[""]]
    src, tgt = files[src_language], files[tgt_language]
    if len(src) != len(tgt):
        raise DataError(
            f"{src[0].parent}: {len(src)} files for {src_language}, but {len(tgt)} for "
            f"{tgt_language}; name as many for both"
        )
    return [
        LinesSource(*pair, src_language, tgt_language, config.member)
        for pair in zip(src, tgt, strict=True)
    ]


def open_pairs(
    config: SourceConfig, path: Path, src_language: str, tgt_language: str
) -> PairSource:
    """The pairs of one file, of any format except lines.

    Raises:
        DataError: the file cannot be read, or lacks a configured column.
    """
    return SOURCE_FORMATS[config.format](config, path, src_language, tgt_language)


def _manythings(
    config: SourceConfig, path: Path, src_language: str, tgt_language: str
) -> PairSource:
    first = next(read_raw_lines(path, config.member), b"").split(b"\t")
    if config.columns is None and len(first) >= 4 and first[0].isdigit() and first[2].isdigit():
        raise DataError(
            f"{path}: its first line looks like an export from tatoeba.org (id, text, id, "
            "text); "
            "use format tatoeba"
        )
    return _table(config, path, (src_language, tgt_language), english=1, other=2)


def _tatoeba(config: SourceConfig, path: Path, src_language: str, tgt_language: str) -> PairSource:
    return _table(config, path, (src_language, tgt_language), english=2, other=4)


def _tsv(config: SourceConfig, path: Path, src_language: str, tgt_language: str) -> PairSource:
    source = _table(config, path, (src_language, tgt_language), english=1, other=2)
    if not source.has_header:
        first = next(read_raw_lines(path, config.member), b"").decode("utf-8", "replace")
        source_checks.check_header(
            str(path), first, (source.src, source.tgt), (src_language, tgt_language)
        )
    return source


def _table(
    config: SourceConfig, path: Path, languages: tuple[str, str], english: int, other: int
) -> TableSource:
    columns = config.columns or {
        language: english if language == "en" else other for language in languages
    }
    column_pair = [columns[language] for language in languages]
    has_header = any(isinstance(column, str) for column in column_pair)
    header = (
        next(read_raw_lines(path, config.member), b"").decode("utf-8", "replace").split("\t")
        if has_header
        else []
    )
    src, tgt = (
        _column_index(path, column, [name.strip() for name in header]) for column in column_pair
    )
    return TableSource(path, config.member, src, tgt, has_header)


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


def _jsonl(config: SourceConfig, path: Path, src_language: str, tgt_language: str) -> PairSource:
    return JsonLinesSource(path, config.member, *_keys(config, (src_language, tgt_language)))


def _parquet(config: SourceConfig, path: Path, src_language: str, tgt_language: str) -> PairSource:
    return ParquetSource.open(path, *_keys(config, (src_language, tgt_language)))


def _tmx(config: SourceConfig, path: Path, src_language: str, tgt_language: str) -> PairSource:
    return TmxSource(path, config.member, src_language, tgt_language)


def _keys(config: SourceConfig, languages: tuple[str, str]) -> tuple[str, str]:
    """The names of the source and of the target in a record; by default the languages."""
    columns = config.columns or dict(zip(languages, languages, strict=True))
    src, tgt = (columns[language] for language in languages)
    return str(src), str(tgt)


SOURCE_FORMATS: dict[str, Callable[[SourceConfig, Path, str, str], PairSource]] = {
    "manythings": _manythings,
    "tatoeba": _tatoeba,
    "tsv": _tsv,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "tmx": _tmx,
}
