"""Pairs of files with the texts of programs: PO and XLIFF."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.parsers.expat import ExpatError

from nmt.config.parts import FORMATS
from nmt.config.schema import SourceConfig
from nmt.data.formats import Files, Languages, PairSource, RawRow
from nmt.errors import DataError, FormatError
from nmt.extras.documents.document import Content, Segment
from nmt.extras.documents.po import entries
from nmt.lines import ignore_progress, read_blocks
from nmt.text.accelerators import Words, without_accelerators

MAX_BYTES = 1 << 28  # of a file, which is read as a whole
# The codes of the languages in XLIFF.
SOURCE_CODE = re.compile(r"\s(?:source-language|srcLang)\s*=\s*[\"'](\w+)")
TARGET_CODE = re.compile(r"\s(?:target-language|trgLang)\s*=\s*[\"'](\w+)")
TO_REVIEW = re.compile(r"<[^>]*\sstate\s*=\s*[\"'](?:needs-|new|initial)")
# The code of the target in PO, or in the name: "de.po", "app.pt_BR.po.gz", "de/LC_MESSAGES/".
HEADER_CODE = re.compile(r'"Language:\s*([A-Za-z]+)')
NAME_CODE = re.compile(r"(?:^|[/._-])([a-z]{2})(?:[_-]\w{2,4})?(?:\.po\b|/LC_MESSAGES/)")


@dataclass(frozen=True)
class CatalogSource(PairSource):
    """A file with the texts of a program and their translations, without those to review.

    Attributes:
        format: "po" or "xliff". languages: of source and target.
    """

    member: str | None
    format: str
    languages: Languages

    unit = "text"
    expected = "a text and its translation"

    def rows(self, advance: Callable[[int], object] = ignore_progress) -> Iterator[RawRow]:
        (src, tgt), pairs = self.read(advance)
        if others := {src, tgt} - {"", *self.languages}:
            raise DataError(
                f"{self.path}: has texts in {' and '.join(sorted(others))}, not in "
                f"{' and '.join(self.languages)}"
            )
        is_turned = src == self.languages[1] or tgt == self.languages[0]
        for pair in pairs:
            yield tuple(text.encode() for text in (reversed(pair) if is_turned else pair))

    def read(
        self, advance: Callable[[int], object] = ignore_progress
    ) -> tuple[Languages, list[tuple[str, str]]]:
        """The codes of source and target, "" where the file does not say it, and all pairs."""
        data = bytearray()
        for block in read_blocks(self.path, self.member, advance=advance):
            data += block
            if len(data) > MAX_BYTES:
                raise DataError(f"{self.path}: larger than {MAX_BYTES:,} bytes; divide it")
        part = FORMATS[self.format]
        text = Content.of_bytes(bytes(data), str(self.path), part).text
        words = Words(text)
        try:
            if self.format == "po":
                pairs = [*_po_pairs(text, words)]
                named = _code(NAME_CODE.search(self.path.as_posix()))
                named = named if named in self.languages or not any(self.languages) else ""
                return ("", _code(HEADER_CODE.search(text)) or named), pairs
            pairs = [
                without_accelerators(each.labelled or each.text.text, each.target.text, words)
                for each in part.load("texts")(text)
                if isinstance(each, Segment) and each.target and each.target.text
                if not TO_REVIEW.match(text, each.start)
            ]
        except FormatError as error:
            raise DataError(f"{self.path}, {error}") from None
        except ExpatError as error:
            raise DataError(f"{self.path}: is not well-formed XML ({error})") from None
        return (_code(SOURCE_CODE.search(text)), _code(TARGET_CODE.search(text))), pairs


def _code(found: re.Match[str] | None) -> str:
    return found[1].lower() if found else ""


def _po_pairs(text: str, words: Words) -> Iterator[tuple[str, str]]:
    for entry in entries(text):
        targets = [entry.texts[form] for form in entry.forms]
        if entry.source and all(targets) and not entry.is_fuzzy:
            sources = entry.source, entry.texts.get("msgid_plural")
            for src, tgt in zip(sources, (targets[0], targets[-1]), strict=True):
                if src is not None:
                    pair = without_accelerators(src, tgt, words)
                    yield " ".join(pair[0].split()), " ".join(pair[1].split())


def _open(kind: str, config: SourceConfig, files: Files, languages: Languages) -> list[PairSource]:
    return [CatalogSource(path, config.member, kind, languages) for path in files[""]]


def _records(kind: str, path: Path) -> Iterator[dict[str, str]]:
    """The texts of each pair by their languages. The source of PO has none."""
    (src, tgt), pairs = CatalogSource(path, None, kind, ("", "")).read()
    for pair in pairs:
        yield dict(zip((src or "source", tgt or "target"), pair, strict=True))


open_po, po_records = partial(_open, "po"), partial(_records, "po")
open_xliff, xliff_records = partial(_open, "xliff"), partial(_records, "xliff")
