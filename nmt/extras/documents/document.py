"""A document: a file whose texts stand at known places.

The module of a format has a function `find(text)`, which yields a `Segment` for each text of the
file, and a `Skipped` for what a reader would miss in the translation. It gets the file with line
feeds as line ends. It raises FormatError or ExpatError for a file of another format.
"""

import codecs
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from xml.parsers.expat import ErrorString, ExpatError

from nmt.config.parts import DOCUMENT_FORMATS, FORMATS, SUFFIXES, format_of, refuse_unread
from nmt.errors import DataError, FormatError
from nmt.lines import CONVERT, ENCODINGS, MAX_STREAMED_BYTES, to_utf8
from nmt.plugins import Part, import_object
from nmt.texts.marked import Marked

DECLARATION = re.compile(rb"""(?:encoding|charset)\s*=\s*["']?([A-Za-z][\w.:-]*)""")
MAX_DECLARATION = 4096  # the bytes of a file where it may stand


@dataclass(frozen=True)
class Segment:
    """A text of a document, and its place.

    One segment may stand inside another, such as the `title` of a link: in the markup of a mark.

    Attributes:
        start, end: the characters of the file that its translation replaces.
        text: without line ends, indentation and escapes.
        write: from the translation to what stands in the file at this place.
        target: in a file with both languages, the translation that it has, or Marked(""); None in
            other files, where the translation takes the place of the text.
    """

    start: int
    end: int
    text: Marked
    write: Callable[[Marked], str]
    target: Marked | None = None


@dataclass(frozen=True)
class Skipped:
    """What stays untranslated: why, and at which character of the file."""

    start: int
    reason: str


Found = Segment | Skipped


class Content:
    """The characters of a file: `text`, with line feeds as line ends.

    mark: the byte order mark. encoding, escapes: as `str.encode` names them.
    """

    def __init__(
        self, raw: str, mark: bytes = b"", encoding: str = "utf-8", escapes: str = "strict"
    ) -> None:
        self.mark, self.encoding, self.escapes = mark, encoding, escapes
        n_feeds, n_both = raw.count("\n"), raw.count("\r\n")
        is_old = not n_feeds and "\r" in raw
        self._line_end = "\r" if is_old else "\r\n" if 2 * n_both > n_feeds else "\n"
        self._raw = raw
        self.text = raw.replace("\r" if is_old else "\r\n", "\n")
        # Where a \r is missing in the text.
        removed = (each.start() for each in re.finditer("\r\n", raw))
        self._removed = [place - n for n, place in enumerate(removed)]

    @classmethod
    def of_bytes(cls, data: bytes, name: str, part: Part) -> "Content":
        """Raises: DataError: `data` is packed, no text, or in another encoding."""
        mark = next(filter(data.startswith, ENCODINGS), b"")
        escapes = part.trait("escapes") or "strict"
        declared = DECLARATION.search(data[:MAX_DECLARATION]) if part.trait("declares") else None
        if declared and not mark:
            with suppress(LookupError, UnicodeError):
                encoding = codecs.lookup(declared[1].decode()).name
                if not encoding.startswith("utf"):
                    return cls(data.decode(encoding), encoding=encoding, escapes=escapes)
        content = b"".join(to_utf8([data], name))
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            if encoding := part.trait("encoding"):
                return cls(content.decode(encoding), encoding=encoding, escapes=escapes)
            line = content[: error.start].count(b"\n") + 1
            raise DataError(f"{name}, line {line}: not UTF-8 ({error.reason}); {CONVERT}") from None
        encoding = ENCODINGS.get(mark, "utf-8")
        if encoding != "utf-8":
            encoding += "-le" if mark.startswith(b"\xff") else "-be"
        return cls(text, mark, encoding)

    def kept(self, start: int, end: int) -> str:
        """A part of the text with the line ends of the file."""
        return self._raw[
            start + bisect_left(self._removed, start) : end + bisect_left(self._removed, end)
        ]

    def with_line_ends(self, text: str) -> str:
        """Another text with those that most lines have."""
        return text.replace("\n", self._line_end)

    def encode(self, text: str, name: str = "") -> bytes:
        """A text for the file `name`. Raises: DataError: the encoding lacks a character."""
        try:
            return text.encode(self.encoding, self.escapes)
        except UnicodeEncodeError as error:
            raise DataError(
                f"{name}: its encoding, {self.encoding}, has no {text[error.start]!r}; save it as "
                "UTF-8"
            ) from None


class TextDocument:
    """A document.

    Args:
        found: what `find` of its format yields.
        fill_all: whether to translate also what has a translation in the file.

    Attributes:
        segments: those to translate. One inside another comes before it.
        lines: the number of the line of each, from 1.
        remarks: the reasons why something stays untranslated, each with the numbers of the lines.

    Raises:
        DataError: a text is too long.
    """

    unit = "line"

    def __init__(
        self, name: str, content: Content, found: Iterable[Found], *, fill_all: bool = False
    ) -> None:
        self.name, self.content = name, content
        self.segments: list[Segment] = []
        feeds = [match.start() for match in re.finditer("\n", content.text)]
        self.remarks: dict[str, list[int]] = {}
        for each in found:
            if isinstance(each, Skipped):
                lines = self.remarks.setdefault(each.reason, [])
                lines.append(bisect_left(feeds, each.start) + 1)
            elif fill_all or each.target in (None, Marked("")):
                self.segments.append(each)
        self.segments.sort(key=lambda each: (each.end, -each.start))
        if self.unit == "line":
            self.lines = [bisect_left(feeds, each.start) + 1 for each in self.segments]
        else:
            self.lines = [*range(1, len(self.segments) + 1)]
        for line, each in zip(self.lines, self.segments, strict=True):
            if len(each.text.text) > MAX_STREAMED_BYTES:
                raise DataError(
                    f"{name}, {self.unit} {line}: a text is longer than {MAX_STREAMED_BYTES:,} "
                    "characters; divide it"
                )

    def written(self, translations: Iterable[Marked]) -> Iterator[bytes]:
        """The file with these translations, in pieces. Raises: DataError: its encoding lacks a
        character.
        """
        yield self.content.mark
        for piece in self._pieces(translations):
            yield self.content.encode(piece, self.name)

    def _pieces(self, translations: Iterable[Marked]) -> Iterator[str]:
        """One for each outermost segment, with what follows it."""
        text = self.content.text
        # Where what comes next begins: the outermost segment among the later ones, or the end.
        starts = [*accumulate((each.start for each in reversed(self.segments)), min)][::-1]
        starts.append(len(text))
        yield self.content.kept(0, starts[0])
        inner: list[tuple[Segment, str]] = []  # those inside the next ones, and what they become
        # The translations come first: their end, too, is reached.
        for given, segment, following in zip(translations, self.segments, starts[1:], strict=False):
            changed: dict[str, str] = {}  # the marks with other segments inside
            marks = (mark.written for mark in segment.text.marks)
            first = len(inner)
            while first and inner[first - 1][0].start >= segment.start:
                first -= 1
            mark = ""
            for each, written in inner[first:]:  # in the order of the marks
                old = text[each.start : each.end]
                while old not in mark:
                    mark = next(marks)
                changed[mark] = changed.get(mark, mark).replace(old, written)
            del inner[first:]
            new_marks = (replace(m, written=changed.get(m.written, m.written)) for m in given.marks)
            new = Marked(given.text, tuple(new_marks)) if changed else given
            is_new = new != (segment.text if segment.target is None else segment.target)
            if following < segment.end:  # another one has this one inside
                old = text[segment.start : segment.end]
                inner.append((segment, segment.write(new) if is_new else old))
            elif is_new:
                yield self.content.with_line_ends(segment.write(new))
                yield self.content.kept(segment.end, following)
            else:
                yield self.content.kept(segment.start, following)


def stripped(text: Marked) -> tuple[str, Marked, str]:
    """The white space at the start of a text, if no mark stands before it; the text without it; and
    that at its end.
    """
    all_, places = text.text, [mark.position for mark in text.marks]
    start = 0 if places[:1] == [0] else len(all_) - len(all_.lstrip())
    end = len(all_) if places[-1:] == [len(all_)] else max(start, len(all_.rstrip()))
    marks = (
        replace(mark, position=min(max(mark.position, start), end) - start) for mark in text.marks
    )
    return all_[:start], Marked(all_[start:end], tuple(marks)), all_[end:]


def find(text: str) -> Iterator[Segment]:
    """The lines of plain text, without the white space around them."""
    for match in re.finditer(r"\S[^\n]*(?<=\S)", text):
        yield Segment(match.start(), match.end(), Marked(match[0]), lambda line: line.text)


def line_at(text: str, position: int) -> int:
    """The number of the line of a character, from 1."""
    return text.count("\n", 0, position) + 1


def open_document(
    data: bytes, name: str, format_name: str | None = None, *, fill_all: bool = False
) -> TextDocument:
    """The document of a file.

    name: for messages, and for the format where none is given. format_name: a document format.

    Raises:
        DataError: the format is unknown.
        FormatError: `data` has another one.
        NmtError: a library is not installed.
    """
    if format_name is None:
        refuse_unread(name)
        format_name = format_of(name)
    if format_name not in DOCUMENT_FORMATS:
        raise DataError(
            f"{name}: unknown format; these are known: "
            f"{', '.join(DOCUMENT_FORMATS if format_name else SUFFIXES)}"
        )
    part = FORMATS[format_name]
    find = import_object(part.trait("texts"))
    if format_name == "docx":
        return find(data, name)  # type: ignore[no-any-return]
    content = Content.of_bytes(data, name, part)
    try:
        return TextDocument(name, content, find(content.text), fill_all=fill_all)
    except ExpatError as error:
        raise FormatError(
            f"{name}, line {error.lineno}: not well-formed ({ErrorString(error.code)})"
        ) from None
    except FormatError as error:
        raise FormatError(f"{name}, {error}") from None
