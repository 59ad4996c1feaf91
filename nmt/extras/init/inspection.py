"""Looks at files of sentence pairs: their format, which columns have the texts, which languages.
Everything is read by the readers of `nmt prepare`.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from nmt.config.parts import FORMATS, choices, having
from nmt.data.formats import Languages, files_in, find_files, member_names
from nmt.data.tables import DELIMITERS, find_dialect, read_rows
from nmt.errors import DataError
from nmt.extras.init.languages import guess_language, language_of_name, pair_of_name
from nmt.lines import MARKS, decode_lines, read_blocks, read_raw_lines
from nmt.text.accelerators import split_accelerator

MAX_SAMPLE = 4000  # rows, evenly spaced in the file
MIN_MARKED, MARKED = 3, 0.02  # texts with accelerators: number and share, for those of a program
TARGET_WORDS = {"target", "tgt", "translation"}
HEADER_WORDS = TARGET_WORDS | {
    *("source", "src", "original", "text", "sentence", "sentence1", "sentence2")
}
# Attributions, addresses and ids.
NO_TEXT = re.compile(r"CC-BY|https?://|[!-~]*[\d_][!-~]*$")

TABLE = "save it as CSV (UTF-8), a pair in each row"
COPY = f"copy its sentences into a spreadsheet, a pair in each row, and {TABLE}"
OFFICE_FILES = {"[Content_Types].xml", "mimetype"}  # in the zip that such a document is

XML_PROLOG = r"\s*(?:<[?!][^>]*>\s*)*"
# Others: what they are, and what to do. The first that fits counts.
OTHERS = {
    rf"{XML_PROLOG}<html\b|\s*<!doctype html": ("an HTML page", COPY),
    rf"\s*<\?xml\b|{XML_PROLOG}<[a-z][\w:.-]*(?:\s[^>]*)?>\s*\n\s*<": (
        "XML, but neither TMX nor XLIFF",
        "export the pairs as TMX or as a table",
    ),
    r"\s*\d+\s*\n\d+:\d\d:\d\d[,.]\d+ -->|WEBVTT": (
        "a file of subtitles",
        "align it with its translation first, in a table or two files with a sentence per line",
    ),
    r'\s*\{\s*(?:"|\n)|\s*\[\s*\[\s*"|\s*\[".*", *".*"\]\s*\n': (
        "JSON, but has no object for each pair",
        'write each pair as {"en": "...", "de": "..."}, on its own line',
    ),
    "%PDF": ("a PDF document", COPY),
    r"(?s).{257}ustar": ("an archive", "unpack it, and name its files"),
}

RowT = TypeVar("RowT")
Key = int | str  # the number of a column from 1, or the name of a field


@dataclass(frozen=True)
class Column:
    """One side of the pairs.

    Attributes:
        key: for `columns` of the configuration: a number, or a name in the header or the records.
        language: None if it is not clear. is_named: whether the file names it.
        example: a short text. has_accelerators: whether texts are often those of menus.
    """

    key: Key
    language: str | None
    is_named: bool
    example: str
    has_accelerators: bool


@dataclass(frozen=True)
class PairFiles:
    """Files of sentence pairs.

    Attributes:
        given: what the user has named, such as a pattern or a folder.
        paths: its files, or two files with a sentence per line.
        format: for the configuration. layout: the same in words.
        columns: of the two sides.
    """

    given: tuple[Path, ...]
    paths: tuple[Path, ...]
    format: str
    layout: str
    columns: tuple[Column, Column]

    def languages(self, wanted: Languages | None) -> Languages:
        """The language of each of the two columns or files.

        Raises:
            DataError: a language is not clear, and none are wanted; or the file names others.
        """
        first, second = guesses = [column.language for column in self.columns]
        if wanted is not None:
            if others := {each.language or "" for each in self.columns if each.is_named} - {
                *wanted
            }:
                raise DataError(
                    f"{self.paths[0]}: has {choices(sorted(others))}, and not "
                    f"{' and '.join(wanted)}, by the names of its columns or files; correct the "
                    "direction or the names"
                )
            src, tgt = wanted
            return (tgt, src) if first == tgt or second == src else (src, tgt)
        if None in guesses and first != second:
            first, second = pair_of_name(self.paths[0].name, guesses)
        if first is None or second is None or first == second:
            names = " and ".join(guess or "unknown" for guess in guesses)
            raise DataError(
                f"{self.paths[0]}: the languages are not clear ({names}); name them with "
                "--direction, for example en-de"
            )
        return first, second

    def by_language(self, languages: Languages) -> dict[str, list[Path]]:
        """The file of each language, or those of both under "", as `open_source` takes them."""
        if self.format != "lines":
            return {"": [*self.paths]}
        return {languages[0]: [self.paths[0]], languages[1]: [self.paths[-1]]}

    def source(self, languages: Languages, name: Callable[[Path], str] = str) -> dict[str, Any]:
        """For the configuration. name: how it names a file."""
        source: dict[str, Any] = {"format": self.format}
        if self.format == "lines":
            files = self.by_language(languages)
            source["files"] = {key: name(path) for key, (path,) in files.items()}
        else:
            names = [name(path) for path in self.given]
            source["path"] = names if len(names) > 1 else names[0]
        if self.format not in ("lines", "tmx", "po", "xliff"):
            keys = (column.key for column in self.columns)
            source["columns"] = dict(zip(languages, keys, strict=True))
        is_cleaned = self.format in ("po", "xliff")
        if not is_cleaned and all(column.has_accelerators for column in self.columns):
            source["accelerators"] = True
        return source


# What some files without pairs are, and what to do.
NO_PAIRS = {
    ".mo": "is a compiled catalog; name the .po file that it was made from",
    **dict.fromkeys(
        (".pdf", ".docx", ".doc", ".odt", ".pptx", ".epub"),
        "is a document without pairs; save its sentences as text, one per line, beside a file with "
        "their translations",
    ),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "is a spreadsheet; save its sheet as CSV in UTF-8"),
}


def inspect(paths: Sequence[Path], wanted: Languages | None = None) -> PairFiles:
    """Files of pairs in one format, or two whose lines correspond; plain or compressed.

    Args:
        paths: also patterns, folders, and a zip of many.
        wanted: the languages that the user names, for a file that has more than two.

    Raises:
        DataError: a file cannot be read, or its pairs are not found.
    """
    files = [file for path in paths for found in find_files(path) for file in files_in(found)]
    for path in files:
        if advice := NO_PAIRS.get(path.suffix.lower()):
            raise DataError(f"{path}: {advice}")
    formats = {path: recognize(path) for path in files}
    names = {*formats.values()}
    is_table = any({".csv", ".tsv"} & {*path.suffixes} for path in files)
    if len(files) == 2 and names <= {"csv", "lines"} and not is_table:
        src, tgt = (_column(1, _name_of_file(path), _sample_lines(path)) for path in files)
        return PairFiles(tuple(files), tuple(files), "lines", "a sentence per line", (src, tgt))
    if len(names) > 1 or (len(files) > 1 and names == {"lines"}):
        found = ", ".join(f"{path} {name}" for path, name in formats.items())
        raise DataError(f"give pairs of one format, or two files with a sentence per line: {found}")
    parts = list[PairFiles]()
    for path in files:
        with suppress(DataError):  # some may have no texts
            parts.append(_inspect_file(path, formats[path], wanted))
    parts = parts or [_inspect_file(files[0], formats[files[0]], wanted)]
    best = max(parts, key=lambda each: sum(bool(column.language) for column in each.columns))
    for each in parts if len(files) > 1 else ():
        own, first = (one.languages(wanted or best.languages(None)) for one in (each, best))
        if each.source(own).get("columns") != best.source(first).get("columns"):
            raise DataError(
                f"{each.paths[0]}: has other columns than {best.paths[0]}; make them equal"
            )
    return replace(best, given=tuple(paths), paths=tuple(files))


def _inspect_file(path: Path, name: str, wanted: Languages | None) -> PairFiles:
    """name: of its format."""
    if name == "csv":
        return _inspect_table(path, wanted)
    texts: dict[Key, list[str]]
    if name == "lines":
        layout = "two files with a sentence per line"
        texts = {code: _sample_lines(path, code) for code in languages_of_members(path)}
    else:
        layout = f"format {name}"
        records = FORMATS[name].load("records")(path)
        texts = _find_texts(path, records, is_complete=name != "tmx")
    chosen = _choose(path, {key: str(key) for key in texts}, texts, wanted)
    src, tgt = (_column(key, str(key), texts[key]) for key in chosen)
    if name == "po" and src.language is None:  # that of most programs
        src = replace(src, language="en")
    return PairFiles((path,), (path,), name, layout, (src, tgt))


def recognize(path: Path) -> str:
    """The format of a file of pairs: "parquet", one of `FORMATS`, "lines" for a zip with a file for
    each language, or else "csv".

    Raises:
        DataError: the file cannot be read, or has a format without a reader: which, and what to do.
    """
    if len(languages_of_members(path)) > 1:
        return "lines"
    if OFFICE_FILES & {*member_names(path)}:
        raise DataError(f"{path}: is an office document, which `nmt` does not read; {TABLE}")
    content = b"".join(islice(read_blocks(path), 8))
    if content.startswith(b"PAR1"):
        return "parquet"
    text = content.decode(json.detect_encoding(content), "replace")
    for name in having(FORMATS, "begins"):
        if re.match(FORMATS[name].trait("begins"), text, re.IGNORECASE):
            return name
    for pattern, (what, advice) in OTHERS.items():
        if re.match(pattern, text, re.IGNORECASE):
            raise DataError(f"{path}: is {what}, which `nmt` does not read; {advice}")
    return "csv"


def languages_of_members(path: Path) -> list[str]:
    """The languages that names of files in a zip end with, in order: `News.en-fr.en` has "en"."""
    endings = (PurePosixPath(name).suffix[1:] for name in member_names(path))
    return [*dict.fromkeys(code for code in map(language_of_name, endings) if code)]


def _inspect_table(path: Path, wanted: Languages | None) -> PairFiles:
    dialect = find_dialect(path, None, FORMATS["csv"].trait("delimiters"))
    if dialect.n_columns < 2 or dialect.share < 0.9:
        raise DataError(
            f"{path}: no columns found (tried {', '.join(DELIMITERS.values())}); give a table, or "
            "to `nmt init` two files with --data twice"
        )

    def rows() -> Iterator[dict[Key, str]]:
        raw = (row for row in read_rows(read_raw_lines(path), dialect) if row.strip())
        for text in decode_lines(raw, str(path)):
            with suppress(csv.Error):  # such rows are in the report of `nmt prepare`
                yield {number: cell.strip() for number, cell in enumerate(dialect.cells(text), 1)}

    texts = _find_texts(path, rows(), is_complete=True)
    first = next(rows())
    chosen = _choose(path, {key: first.get(key, "") for key in texts}, texts, wanted)
    names = [first.get(key, "") for key in chosen]
    has_header = _is_header([*first.values()], names)
    if not has_header:
        names = ["", ""]
    src, tgt = (
        _column(name or key, name, texts[key]) for key, name in zip(chosen, names, strict=True)
    )
    layout = (
        f"separated by {DELIMITERS[dialect.delimiter]}, {'with' if has_header else 'no'} header"
    )
    return PairFiles(
        (path,), (path,), "tsv" if dialect.delimiter == "\t" else "csv", layout, (src, tgt)
    )


def _find_texts(
    path: Path, rows: Iterable[Mapping[Key, str]], *, is_complete: bool
) -> dict[Key, list[str]]:
    """The columns of text in a sample of the rows, by name or number.

    Args:
        is_complete: each row has a text in the columns to find; a translation memory may have
            units without one of its languages.

    Raises:
        DataError: there are not two.
    """
    sample = _sample(rows)
    columns: dict[Key, list[str]] = {}
    for row in sample:
        for key, cell in row.items():
            columns.setdefault(key, []).append(cell.strip())
    for share in (0.2, 0.05):  # the second for a column whose texts recur often
        texts = {
            key: cells
            for key, cells in columns.items()
            if _is_text(cells, len(sample) if is_complete else len(cells), share)
        }
        if len(texts) >= 2:
            return texts
    raise DataError(
        f"{path}: has no two columns of text; give a table of two columns, or two files with "
        "--data twice"
    )


def _is_text(cells: Sequence[str], n_rows: int, share: float) -> bool:
    """Whether most cells have letters, are no attributions, addresses or ids, and differ.

    Args:
        share: how many of the rows have a text of their own, at least.
    """
    n_texts = sum(
        any(letter.isalpha() for letter in cell) and not NO_TEXT.match(cell) for cell in cells
    )
    return n_texts >= 0.8 * n_rows and len(set(cells)) >= min(share * n_rows, MAX_SAMPLE / 20)


def _choose(
    path: Path,
    names: Mapping[Key, str],
    texts: Mapping[Key, Sequence[str]],
    wanted: Languages | None,
) -> tuple[Key, Key]:
    """Two of the columns: by the languages that they are named after, by names such as "source", or
    by the languages of their texts; else the first two. One that is called "target" is the second.

    Raises:
        DataError: there are more languages than two, and none are wanted, or not these.
    """
    keys = [*names]
    labels: tuple[Callable[[Key], str | None], ...] = (
        lambda key: language_of_name(names[key]),
        lambda key: names[key].lower() if names[key].lower() in HEADER_WORDS else None,
        lambda key: guess_language(texts.get(key, ())),
    )
    for number, label in enumerate(labels):
        if len(keys) == 2:
            break
        found = {name: key for key in reversed(keys) if (name := label(key))}
        if wanted and {*wanted} <= found.keys():
            found = {language: found[language] for language in wanted}
        if len(found) == 2:
            keys = [key for key in keys if key in found.values()]
        elif len(found) > 2 and number != 1:
            listing = choices(reversed(found)).replace(" or ", " and ")
            example = "-".join([*reversed(found)][:2])
            advice = f"; name two of them with --direction, for example {example}"
            others = advice if wanted is None else f", and not both {' and '.join(wanted)}"
            raise DataError(f"{path}: has {listing}{others}")
    src, tgt = sorted(keys[:2], key=lambda key: names[key].lower() in TARGET_WORDS)
    return src, tgt


def _is_header(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the first row names the columns. names: its cells in the two columns of text."""
    if len(set(cells)) < len(cells) or any(
        len(cell.split()) > 3 or cell.endswith((".", "!", "?")) for cell in cells
    ):
        return False
    known = [
        name.lower() in HEADER_WORDS or language_of_name(name) is not None for name in names if name
    ]
    # "so" and "hi" are words as well as codes of languages.
    return any(known) and (all(known) or max(map(len, names)) > 3)


def _column(key: Key, name: str, texts: Sequence[str]) -> Column:
    language = language_of_name(name)
    example = next((text for text in texts[len(texts) // 2 :] if text), "")
    if len(example) > 30:
        example = f"{example[:27]}..."
    n_marked = sum(split_accelerator(text)[1] != "" for text in texts)
    is_marked = n_marked >= max(MIN_MARKED, MARKED * len(texts))
    return Column(key, language or guess_language(texts), language is not None, example, is_marked)


def _name_of_file(path: Path) -> str:
    """What stands before the endings of packing and of text: "train.fr-CA.txt.gz" gives "fr-CA"."""
    suffixes = [suffix for suffix in path.suffixes if suffix not in (*MARKS.values(), ".txt")]
    return suffixes[-1][1:] if suffixes else path.name.partition(".")[0]


def _sample_lines(path: Path, language: str = "") -> list[str]:
    return _sample(decode_lines(read_raw_lines(path, language=language), str(path)))


def _sample(rows: Iterable[RowT]) -> list[RowT]:
    """Evenly spaced rows."""
    sample: list[RowT] = []
    stride = 1
    for count, row in enumerate(rows):
        if count % stride == 0:
            sample.append(row)
            if len(sample) > MAX_SAMPLE:
                sample, stride = sample[::2], 2 * stride
    return sample
