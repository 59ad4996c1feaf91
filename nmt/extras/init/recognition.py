"""Which format a file has: its first bytes say it, whatever its name."""

import re
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TypeVar

from nmt.errors import DataError
from nmt.extras.init.languages import language_of_name
from nmt.files import explain_read_errors
from nmt.lines import read_blocks

MarkT = TypeVar("MarkT")
N_BYTES = 1 << 12  # of a start
CONTROLS = re.compile(rb"[\0-\x08\x0e-\x1a]")  # characters that no text has
TABLE = "save it as CSV (UTF-8), a pair in each row"
COPY = f"copy its sentences into a spreadsheet, a pair in each row, and {TABLE}"
UNPACK = "unpack it, and name its files"

# What a file is by its first bytes, and what to do.
BINARY = {
    rb"%PDF": ("a PDF document", COPY),
    rb"\xd0\xcf\x11\xe0": ("a document of an old Office program", TABLE),
    rb"SQLite format 3": ("an SQLite database", f"export its table: {TABLE}"),
    rb"7z\xbc\xaf|Rar!|.{257}ustar": ("an archive", UNPACK),
    rb"\xde\x12\x04\x95|\x95\x04\x12\xde": (
        "a compiled message catalog of gettext (.mo)",
        "convert it with `msgunfmt` and `po2tmx` to TMX",
    ),
}
# The same for a zip, by a file in it.
DOCUMENTS = {
    "xl/": ("an Excel workbook (.xlsx)", TABLE),
    "word/": ("a Word document (.docx)", COPY),
    "ppt/": ("a PowerPoint document (.pptx)", COPY),
    "content.xml": ("an OpenDocument file (.ods or .odt)", TABLE),
    "META-INF/container.xml": ("an e-book (.epub)", COPY),
}
# The same for text. The first that fits counts.
XML_PROLOG = r"\s*(?:<[?!][^>]*>\s*)*"
TEXTS = {
    rf"{XML_PROLOG}<(?:\w+:)?xliff\b": (
        "XLIFF",
        "export the texts as TMX or as a table; most programs that write XLIFF can",
    ),
    rf"{XML_PROLOG}<html\b|\s*<!doctype html": ("an HTML page", COPY),
    rf"\s*<\?xml\b|{XML_PROLOG}<[a-z][\w:.-]*(?:\s[^>]*)?>\s*\n\s*<": (
        "XML, but no TMX",
        "export the pairs as TMX or as a table",
    ),
    r"\s*\{\\rtf": ("a document in Rich Text Format", COPY),
    r'(?:#.*\n|\s)*msg(?:id|ctxt) "': (
        "a message catalog of gettext (PO)",
        "convert it to TMX with `po2tmx`",
    ),
    r"\s*\d+\s*\n\d+:\d\d:\d\d[,.]\d+ -->|WEBVTT": (
        "a file of subtitles",
        "align it with its translation first, in a table or two files with a sentence per line",
    ),
    r'\s*\{\s*(?:"|\n)': (
        "a JSON object of several lines",
        "write a JSON object for each pair, each on its own line",
    ),
}
# Texts that nmt reads, by their format.
FORMATS = {
    "tmx": rf"{XML_PROLOG}<(?:\w+:)?tmx\b",
    "jsonl": r'\s*\{[ \t]*"[^\n]*(?:\}\s*\n|\Z)|\s*\[\s*\{\s*"',
}


def recognize(path: Path) -> str:
    """The format of a file of pairs: "parquet", "tmx", "jsonl", "lines" for a zip with a file for
    each language, or else "csv".

    Raises:
        DataError: the file cannot be read, or has a format without a reader: which, and what to do.
    """
    with explain_read_errors(path), path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1":
        return "parquet"
    if start.startswith(b"PK\x03\x04"):
        names = member_names(path)
        _refuse(path, DOCUMENTS, lambda name: any(each.startswith(name) for each in names))
        if len(languages_of_members(path)) > 1:
            return "lines"
    content = b""
    for block in read_blocks(path):
        content += block
        if len(content) >= N_BYTES:
            break
    _refuse(path, BINARY, lambda mark: re.match(mark, content, re.DOTALL))
    content = content[:N_BYTES]
    is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not is_utf16 and len(CONTROLS.findall(content)) > 0.05 * len(content):
        raise DataError(
            f"{path}: is a binary file, or is UTF-16 without its byte order mark; {TABLE}"
        )
    text = content.decode("utf-16" if is_utf16 else "utf-8-sig", "ignore")
    for name, pattern in FORMATS.items():
        if re.match(pattern, text, re.IGNORECASE):
            return name
    _refuse(path, TEXTS, lambda pattern: re.match(pattern, text, re.IGNORECASE))
    return "csv"


def _refuse(
    path: Path, kinds: Mapping[MarkT, tuple[str, str]], fits: Callable[[MarkT], object]
) -> None:
    """Raises: DataError if one of the kinds fits: what it is, and what to do."""
    for mark, (what, advice) in kinds.items():
        if fits(mark):
            raise DataError(f"{path}: is {what}, which `nmt` does not read; {advice}")


def member_names(path: Path) -> list[str]:
    """The names of the files in a zip; none if it is damaged, which reading it reports."""
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        return archive.namelist()
    return []


def languages_of_members(path: Path) -> list[str]:
    """The languages that names of files in a zip end with, in order: `News.en-fr.en` has "en"."""
    endings = (PurePosixPath(name).suffix[1:] for name in member_names(path))
    return [*dict.fromkeys(code for code in map(language_of_name, endings) if code)]
