"""A document: a file whose texts stand at known places.

The module of a format has a function `find(text)`, which yields a `Segment` for each text of the
file, and a `Skipped` for what a reader would miss in the translation. It gets the file with line
feeds as line ends. It raises FormatError or ExpatError for a file of another format.
"""

import codecs
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain
from xml.parsers.expat import ErrorString, ExpatError

from nmt.config.parts import DOCUMENT_FORMATS, FORMATS, SUFFIXES, format_of, refuse_unread
from nmt.data.formats import Languages
from nmt.errors import DataError, FormatError
from nmt.lines import CONVERT, ENCODINGS, MAX_STREAMED_BYTES, to_utf8
from nmt.plugins import Part
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
        labelled: the text with the mark of its accelerator, in a file that may have some.
        is_form: whether it is one of several plural forms, which need not say the number.
    """

    start: int
    end: int
    text: Marked
    write: Callable[[Marked], str]
    target: Marked | None = None
    labelled: str | None = None
    is_form: bool = False


@dataclass(frozen=True)
class Skipped:
    """What stays untranslated: why, and at which character of the file."""

    start: int
    reason: str


Found = Segment | Skipped
Edit = tuple[int, int, str]  # what takes the place of the characters from the first to the second


class Content:
    """The characters of a file: `raw`, and `text`, with line feeds as line ends.

    Args:
        mark: the byte order mark. encoding, escapes: as `str.encode` names them.
        has_returns: whether a lone \\r ends a line, too, where others end with \\n.
    """

    def __init__(
        self,
        raw: str,
        mark: bytes = b"",
        encoding: str = "utf-8",
        escapes: str = "strict",
        *,
        has_returns: bool = False,
    ) -> None:
        self.raw, self.mark, self.encoding, self.escapes = raw, mark, encoding, escapes
        self.has_returns = has_returns
        # Some programs write \r\n as \r\r\n.
        end = r"\r{0,2}\n|\r" if has_returns or "\n" not in raw else r"\r{0,2}\n"
        self.text = re.sub(end, "\n", raw)
        self._ends = Counter[str]()
        # Where the text lacks characters of line ends: a place for each.
        self._missing: list[int] = []
        for each in re.finditer(end, raw) if "\r" in raw else ():
            self._ends[each[0]] += 1
            self._missing += [each.start() - len(self._missing)] * (len(each[0]) - 1)

    @classmethod
    def of_bytes(cls, data: bytes, name: str, part: Part) -> "Content":
        """Raises: DataError: `data` is packed, no text, or in another encoding."""
        mark = next(filter(data.startswith, ENCODINGS), b"")
        content_of = partial(
            cls,
            escapes=part.trait("escapes") or "strict",
            has_returns=part is not FORMATS["txt"],
        )
        declared = DECLARATION.search(data[:MAX_DECLARATION]) if part.trait("declares") else None
        if declared and not mark:
            with suppress(LookupError, UnicodeError):
                encoding = codecs.lookup(declared[1].decode()).name
                if not encoding.startswith("utf"):
                    return content_of(data.decode(encoding), encoding=encoding)
        content = b"".join(to_utf8([data], name))
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            if encoding := part.trait("encoding"):
                return content_of(content.decode(encoding), encoding=encoding)
            line = content[: error.start].count(b"\n") + 1
            raise DataError(f"{name}, line {line}: not UTF-8 ({error.reason}); {CONVERT}") from None
        encoding = ENCODINGS.get(mark, "utf-8")
        if encoding != "utf-8":
            encoding += "-le" if mark.startswith(b"\xff") else "-be"
        return content_of(text, mark, encoding, escapes="strict")

    def kept(self, start: int, end: int) -> str:
        """A part of the text with the line ends of the file."""
        return self.raw[
            start + bisect_left(self._missing, start) : end + bisect_left(self._missing, end)
        ]

    def edited(self, found: Iterable[Edit | Skipped]) -> "Content":
        """The same file with these edits, which add no lines."""
        edits = sorted(each for each in found if isinstance(each, tuple))
        ends = [0, *(end for _, end, _ in edits)]
        parts = [self.kept(end, each[0]) + each[2] for end, each in zip(ends, edits, strict=False)]
        raw = "".join([*parts, self.kept(ends[-1], len(self.text))])
        return Content(raw, self.mark, self.encoding, self.escapes, has_returns=self.has_returns)

    def renewed(self, text: str, start: int, end: int) -> str:
        """What takes the place of a part: a line ends as the same one did, or else as the first."""
        usual = max(self._ends, key=self._ends.__getitem__, default="\n")
        if len(self._ends) < 2:
            return text.replace("\n", usual)
        ends = dict(re.findall(r"([^\r\n]*)(\r{0,2}\n|\r)", self.kept(start, end)))
        first = next(iter(ends.values()), usual)
        *lines, last = text.split("\n")
        return "".join([*(line + ends.get(line, first) for line in lines), last])

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
                self.remarks.setdefault(each.reason, []).append(bisect_left(feeds, each.start) + 1)
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
        # Where what comes next begins: the outermost segment among the later ones, or the end.
        ends = [len(self.content.text), *(each.start for each in reversed(self.segments))]
        starts = [*accumulate(ends, min)][::-1]
        yield self.content.kept(0, starts[0])
        inner: list[tuple[Segment, str]] = []  # those inside the next ones, and what they become
        # The translations come first: their end, too, is reached.
        for given, segment, following in zip(translations, self.segments, starts[1:], strict=False):
            # The marks with other segments inside: their parts, and how much of them is done.
            changed: dict[str, tuple[list[str], int]] = {}
            marks = (mark.written for mark in segment.text.marks)
            first = len(inner)
            while first and inner[first - 1][0].start >= segment.start:
                first -= 1
            mark, done, parts = "", 0, list[str]()
            for each, written in inner[first:]:  # in the order of the marks
                old = self.content.text[each.start : each.end]
                while (place := mark.find(old, done)) < 0:
                    mark, done, parts = next(marks), 0, []
                parts += [mark[done:place], written]
                done = place + len(old)
                changed[mark] = parts, done
            del inner[first:]
            renewed = {old: "".join([*parts, old[done:]]) for old, (parts, done) in changed.items()}
            new = replace(
                given,
                marks=tuple(
                    replace(each, written=renewed.get(each.written, each.written))
                    for each in given.marks
                ),
            )
            is_new = new != (segment.text if segment.target is None else segment.target)
            if following < segment.end:  # another one has this one inside
                old = self.content.text[segment.start : segment.end]
                inner.append((segment, segment.write(new) if is_new else old))
                continue
            if is_new:
                yield self.content.renewed(segment.write(new), segment.start, segment.end)
            yield self.content.kept(segment.end if is_new else segment.start, following)


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


def known_format(name: str, format_name: str | None = None) -> str:
    """The document format of a file, by its name unless it is given. Raises: DataError: none."""
    if format_name is None:
        refuse_unread(name)
        format_name = format_of(name)
    if format_name not in DOCUMENT_FORMATS:
        raise DataError(
            f"{name}: unknown format; these are known: "
            f"{', '.join(DOCUMENT_FORMATS if format_name else SUFFIXES)}"
        )
    return format_name


def open_document(
    data: bytes,
    name: str,
    format_name: str | None = None,
    *,
    fill_all: bool = False,
    languages: Languages | None = None,
) -> TextDocument:
    """The document of a file.

    name: for messages, and for the format where none is given. format_name: a document format.
    languages: of source and target; the document says that it is in the target language.

    Raises:
        DataError: the format is unknown.
        FormatError: `data` has another one.
        NmtError: a library is not installed.
    """
    format_name = known_format(name, format_name)
    part = FORMATS[format_name]
    find = part.load("texts")
    if format_name == "docx":
        return find(data, name)  # type: ignore[no-any-return]
    content = Content.of_bytes(data, name, part)
    try:
        has_labels = languages and part.trait("labels")
        labelled = [*part.load("labels")(content.text, languages)] if has_labels else []
        content = content.edited(labelled)
        remarks = (each for each in labelled if isinstance(each, Skipped))
        found = chain(remarks, find(content.text))
        return TextDocument(name, content, found, fill_all=fill_all)
    except ExpatError as error:
        raise FormatError(
            f"{name}, line {error.lineno}: not well-formed ({ErrorString(error.code)})"
        ) from None
    except FormatError as error:
        raise FormatError(f"{name}, {error}") from None
