"""Word documents (.docx): zip archives of XML. Each paragraph is a text."""

import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import unescape
from xml.parsers import expat
from xml.sax.saxutils import escape

from nmt.errors import DataError
from nmt.extras.documents.document import FORMATS, Content, FormatError, Segment, TextDocument
from nmt.extras.documents.html import Kind
from nmt.extras.documents.xml import TOKEN
from nmt.extras.texts.marked import Mark, Marked

MEMBER = re.compile(r"word/(?:document|header|footer|footnotes|endnotes|comments)\d*\.xml")
MAX_UNPACKED = 1 << 28  # bytes of all members together, a hundred times a long book
MAX_DEPTH = 1000  # of elements
MAX_XML = 1 << 26  # bytes of those with text
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
NAMESPACE = re.compile(
    r"""xmlns:([\w.-]+)=["']http://(?:schemas\.openxmlformats\.org/wordprocessingml/2006/main"""
    r"""|purl\.oclc\.org/ooxml/wordprocessingml/main)["']"""
)
# Elements around runs, by which they become links, new, tagged and so on.
AROUND = {"bdo", "customXml", "dir", "hyperlink", "ins", "moveTo", "sdt", "smartTag"}
DROPPED = {"lastRenderedPageBreak", "pPr", "proofErr", "rPr", "softHyphen"}
BREAKS = {"br", "cr", "ptab", "tab"}
WORDS = {"fldSimple", "m:oMath", "object", "sym"}  # stand for a word
FIELD = re.compile(r"""fldCharType=["'](begin|end|separate)""")
UNSEEN = re.compile(r"<[\w.-]+:(?:lang|noProof)\b[^>]*/>")  # in a format, without effect
EMPTY = re.compile(r"<([\w.:-]+)></\1>")


@dataclass(slots=True)
class Node:
    """An element. name: without the prefix of Word, but with others."""

    name: str
    start: int
    inner: int
    inner_end: int = 0
    end: int = 0
    children: list["Node"] = field(default_factory=list)


class DocxDocument(TextDocument):
    """A Word document. Raises: DataError: it is damaged, or no .docx."""

    unit = "paragraph"

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._members: dict[str, Content] = {}
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                infos = archive.infolist()
                texts = [info for info in infos if MEMBER.fullmatch(info.filename)]
                if sum(info.file_size for info in infos) > MAX_UNPACKED or any(
                    info.file_size > MAX_XML for info in texts
                ):
                    raise DataError(f"{name}: would unpack to too many bytes; divide it")
                for info in texts:
                    place = f"{name}, {info.filename}"
                    content = Content.of_bytes(archive.read(info), place, FORMATS["docx"])
                    _check(content.raw, place)
                    self._members[info.filename] = content
        except DAMAGE as error:
            raise DataError(
                f"{name}: damaged, or no .docx ({error}); save it as .docx again"
            ) from None
        if not self._members:
            raise DataError(f"{name}: no .docx (it has no word/document.xml)")
        # No XML has this character.
        content = Content("\0".join(each.raw for each in self._members.values()))
        try:
            super().__init__(name, content, _find(content.text))
        except FormatError as error:
            raise DataError(f"{name}: {error}") from None

    def _lines(self) -> list[int]:
        return [*range(1, len(self.segments) + 1)]

    def written(self, translations: Iterable[Marked]) -> Iterator[bytes]:
        """The file with these translations of the segments."""
        written = "".join(self._pieces(translations))
        if written == self.content.raw:
            yield self._data
            return
        texts = dict(zip(self._members, written.split("\0"), strict=True))
        stream = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(self._data)) as archive,
            zipfile.ZipFile(stream, "w") as output,
        ):
            for info in archive.infolist():
                content = archive.read(info)
                if member := self._members.get(info.filename):
                    content = member.mark + texts[info.filename].encode(member.encoding)
                new = zipfile.ZipInfo(info.filename, info.date_time)
                new.compress_type, new.external_attr = info.compress_type, info.external_attr
                output.writestr(new, content)
        yield stream.getvalue()


def _check(text: str, place: str) -> None:
    """Raises: DataError: the text is not XML, or defines entities, which Word does not."""
    if "<!DOCTYPE" in text:
        raise DataError(f"{place}: has a DOCTYPE; save it as .docx again")
    try:
        expat.ParserCreate().Parse(text, True)
    except expat.ExpatError as error:
        raise DataError(f"{place}: {error}; save it as .docx again") from None


def _find(text: str) -> Iterator[Segment]:
    """The paragraphs of all members."""
    start = 0
    for member in text.split("\0"):
        found = NAMESPACE.search(member)
        writer = _Writer(text, f"{found[1] if found else 'w'}:")
        for paragraph in _paragraphs(text, start, start + len(member), writer.prefix):
            yield from writer.segments(paragraph)
        start += len(member) + 1


def _paragraphs(text: str, start: int, end: int, prefix: str) -> Iterator[Node]:
    """Those of a member, each after those inside it."""
    opened = [Node("", start, start)]
    for token in TOKEN.finditer(text, start, end):
        if not token["tag"]:
            continue
        if not token["close"]:
            node = Node(token["tag"].removeprefix(prefix), token.start(), token.end())
            opened[-1].children.append(node)
            opened.append(node)
            if len(opened) > MAX_DEPTH:
                raise FormatError("nested too deeply")
        if token["close"] or token["empty"]:
            node = opened.pop()
            node.inner_end = token.start() if token["close"] else token.end()
            node.end = token.end()
            if node.name == "p":
                yield node


@dataclass(frozen=True)
class Event:
    """A part of a paragraph.

    Attributes:
        start, end: of the run or the markup that has it.
        text: of a piece of text; of other parts, what stands in the file.
        kind: of a mark; None for text. format: of a piece of text.
    """

    start: int
    end: int
    text: str
    kind: Kind | None = None
    format: str = ""
    is_break: bool = False


class _Writer:
    """Reads and writes paragraphs."""

    def __init__(self, text: str, prefix: str) -> None:
        self.text, self.prefix = text, prefix

    def segments(self, paragraph: Node) -> Iterator[Segment]:
        """The text of a paragraph, if it has words."""
        events = [*self._events(paragraph.children)]
        while events and _is_around(events[:2]):
            del events[0]
        while events and _is_around(events[:-3:-1]):
            del events[-1]
        sizes = Counter[str]()
        for event in events:
            if event.kind is None:
                sizes[event.format] += len(event.text)
        if not any(map(str.isalpha, "".join(each.text for each in events if not each.kind))):
            return
        base = sizes.most_common(1)[0][0]
        marked, marks = self._marked(events, base)
        # White space at the ends stays, where no mark is between it and the end.
        lead = 0 if events[0].kind else len(marked) - len(marked.lstrip())
        end = len(marked) if events[-1].kind else len(marked.rstrip())
        moved = (
            replace(mark, position=min(max(mark.position, lead), end) - lead) for mark in marks
        )
        write = partial(self._write, base, marked[:lead], marked[end:])
        yield Segment(
            events[0].start, events[-1].end, Marked(marked[lead:end], tuple(moved)), write
        )

    def _marked(self, events: Sequence[Event], base: str) -> tuple[str, list[Mark]]:
        """The text of a paragraph and its marks. A format other than the base is a pair of them."""
        marked, marks, current = "", list[Mark](), base
        for event in (*events, Event(0, 0, "", format=base)):
            layout = event.format if event.kind is None else current
            if current not in (base, layout) or (
                current != base and event.kind in ("open", "close")
            ):
                marks.append(Mark(len(marked), f"</{self.prefix}r>", "close"))
                current = base
            if event.kind is None:
                if layout not in (base, current):
                    marks.append(Mark(len(marked), f"<{self.prefix}r>{layout}", "open"))
                current = layout
                marked += event.text
            else:
                marks.append(Mark(len(marked), event.text, event.kind))
                marked += " " if event.is_break and not marked.endswith(" ") else ""
        return marked, marks

    def _events(self, nodes: Sequence[Node]) -> Iterator[Event]:
        """The parts of the content of a paragraph."""
        ends, middles = self._fields(nodes)
        index = 0
        while index < len(nodes):
            node, last = nodes[index], ends.get(index, index)
            stop = nodes[last].end
            raw = self.text[node.start : stop]
            middle = middles.get(index, last)
            if middle < last and "HYPERLINK" in self.text[node.start : nodes[middle].end]:
                yield self._event(node.start, nodes[middle].end, "open")
                yield from self._events(nodes[middle + 1 : last])
                yield self._event(nodes[last].start, stop, "close")
            elif index in ends:
                yield self._event(node.start, stop, "item")
            elif node.name == "r":
                yield from self._run(node)
            elif node.name in AROUND and f"</{self.prefix}t>" in raw:
                inner = next((each for each in node.children if each.name == "sdtContent"), node)
                yield self._event(node.start, inner.inner, "open")
                yield from self._events(inner.children)
                yield self._event(inner.inner_end, stop, "close")
            elif node.name not in DROPPED:
                yield self._event(node.start, stop, "item" if node.name in WORDS else "empty")
            index = last + 1

    def _event(self, start: int, end: int, kind: Kind) -> Event:
        return Event(start, end, self.text[start:end], kind)

    def _fields(self, nodes: Sequence[Node]) -> tuple[dict[int, int], dict[int, int]]:
        """For each run that begins a field: the run that ends it, and the one before its result."""
        ends, middles = dict[int, int](), dict[int, int]()
        opened: list[int] = []
        for index, node in enumerate(nodes):
            for child in node.children if node.name == "r" else ():
                tag = self.text[child.start : child.inner]
                found = FIELD.search(tag) if child.name == "fldChar" else None
                if found and found[1] == "begin":
                    opened.append(index)
                elif found and opened and found[1] == "separate":
                    middles.setdefault(opened[-1], index)
                elif found and opened:
                    ends[opened.pop()] = index
        return ends, middles

    def _run(self, run: Node) -> Iterator[Event]:
        """The parts of a run: text of one format, and other things, each as a run of its own."""
        shown = next((each for each in run.children if each.name == "rPr" and each.children), None)
        layout = "" if shown is None else self.text[shown.start : shown.end]
        format_ = EMPTY.sub("", UNSEEN.sub("", layout))
        children = [child for child in run.children if child.name not in DROPPED]
        for child in children:
            raw = self.text[child.start : child.end]
            if child.name in ("t", "noBreakHyphen"):
                text = self.text[child.inner : child.inner_end] if child.name == "t" else "\u2011"
                yield Event(run.start, run.end, unescape(text), format=format_)
                continue
            if len(children) == 1:
                raw = self.text[run.start : run.end]
            else:
                raw = f"{self.text[run.start : run.inner]}{layout}{raw}</{self.prefix}r>"
            kind: Kind = "item" if child.name in WORDS else "empty"
            yield Event(run.start, run.end, raw, kind, is_break=child.name in BREAKS)

    def _write(self, base: str, lead: str, tail: str, translation: Marked) -> str:
        """What stands in the file. base: the format of most of the text."""
        parts, position, formats = [self._written(lead, base)], 0, [base]
        after_break = False
        for mark in (*translation.marks, Mark(len(translation.text), "", "empty")):
            text = translation.text[position : mark.position]
            parts.append(self._written(text.removeprefix(" " * after_break), formats[-1]))
            position = mark.position
            start, end = f"<{self.prefix}r>", f"</{self.prefix}r>"
            if mark.written == end:
                formats.pop()
            elif mark.written.startswith(start) and not mark.written.endswith(end):
                formats.append(mark.written.removeprefix(start))
            else:
                parts.append(mark.written)
            after_break = bool(re.search(rf"<{self.prefix}(?:{'|'.join(BREAKS)})\b", mark.written))
        return "".join([*parts, self._written(tail, base)])

    def _written(self, text: str, layout: str) -> str:
        """A run."""
        prefix = self.prefix
        content = f'<{prefix}t xml:space="preserve">{escape(text)}</{prefix}t>'
        return f"<{prefix}r>{layout}{content}</{prefix}r>" if text else ""


def _is_around(events: Sequence[Event]) -> bool:
    """Whether the first event, at the start or the end of a paragraph, is no part of its text."""
    is_alone = len(events) < 2 or events[0].start != events[1].start
    return events[0].kind == "empty" and is_alone
