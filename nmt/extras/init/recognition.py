"""Which format a file has: its first bytes say it, whatever its name."""

import json
import re
import zipfile
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath

from nmt.config.parts import FORMATS, having
from nmt.errors import DataError
from nmt.extras.init.languages import language_of_name
from nmt.files import explain_read_errors
from nmt.lines import read_blocks

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


def recognize(path: Path) -> str:
    """The format of a file of pairs: "parquet", one of `FORMATS`, "lines" for a zip with a file for
    each language, or else "csv".

    Raises:
        DataError: the file cannot be read, or has a format without a reader: which, and what to do.
    """
    with explain_read_errors(path), path.open("rb") as file:
        if file.read(4) == b"PAR1":
            return "parquet"
    if len(languages_of_members(path)) > 1:
        return "lines"
    if OFFICE_FILES & {*_member_names(path)}:
        raise DataError(f"{path}: is an office document, which `nmt` does not read; {TABLE}")
    content = b"".join(islice(read_blocks(path), 8))
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
    endings = (PurePosixPath(name).suffix[1:] for name in _member_names(path))
    return [*dict.fromkeys(code for code in map(language_of_name, endings) if code)]


def _member_names(path: Path) -> list[str]:
    """None for a file that is no zip; reading it reports a damaged one."""
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        return archive.namelist()
    return []
