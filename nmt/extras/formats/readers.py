"""Files of sentence pairs that hold records: JSON lines, Parquet and TMX."""

import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from nmt.config.schema import SourceConfig
from nmt.data.formats import BAD_RECORD, Files, Languages, NoPairError, PairSource, RawRow
from nmt.errors import DataError, NmtWarning, in_one_line
from nmt.files import explain_read_errors
from nmt.lines import MAX_LINE_BYTES, ignore_progress, read_blocks, read_raw_lines
from nmt.text.tokenizers import NO_SPACES
from nmt.texts.patterns import PATTERNS

PARQUET_ROWS = 4096  # read at once
MAX_ROW_GROUP_BYTES = 1 << 32  # uncompressed: a larger one would not fit into memory
MAX_ARRAY_BYTES = 1 << 28  # of a JSON array, which is read as a whole
# Elements within a sentence of TMX that hold no text; but a placeholder of a program may be one.
INLINE_CODES = ("bpt", "ept", "ph", "it", "ut", "sub")
# Places of elements within a sentence. Such as a line break, they stand between words that have no
# space there; not between a word and its punctuation or quotation marks, and not in Thai, Khmer,
# Japanese or Chinese.
PLACE = "\0"  # never in XML
BETWEEN_WORDS = re.compile(
    rf"""(?<=[^{NO_SPACES}\u3000-\u303f\s\0(\[{{«“„‘¿¡"'’-])\0+(?=[^\s\0.,;:!?…%)\]}}»”’"'-])"""
)
XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def open_jsonl(config: SourceConfig, files: Files, languages: Languages) -> list[PairSource]:
    """Files with a JSON object on each line, or with one array of objects."""
    return [_json_source(path, config.member, _names(config, languages)) for path in files[""]]


def _json_source(path: Path, member: str | None, names: tuple[str, str]) -> "JsonLinesSource":
    first = next(read_blocks(path, member), b"")
    text = first.decode(json.detect_encoding(first), "replace").lstrip()
    return (JsonArraySource if text.startswith("[") else JsonLinesSource)(path, member, names)


def open_parquet(config: SourceConfig, files: Files, languages: Languages) -> list[PairSource]:
    """Parquet files. Raises: DataError if one has no such columns of text."""
    return [_open_parquet(path, _names(config, languages)) for path in files[""]]


def open_tmx(config: SourceConfig, files: Files, languages: Languages) -> list[PairSource]:
    return [TmxSource(path, config.member, languages) for path in files[""]]


def jsonl_records(path: Path) -> Iterator[dict[str, str]]:
    """The texts of each object by their keys, for a look at the file."""
    for row in _json_source(path, None, ("", "")).rows():
        with suppress(ValueError, RecursionError):
            yield dict(_texts_in(json.loads(row[0])))


def _texts_in(record: Any, parents: str = "") -> Iterator[tuple[str, str]]:
    for key, value in record.items() if isinstance(record, dict) else ():
        if isinstance(value, str):
            yield f"{parents}{key}", value
        yield from _texts_in(value, f"{parents}{key}.")


def parquet_records(path: Path) -> Iterator[dict[str, str]]:
    """The texts of each row by their columns."""
    names = _text_columns(path)
    for row in ParquetSource(path, tuple(names)).rows() if names else ():
        yield {name: cell.decode("utf-8", "replace") for name, cell in zip(names, row, strict=True)}


def tmx_records(path: Path) -> Iterator[dict[str, str]]:
    """The texts of each unit by their languages, without regions; that of the header's `srclang` is
    the first.
    """
    for unit in TmxSource(path, None, ("", "")).units(ignore_progress):
        texts: dict[str, str] = {}
        for code, text in unit.items():
            texts.setdefault(code.partition("-")[0], text)
        yield texts


def _names(config: SourceConfig, languages: Languages) -> tuple[str, str]:
    """The names of the source and of the target in a record; by default the languages."""
    columns = config.columns or dict(zip(languages, languages, strict=True))
    src, tgt = (columns[language] for language in languages)
    return str(src), str(tgt)


def _import(name: str, path: Path, kind: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise DataError(
            f"{path}: format {kind} needs the package {name.partition('.')[0]}; run: pip install "
            '"nmt[formats]"'
        ) from None


@dataclass(frozen=True)
class JsonLinesSource(PairSource):
    """A JSON object on each line. keys: of source and target; "translation.de" is the key "de" of
    the object under "translation".

    A key that the object lacks is looked for under "translation", where many corpora have their
    pairs.
    """

    member: str | None
    keys: tuple[str, str]

    @property
    def expected(self) -> str:
        return f"a JSON object with {self.keys[0]} and {self.keys[1]} in each {self.unit}"

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        return ((line,) for line in read_raw_lines(self.path, self.member, advance=advance))

    def pair(self, row: RawRow) -> tuple[str, str] | None:
        text = row[0].decode("utf-8")
        if not text.strip():
            return None
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise NoPairError(BAD_RECORD, f"is not JSON ({in_one_line(error)})") from None
        return _text_under(self.keys[0], record), _text_under(self.keys[1], record)


class JsonArraySource(JsonLinesSource):
    """One JSON array of objects."""

    unit = "record"

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        content = bytearray()
        for block in read_blocks(self.path, self.member, advance=advance):
            content += block
            if len(content) > MAX_ARRAY_BYTES:
                raise DataError(
                    f"{self.path}: is a JSON array of more than {MAX_ARRAY_BYTES:,} bytes; write "
                    "its objects one a line, with `jq -c '.[]' FILE > NEW`"
                )
        try:
            records = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{self.path}: begins as a JSON array, but is none ({in_one_line(error)}); in a "
                "file of JSON lines, each has an object"
            ) from None
        for record in records:
            yield (json.dumps(record).encode(),)


def _text_under(key: str, record: Any) -> str:
    for path in (key.split("."), ["translation", key]):
        value = record
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, str):
            # Half of a surrogate pair is no character.
            return value.encode("utf-8", "surrogatepass").decode("utf-8")
    is_object = isinstance(record, dict)
    keys = f"its keys are {', '.join([*record][:8])}" if is_object else "it is no object"
    raise NoPairError(BAD_RECORD, f"has no text under {key} ({keys})")


@dataclass(frozen=True)
class ParquetSource(PairSource):
    """A Parquet file. columns: of source and target; "translation.de" is the field "de" of the
    column "translation".
    """

    columns: tuple[str, ...]

    unit = "row"
    expected = "two columns of text"

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        with _parquet_file(self.path) as file:
            size, n_rows = self.path.stat().st_size, max(1, file.metadata.num_rows)
            for group in range(file.num_row_groups):
                if file.metadata.row_group(group).total_byte_size > MAX_ROW_GROUP_BYTES:
                    raise DataError(
                        f"{self.path}: row group {group + 1} is too large; write it again with "
                        "groups of a million rows"
                    )
                for batch in file.iter_batches(PARQUET_ROWS, [group], list(self.columns)):
                    yield from zip(*(_texts(batch, name) for name in self.columns), strict=True)
                    advance(size * batch.num_rows // n_rows)


def _open_parquet(path: Path, names: tuple[str, str]) -> ParquetSource:
    texts = _text_columns(path)
    found = tuple(name if name in texts else f"translation.{name}" for name in names)
    for name, column in zip(names, found, strict=True):
        if column not in texts:
            raise DataError(
                f"{path}: has no column {name} of text; set `columns` to two of its columns of "
                f"text: {', '.join(texts) or 'none'}"
            )
    return ParquetSource(path, found)


def _text_columns(path: Path) -> list[str]:
    with _parquet_file(path) as file:
        columns = [file.schema.column(i) for i in range(len(file.schema))]
    return [
        column.path
        for column in columns
        if str(column.logical_type) == "String" and not column.max_repetition_level
    ]


@contextmanager
def _parquet_file(path: Path) -> Iterator[Any]:
    """Raises: DataError in place of the errors of opening and reading it."""
    parquet = _import("pyarrow.parquet", path, "parquet")
    with explain_read_errors(path):
        try:
            with parquet.ParquetFile(path) as file:
                yield file
        except (ValueError, NotImplementedError) as error:
            raise DataError(
                f"{path}: is truncated, damaged or no Parquet file ({in_one_line(error)[:200]})"
            ) from None


def _texts(batch: Any, name: str) -> list[bytes]:
    first, *fields = name.split(".")
    column = batch.column(first)
    for field in fields:
        column = column.field(field)
    return [value or b"" for value in column.cast("large_binary").to_pylist()]


@dataclass(frozen=True)
class TmxSource(PairSource):
    """A translation memory. Of languages with a region ("de-AT"), and of several segments in one
    language, the first that is not empty is taken.
    """

    member: str | None
    languages: Languages

    unit = "unit"
    expected = "a segment in each language"

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        codes: set[str] = set()
        for unit in self.units(advance):
            codes |= unit.keys()
            yield tuple(_text_in(language, unit).encode("utf-8") for language in self.languages)
        for language in self.languages:
            regions = sorted(code for code in codes if _is_of(code, language))
            if len(regions) > 1:
                warnings.warn(
                    f"{self.path}: has texts in {' and '.join(regions)}; of each unit, the first "
                    "of these is read",
                    NmtWarning,
                    stacklevel=2,
                )
            if not regions:
                listing = ", ".join(sorted(filter(None, codes))[:10]) or "none"
                raise DataError(
                    f"{self.path}: has no text in {language}; its languages are: {listing}"
                )

    def units(self, advance: Callable[[int], object]) -> Iterator[dict[str, str]]:
        """The text of each language, for each translation unit."""
        xml = _import("defusedxml.ElementTree", self.path, "tmx")
        target, n_units, n_bytes = _TmxTarget(), 0, 0
        # The parser refuses entities and external files: a few lines of them can stand for
        # gigabytes.
        parser = xml.XMLParser(target=target, forbid_entities=True, forbid_external=True)
        try:
            for block in read_blocks(self.path, self.member, advance=advance):
                parser.feed(block)
                n_bytes += len(block)
                if n_bytes - parser.parser.CurrentByteIndex > MAX_LINE_BYTES:
                    raise DataError(
                        f"{self.path}: has an element or a comment of more than "
                        f"{MAX_LINE_BYTES:,} bytes; it is no translation memory"
                    )
                if target.n_characters > MAX_LINE_BYTES:
                    raise DataError(
                        f"{self.path}: unit {n_units + len(target.units) + 1} has more than "
                        f"{MAX_LINE_BYTES:,} characters"
                    )
                n_units += len(target.units)
                yield from target.units
                target.units.clear()
            parser.close()
        except xml.ParseError as error:
            raise DataError(
                f"{self.path}: is not well-formed XML after unit "
                f"{n_units + len(target.units):,} ({error}); repair it, or export it again"
            ) from None
        except xml.EntitiesForbidden as error:
            raise DataError(
                f"{self.path}: defines entities, which can stand for gigabytes ({error}); remove "
                "its DOCTYPE"
            ) from None
        except (LookupError, ValueError) as error:  # of the parser's decoder
            raise DataError(
                f"{self.path}: has an encoding that cannot be read ({error}); save it as UTF-8"
            ) from None
        yield from target.units


class _TmxTarget:
    """Receives the events of an XML parser, and collects the finished units."""

    def __init__(self) -> None:
        self.units: list[dict[str, str]] = []
        self._srclang = ""
        self._start_unit()

    def _start_unit(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._language, self._in_segment, self._code_depth, self.n_characters = "", False, 0, 0
        self._code = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition("}")[2]
        if name == "tu":
            self._start_unit()
        elif name == "header":
            self._srclang = _to_code(attributes.get("srclang", ""))
        elif name == "tuv":
            self._language = _to_code(attributes.get(XML_LANGUAGE) or attributes.get("lang") or "")
        elif name == "seg":  # of a language only the first that is not empty
            parts = self._texts.setdefault(self._language, [])
            self._in_segment = not "".join(parts).replace(PLACE, "").strip()
        else:
            self._mark_place()
            self._code_depth += name in INLINE_CODES
            self._code = ""

    def data(self, text: str) -> None:
        if self._in_segment:
            self.n_characters += len(text)
            if self._code_depth:
                self._code += text
            else:
                self._texts[self._language].append(text)

    def end(self, tag: str) -> None:
        name = tag.rpartition("}")[2]
        if name == "seg":
            self._in_segment = False
        elif name == "tu":
            codes = sorted(self._texts, key=lambda code: code != self._srclang)  # the source first
            self.units.append(
                {
                    code: BETWEEN_WORDS.sub(" ", "".join(self._texts[code])).replace(PLACE, "")
                    for code in codes
                }
            )
        else:
            self._code_depth -= name in INLINE_CODES
            if name == "ph" and self._in_segment and not self._code_depth:
                self._texts[self._language] += filter(_is_placeholder, [self._code])
            self._mark_place()

    def _mark_place(self) -> None:
        if self._in_segment:
            self._texts[self._language].append(PLACE)


def _is_placeholder(text: str) -> bool:
    """Whether a text is one placeholder of a program, such as {name} or %s."""
    return any(
        row.is_compared and row.kind == "placeholder" and row.pattern.fullmatch(text)
        for row in PATTERNS
    )


def _to_code(name: str) -> str:
    return name.lower().replace("_", "-")


def _is_of(code: str, language: str) -> bool:
    return code == language or code.startswith(f"{language}-")


def _text_in(language: str, unit: dict[str, str]) -> str:
    texts = (text for code, text in unit.items() if _is_of(code, language))
    return next(filter(str.strip, texts), "")
