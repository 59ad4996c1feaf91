"""Sources of pairs: what they have in common, and those whose files hold records: JSON lines,
Parquet and TMX.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from nmt.errors import DataError
from nmt.files import explain_read_errors
from nmt.lines import MAX_LINE_BYTES, ignore_progress, read_blocks, read_raw_lines

PARQUET_ROWS = 4096  # read at once
MAX_ROW_GROUP_BYTES = 1 << 32  # uncompressed: a larger one would not fit into memory
INLINE_CODES = (
    "bpt",
    "ept",
    "ph",
    "it",
    "ut",
    "sub",
)  # elements within a sentence of TMX that hold no text
XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"

RawRow = tuple[bytes, ...]  # one undecoded line, or the two sides of a pair


class TooFewColumnsError(Exception):
    """A row of a table lacks the source or the target; `args[0]` is its number of columns."""


class BadRecordError(Exception):
    """A record has no pair; `args[0]` says why."""


class PairSource(Protocol):
    """A file of pairs, or two aligned files. The main process reads rows; workers decode them, and
    get a pickled source.
    """

    @property
    def first_line(self) -> int:
        """The number of the first row."""
        ...

    @property
    def unit(self) -> str:
        """What a row is called in messages."""
        ...

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def expected(self) -> str:
        """What a row needs, for messages."""
        ...

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        """All rows. advance: called with numbers of bytes that were read. Raises: DataError if a
        file is missing or damaged.
        """
        ...

    def pair(self, row: RawRow) -> tuple[str, str]:
        """Source and target text. Raises: UnicodeDecodeError, TooFewColumnsError,
        BadRecordError.
        """
        ...


@dataclass(frozen=True)
class JsonLinesSource:
    """A JSON object on each line. src, tgt: its keys; "translation.de" is the key "de" of the
    object under "translation".

    A key that the object lacks is looked for under "translation", where many corpora have their
    pairs.
    """

    path: Path
    member: str | None
    src: str
    tgt: str

    first_line = 1
    unit = "line"

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def expected(self) -> str:
        return f"a JSON object with {self.src} and {self.tgt}"

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        return ((line,) for line in read_raw_lines(self.path, self.member, advance=advance))

    def pair(self, row: RawRow) -> tuple[str, str]:
        text = row[0].decode("utf-8")
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadRecordError(f"is not JSON ({' '.join(str(error).split())})") from None
        return self._text(record, self.src), self._text(record, self.tgt)

    @staticmethod
    def _text(record: Any, key: str) -> str:
        for path in (key.split("."), ["translation", key]):
            value = record
            for part in path:
                value = value.get(part) if isinstance(value, dict) else None
            if isinstance(value, str):
                # Half of a surrogate pair is no character.
                return value.encode("utf-8", "surrogatepass").decode("utf-8")
        keys = (
            f"its keys are {', '.join(list(record)[:8])}"
            if isinstance(record, dict)
            else "it is no object"
        )
        raise BadRecordError(f"has no text under {key} ({keys})")


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file. src, tgt: its columns; "translation.de" is the field "de" of the column
    "translation".
    """

    path: Path
    src: str
    tgt: str

    first_line = 1
    unit = "row"
    expected = "two columns of text"

    @classmethod
    def open(cls, path: Path, src: str, tgt: str) -> Self:
        """Raises: DataError if the file cannot be read, or has no such columns of text."""
        with _explain_parquet(path), _import_parquet(path).ParquetFile(path) as file:
            types = {
                column.path: str(column.logical_type)
                for column in map(file.schema.column, range(len(file.schema)))
            }
        names = [name if name in types else f"translation.{name}" for name in (src, tgt)]
        for name, column in zip((src, tgt), names, strict=True):
            if types.get(column) != "String":
                texts = (
                    ", ".join(name for name, kind in types.items() if kind == "String") or "none"
                )
                raise DataError(
                    f"{path}: has no column {name} of text; set `columns` to two of its "
                    "columns "
                    f"of text: {texts}"
                )
        return cls(path, *names)

    @property
    def name(self) -> str:
        return str(self.path)

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        with _explain_parquet(self.path), _import_parquet(self.path).ParquetFile(self.path) as file:
            size = self.path.stat().st_size
            for group in range(file.num_row_groups):
                if file.metadata.row_group(group).total_byte_size > MAX_ROW_GROUP_BYTES:
                    raise DataError(
                        f"{self.path}: row group {group + 1} is too large; write it again with "
                        "groups of a million rows"
                    )
                for batch in file.iter_batches(
                    PARQUET_ROWS, row_groups=[group], columns=[self.src, self.tgt]
                ):
                    columns = [self._column(batch, name) for name in (self.src, self.tgt)]
                    yield from zip(*columns, strict=True)
                    advance(size * batch.num_rows // max(1, file.metadata.num_rows))

    @staticmethod
    def _column(batch: Any, name: str) -> list[bytes]:
        first, *rest = name.split(".")
        column = batch.column(first)
        for part in rest:
            column = column.field(part)
        return [value or b"" for value in column.cast("large_binary").to_pylist()]

    def pair(self, row: RawRow) -> tuple[str, str]:
        src, tgt = row
        return src.decode("utf-8"), tgt.decode("utf-8")


def _import_parquet(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise DataError(
            f'{path}: format parquet needs the package pyarrow; run: pip install "nmt[formats]"'
        ) from None
    return pyarrow.parquet


@contextmanager
def _explain_parquet(path: Path) -> Iterator[None]:
    """Raises: DataError in place of the errors of reading a Parquet file."""
    with explain_read_errors(path):
        try:
            yield
        except (ValueError, NotImplementedError) as error:
            raise DataError(
                f"{path}: is truncated, damaged or no Parquet file "
                f"({' '.join(str(error).split())[:200]})"
            ) from None


@dataclass
class _Unit:
    """A translation unit of TMX: the text of each language, while it is parsed."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    language: str = ""
    in_segment: bool = False
    code_depth: int = 0
    n_characters: int = 0


class _TmxTarget:
    """Receives the events of an XML parser, and collects the finished units."""

    def __init__(self) -> None:
        self.units: list[dict[str, str]] = []
        self._unit = _Unit()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        unit, name = self._unit, tag.rpartition("}")[2]
        if name == "tu":
            self._unit = _Unit()
        elif name == "tuv":
            unit.language = (
                (attributes.get(XML_LANGUAGE) or attributes.get("lang") or "")
                .lower()
                .replace("_", "-")
            )
        elif name == "seg":
            unit.in_segment = unit.language not in unit.texts
            if unit.in_segment:
                unit.texts[unit.language] = []
        elif name in INLINE_CODES:
            unit.code_depth += 1

    def data(self, text: str) -> None:
        unit = self._unit
        if unit.in_segment and not unit.code_depth:
            unit.texts[unit.language].append(text)
            unit.n_characters += len(text)

    def end(self, tag: str) -> None:
        unit, name = self._unit, tag.rpartition("}")[2]
        if name == "seg":
            unit.in_segment = False
        elif name in INLINE_CODES:
            unit.code_depth -= 1
        elif name == "tu":
            self.units.append({language: "".join(parts) for language, parts in unit.texts.items()})

    def close(self) -> None:
        """The parser calls it at the end."""

    @property
    def is_too_long(self) -> bool:
        return self._unit.n_characters > MAX_LINE_BYTES


@dataclass(frozen=True)
class TmxSource:
    """A translation memory. Of languages with a region ("de-AT"), the first that fits is taken."""

    path: Path
    member: str | None
    src_language: str
    tgt_language: str

    first_line = 1
    unit = "unit"
    expected = "a segment in each language"

    @property
    def name(self) -> str:
        return str(self.path)

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        languages: set[str] = set()
        for unit in self._units(advance):
            languages |= unit.keys()
            texts = [
                _text_of(unit, language) for language in (self.src_language, self.tgt_language)
            ]
            yield tuple(text.encode("utf-8") for text in texts)
        for language in (self.src_language, self.tgt_language):
            if not any(_is_of(code, language) for code in languages):
                listing = ", ".join(sorted(filter(None, languages))[:10]) or "none"
                raise DataError(
                    f"{self.path}: has no text in {language}; its languages are: {listing}"
                )

    def _units(self, advance: Callable[[int], object]) -> Iterator[dict[str, str]]:
        try:
            from defusedxml.common import DefusedXmlException
            from defusedxml.ElementTree import ParseError, XMLParser
        except ModuleNotFoundError:
            raise DataError(
                f"{self.path}: format tmx needs the package defusedxml; run: pip install "
                '"nmt[formats]"'
            ) from None
        target, n_units, n_bytes = _TmxTarget(), 0, 0
        # The parser refuses entities and external files: a few lines of them can stand for
        # gigabytes.
        parser = XMLParser(target=target, forbid_entities=True, forbid_external=True)
        try:
            for block in read_blocks(self.path, self.member, advance=advance):
                parser.feed(block)
                n_bytes += len(block)
                if n_bytes - parser.parser.CurrentByteIndex > MAX_LINE_BYTES:
                    text = (
                        f"has an element or a comment of more than {MAX_LINE_BYTES:,} bytes; "
                        "it is no translation memory"
                    )
                    raise DataError(f"{self.path}: {text}")
                if target.is_too_long:
                    raise DataError(
                        f"{self.path}: unit {n_units + len(target.units) + 1} has more than "
                        f"{MAX_LINE_BYTES:,} characters"
                    )
                n_units += len(target.units)
                yield from target.units
                target.units.clear()
            parser.close()
        except ParseError as error:
            after = f" after unit {n_units + len(target.units):,}"
            raise DataError(
                f"{self.path}: is not well-formed XML{after} ({error}); repair it, or export "
                "it "
                "again"
            ) from None
        except DefusedXmlException as error:
            raise DataError(
                f"{self.path}: defines entities, which can stand for gigabytes ({error}); "
                "remove "
                "its DOCTYPE"
            ) from None
        except (LookupError, ValueError) as error:  # of the parser's decoder
            raise DataError(
                f"{self.path}: has an encoding that cannot be read ({error}); save it as UTF-8"
            ) from None
        yield from target.units

    def pair(self, row: RawRow) -> tuple[str, str]:
        src, tgt = row
        return src.decode("utf-8"), tgt.decode("utf-8")


def _is_of(code: str, language: str) -> bool:
    return code == language or code.startswith(f"{language}-")


def _text_of(unit: dict[str, str], language: str) -> str:
    return next((text for code, text in unit.items() if _is_of(code, language)), "")
