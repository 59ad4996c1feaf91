"""Word documents (.docx): zip archives of XML. Each paragraph is a text."""

import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from html import unescape
from itertools import dropwhile
from xml.parsers.expat import ExpatError
from xml.sax.saxutils import escape

from nmt.config.parts import FORMATS
from nmt.errors import DataError, FormatError
from nmt.extras.documents.document import Content, Segment, TextDocument, line_at, stripped
from nmt.extras.documents.markup import Kind, Piece, Tag, elements, marked_of
from nmt.texts.items import STANDING
from nmt.texts.marked import Mark, Marked

MEMBER = re.compile(r"word/(?:document|header|footer|footnotes|endnotes|comments)\d*\.xml")
MAX_UNPACKED = 1 << 28  # bytes of all members together, a hundred times a long book
MAX_XML = 1 << 26  # bytes of those with text
MAX_LAYOUT = 1 << 18  # characters of the format of a run, for all its parts
MAX_CODE = 1 << 12  # characters of a field before its address
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, LookupError, RuntimeError, ValueError)
# Elements around runs, by which they become links, new, tagged and so on.
AROUND = {
    f"w:{name}"
    for name in ("hyperlink", "ins", "moveTo", "sdt", "smartTag", "customXml", "dir", "bdo")
}
DROPPED = {f"w:{name}" for name in ("lastRenderedPageBreak", "pPr", "proofErr", "rPr")}
BREAKS = ("w:br", "w:cr", "w:ptab", "w:tab")
# The format of raised and lowered signs.
RAISED = re.compile(r"""<w:vertAlign\b[^>]*["']su[bp]""")
# What stands for a word, belongs to the word before it, or ends a line; others stand between words.
KINDS: dict[str, Kind] = {
    **dict.fromkeys(("w:fldSimple", "m:oMath", "w:object", "w:ruby"), "item"),
    **dict.fromkeys(("w:footnoteReference", "w:endnoteReference"), "note"),
    **dict.fromkeys(BREAKS, "break"),
}
FIELD = re.compile(r"""<w:fldChar\b[^>]*fldCharType=["'](begin|end|separate)""")
# In a format, without effect: the language, and elements that are empty without it.
UNSEEN = re.compile(r"<w:(?:lang|noProof)\b[^>]*/>|<(w:\w+)></\1>")
START, END = "<w:r>", "</w:r>"
# In a run; the text of a CDATA section is text.
NO_TEXT = re.compile(r"<!\[CDATA\[(.*?)\]\]>|<!--.*?-->|<[^>]*>", re.DOTALL)


class DocxDocument(TextDocument):
    """A Word document. Raises: DataError: it is damaged, or no .docx."""

    unit = "paragraph"

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._members: dict[str, Content] = {}
        found: list[Segment] = []
        start = 0
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                texts = [each for each in archive.infolist() if MEMBER.fullmatch(each.filename)]
                unpacked = sum(each.file_size for each in archive.infolist())
                if unpacked > MAX_UNPACKED or any(each.file_size > MAX_XML for each in texts):
                    raise DataError(f"{name}: would unpack to too many bytes; divide it")
                if len({*archive.namelist()}) < len(archive.namelist()):
                    raise DataError(f"{name}: has a member twice; save it again")
                if (damaged := archive.testzip()) is not None:
                    raise zipfile.BadZipFile(damaged)
                for info in texts:
                    place = f"{name}, {info.filename}"
                    content = Content.of_bytes(archive.read(info), place, FORMATS["docx"])
                    self._members[info.filename] = content
                    found += (
                        replace(each, start=start + each.start, end=start + each.end)
                        for each in _find(content.text)
                    )
                    start += len(content.text) + 1
        except DAMAGE as error:
            raise DataError(
                f"{name}: damaged, or no .docx ({error}); save it as .docx again"
            ) from None
        except (ExpatError, FormatError) as error:
            raise DataError(f"{place}: {error}; save it as .docx again") from None
        if not self._members:
            raise DataError(f"{name}: no .docx (it has no word/document.xml)")
        # No XML has this character.
        text = "\0".join(each.raw for each in self._members.values())
        super().__init__(name, Content(text, has_returns=True), found)

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
                    content = member.mark + member.encode(texts[info.filename])
                output.writestr(info, content)
        yield stream.getvalue()


def _find(text: str) -> Iterator[Segment]:
    """The paragraphs of a member, each after those inside it."""
    if "<!DOCTYPE" in text:
        raise FormatError("has a DOCTYPE")
    for element in elements(text):
        if element.parent is None and not element.name.startswith("w:"):
            raise FormatError(f"has {element.name} where Word writes w:{element.local}")
        if element.name == "w:p":
            yield from _segments(text, element)


def _segments(text: str, paragraph: Tag) -> Iterator[Segment]:
    """The text of a paragraph, if it has words."""
    # What stands before the words, such as the number of a footnote, stays.
    pieces = [
        *dropwhile(
            lambda each: each.kind in STANDING and not each.written,
            _pieces(text, paragraph.children),
        )
    ]
    sizes = Counter[str]()
    for each in pieces:
        sizes[each.name] += 0 if each.kind else len(_decoded(text[each.start : each.end]))
    base = max(sizes, key=sizes.__getitem__, default="")
    pieces = [*_with_formats(pieces, base)]
    content, start, end = marked_of(text, pieces, _decoded, keeps_space=True, keeps_ends=True)
    if any(map(str.isalpha, content.text)):
        lead, content, tail = stripped(content)
        yield Segment(start, end, content, partial(_write, base, lead, tail))


def _pieces(text: str, nodes: Iterable[Tag]) -> list[Piece]:
    """The parts of a paragraph. The name of a text is its format."""
    pieces: list[Piece] = []
    fields: list[int] = []  # where those begin that have no end yet
    for node in nodes:
        start, end = node.start, node.outer_end
        if node.name == "w:r":
            found = FIELD.search(text, start, end)
            if found and found[1] == "begin":
                fields.append(len(pieces))
            pieces += _run(text, node)
            if found and fields and found[1] != "begin":
                _divide(text, pieces, fields, is_end=found[1] == "end")
        elif node.name in AROUND and text.find("</w:t>", start, end) >= 0:
            inner = next((each for each in node.children if each.name == "w:sdtContent"), node)
            pieces.append(Piece(start, inner.end, "open", node.name))
            pieces += _pieces(text, inner.children)
            pieces.append(Piece(inner.inner_end, end, "close", node.name))
        elif node.name not in DROPPED:
            pieces.append(Piece(start, end, KINDS.get(node.name, "empty")))
    return pieces


def _divide(text: str, pieces: list[Piece], fields: list[int], *, is_end: bool) -> None:
    """A field is one mark, or, if it is a link, a pair of marks around its text."""
    index = fields[-1]
    field = Piece(pieces[index].start, pieces[-1].end, "item", "field")
    if is_end:
        fields.pop()
    if is_end and pieces[index].kind == "open":
        pieces[-1] = pieces[-1]._replace(kind="close", name="field")
    elif is_end:
        pieces[index:] = [field]
    elif text.find("HYPERLINK", field.start, min(field.start + MAX_CODE, field.end)) >= 0:
        pieces[index:] = [field._replace(kind="open")]


def _run(text: str, run: Tag) -> Iterator[Piece]:
    """The parts of a run: text of one format, and other things, each as a run of its own."""
    shown = next((each for each in run.children if each.name == "w:rPr" and each.children), None)
    layout = "" if shown is None else text[shown.start : shown.outer_end]
    if (len(layout) + run.end - run.start) * len(run.children) > MAX_LAYOUT:
        raise FormatError(f"line {line_at(text, run.start)}: a run has too many parts; divide it")
    format_ = UNSEEN.sub("", UNSEEN.sub("", layout))
    children = [child for child in run.children if child.name not in DROPPED]
    start = run.start
    for child in children:
        end = run.outer_end if child is children[-1] else child.outer_end
        words = text[child.end : child.inner_end]
        is_note = RAISED.search(layout) and not any(map(str.isalpha, unescape(words)))
        if child.name == "w:t" and not is_note:
            yield Piece(start, end, name=format_)
        else:
            raw = text[child.start : child.outer_end]
            raw = f"{text[run.start : run.end]}{layout}{raw}{END}" if len(children) > 1 else ""
            kind = KINDS.get(child.name, "empty")
            kind = "note" if is_note and kind != "break" else kind
            yield Piece(start, end, kind, "br" if child.name in BREAKS else "", written=raw)
        start = end


def _decoded(run: str) -> str:
    return unescape(NO_TEXT.sub(lambda found: escape(found[1] or ""), run))


def _with_formats(pieces: Iterable[Piece], base: str) -> Iterator[Piece]:
    """Pieces, and a pair of marks around texts that have another format than the base."""
    current, place = base, 0
    for piece in pieces:
        place = piece.start
        layout = piece.name if piece.kind is None else base
        if piece.kind not in (None, "open", "close"):
            layout = current
        if current not in (base, layout):
            yield Piece(place, place, "close", "w:r", written=END)
        if layout not in (base, current):
            yield Piece(place, place, "open", "w:r", written=START + layout)
        yield piece
        current, place = layout, piece.end
    if current != base:
        yield Piece(place, place, "close", "w:r", written=END)


def _write(base: str, lead: str, tail: str, translation: Marked) -> str:
    """What stands in the file. base: the format of most of the text."""
    parts, position, formats, is_after_break = [_written(lead, base)], 0, [base], False
    for mark in (*translation.marks, Mark(len(translation.text), "", "empty")):
        text = translation.text[position : mark.position]
        parts.append(_written(text.removeprefix(" " * is_after_break), formats[-1]))
        position = mark.position
        if mark.written == END:
            formats.pop()
        elif mark.written.startswith(START) and not mark.written.endswith(END):
            formats.append(mark.written.removeprefix(START))
        else:
            parts.append(mark.written)
        is_after_break = any(f"<{name}" in mark.written for name in BREAKS)
    return "".join([*parts, _written(tail, base)])


def _written(text: str, layout: str) -> str:
    return f'{START}{layout}<w:t xml:space="preserve">{escape(text)}</w:t>{END}' if text else ""
