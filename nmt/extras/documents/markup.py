"""Tags of HTML and XML, and the texts between them."""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import unescape
from typing import Literal, NamedTuple
from xml.parsers import expat

from nmt.errors import FormatError
from nmt.extras.documents.document import Edit
from nmt.texts.items import BREAK, NOTE, STANDING, VOID
from nmt.texts.marked import Mark, Marked

Kind = Literal["open", "close", "empty", "break", "note", "item"]
KindOf = Callable[["Tag"], tuple[Kind | None, str, bool]]  # as `blocks` asks for it

# Each search for an end has a limit: hostile files take no longer than others.
HTML = re.compile(r"<!--|<!\[CDATA\[|<\?|<[!/]?[A-Za-z]|\{\{|\{%|\{#|<%")
XML = re.compile(
    r"<!--|<!\[CDATA\[|<\?|<!DOCTYPE(?=[^<>]{0,500}\[)|<![A-Za-z]|</?[^\W\d]"
    r"|&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z]"
)
ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>", "<!DOCTYPE": "]>", "&": ";"}
ENDS |= {"{{": "}}", "{%": "%}", "{#": "#}", "<%": "%>"}  # of templates
TAG = re.compile(
    r"<(/?[^\W\d][^\s/<>]*+)((?:\{\{[^{}]{0,500}\}\}|\{%[^%]{0,500}%\}|<[%?].{0,500}?[%?]>"
    r"""|[^<>"'{]++|\{|"[^"<]*+"|'[^'<]*+'|"[^"]{0,5000}"|'[^']{0,5000}'){0,300}+)>"""
)
ATTRIBUTE = re.compile(r"""\s([\w:.-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>]+)""")
SEEN = {"br", "img", "input", "svg"}  # stand for themselves: no word goes on after them
READINGS = {"rp", "rt", "rtc"}  # of the characters before them
RAW = {"script", "style", "textarea", "xmp"}  # those without tags inside
WHITE = " \t\n\f\r"
SPACE = re.compile(f"[{WHITE}]+")
SECTION = re.compile(r"\s*<!\[CDATA\[((?:(?!\]\]>).)*)\]\]>\s*", re.DOTALL)
SECTIONS = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
MAX_DEPTH = 1000
MAX_RUBY = 1000  # pieces in an element with readings
MAX_PIECES = 200_000  # of a text


@dataclass(eq=False)
class Tag:
    """Markup in a file: a tag (`name` begins with `/` if it ends an element), or something else.

    In XML, a start tag also knows its element: where its content and the whole end, its parent and
    its children.
    """

    start: int
    end: int
    name: str = ""
    attributes: str = ""
    inner_end: int = 0
    outer_end: int = 0
    is_entity: bool = False
    parent: "Tag | None" = None
    children: list["Tag"] = field(default_factory=list)

    @property
    def local(self) -> str:
        """The name without prefix."""
        return self.name.rpartition(":")[2]

    @cached_property
    def values(self) -> dict[str, str]:
        """The attributes."""
        return {
            each[1]: unescape(each[2].strip("\"'")) for each in ATTRIBUTE.finditer(self.attributes)
        }

    def edit(self, name: str, value: str) -> tuple[Edit, str]:
        """What sets an attribute, which may be missing; and what it was."""
        offset = self.start + 1 + len(self.name)
        for each in ATTRIBUTE.finditer(self.attributes):
            if each[1].lower() == name.lower():
                start, end = (offset + place for place in each.span(2))
                return (start, end, f'"{value}"'), unescape(each[2].strip("\"'"))
        return (offset, offset, f' {name}="{value}"'), ""

    def inherits(self, name: str, value: str) -> bool:
        """Whether the nearest attribute `name`, its own or of an element around it, has a value."""
        tag: Tag | None = self
        while tag is not None and name not in tag.values:
            tag = tag.parent
        return tag is not None and tag.values[name] == value


def tags(
    text: str, opening: re.Pattern[str] = XML, position: int = 0, stop: int = sys.maxsize
) -> Iterator[Tag]:
    """All markup from a position on. opening: what begins it."""
    missing = set[str]()
    while start := opening.search(text, position, stop):
        position = start.end()
        mark = start[0] if start[0][0] != "&" else "&"
        if tag := TAG.match(text, start.start(), stop):
            position = end = tag.end()
            name = tag[1] if opening is XML else tag[1].lower()
            if opening is HTML and name in RAW:
                end_tag = re.compile(f"</{name}", re.IGNORECASE).search(text, position, stop)
                position = end_tag.start() if end_tag else stop
                end = end if end_tag else min(stop, len(text))
            yield Tag(tag.start(), end, name, tag[2])
        elif mark := ENDS.get(mark, ">" if mark[1:2] == "!" else ""):
            found = -1 if mark in missing else text.find(mark, position, stop)
            if found < 0:
                missing.add(mark)
            else:
                position = found + len(mark)
                yield Tag(start.start(), position, is_entity=mark == ";")


def elements(text: str) -> Iterator[Tag]:
    """All elements of XML, at their ends.

    Raises:
        ExpatError: the text is not well-formed.
        FormatError: it defines entities that hold others, or files, or is nested too deeply.
    """
    parser = expat.ParserCreate()

    def refuse(name: str, _parameter: bool, value: str | None, *_: str | None) -> None:
        if value is None or re.search(r"[&%]\w", value):
            raise FormatError(
                f"line {parser.CurrentLineNumber}: entity {name} stands for a file or other "
                "entities"
            )

    parser.EntityDeclHandler = refuse
    parser.DefaultHandler = lambda _: None  # it lets entities stand
    parser.Parse(text, True)
    opened: list[Tag] = []
    for tag in tags(text):
        if not tag.name:
            continue
        tag.inner_end, tag.outer_end = tag.end, tag.end
        if tag.name[0] != "/":
            tag.parent = opened[-1] if opened else None
            if tag.parent is not None:
                tag.parent.children.append(tag)
            opened.append(tag)
        elif opened:
            opened[-1].inner_end, opened[-1].outer_end = tag.start, tag.end
        if opened and (tag.name[0] == "/" or tag.attributes.endswith("/")):
            yield opened.pop()
        if len(opened) > MAX_DEPTH:
            raise FormatError("line 1: is nested too deeply")


class Piece(NamedTuple):
    """A part of a text: some of it, or markup.

    Attributes:
        name: of a tag. partner: where the other tag of a pair begins.
        written: of markup, if it will be written in another way.
    """

    start: int
    end: int
    kind: Kind | None = None
    name: str = ""
    partner: int | None = None
    written: str = ""


def blocks(
    found: Sequence[Tag], start: int, end: int, kind_of: KindOf
) -> Iterator[tuple[Tag | None, list[Piece]]]:
    """Each of the tags between two places, and the text that ends there; at last None and the rest.

    kind_of: the kind of a tag, or None for the border of a text; the name by which it finds its
    partner; whether it stands for the whole element.
    """
    ends = _ends(found)
    pieces: list[Piece] = []
    index, position = 0, start
    while index < len(found):
        tag = found[index]
        kind, name, is_whole = kind_of(tag)
        pieces.append(Piece(position, tag.start))
        position = tag.end
        if is_whole and index in ends:
            index = ends[index]
            position = found[index].end
        elif is_whole:  # without an end
            position = found[index + 1].start if index + 1 < len(found) else end
        if kind:
            yield tag, []
            pieces.append(Piece(tag.start, position, kind, name))
            if len(pieces) > MAX_PIECES:
                raise FormatError(f"character {tag.start:,}: a text has too many tags; divide it")
        else:
            yield tag, pieces
            pieces = []
        index += 1
    yield None, [*pieces, Piece(position, end)]


def _ends(found: Sequence[Tag]) -> dict[int, int]:
    """For each start tag, the index of its end tag, where it has one."""
    ends: dict[int, int] = {}
    opened: dict[str, list[int]] = {}
    for index, tag in enumerate(found):
        if tag.attributes.endswith("/"):
            ends[index] = index
        elif not tag.name.startswith("/"):
            opened.setdefault(tag.name, []).append(index)
        elif opened.get(tag.name[1:]):
            ends[opened[tag.name[1:]].pop()] = index
    return ends


def marked_of(
    text: str,
    pieces: Iterable[Piece],
    decode: Callable[[str], str] = unescape,
    *,
    keeps_space: bool = False,
    keeps_ends: bool = False,
) -> tuple[Marked, int, int]:
    """A text without its markup, and where it begins and ends.

    decode: the characters of a piece of text. keeps_space: otherwise, white space becomes one space
    each. keeps_ends: otherwise, markup around the text is left off.
    """
    pieces = paired(text, pieces) if keeps_ends else _trimmed(text, paired(text, pieces))
    if not pieces:
        return Marked(""), 0, 0
    marked, marks = "", list[Mark]()
    is_spaced = True  # whether a further space would be too many
    before: Kind | None = None
    for piece in pieces:
        raw = text[piece.start : piece.end]
        if piece.kind is None:
            part = raw if keeps_space else SPACE.sub(" ", raw)
            if is_spaced and part[0] == " " and not keeps_space:
                if before in ("empty", "note"):  # has spaces on both sides
                    marks[-1] = replace(marks[-1], written=f"{marks[-1].written} ")
                part = part[1:]
            marked += decode(part)
            is_spaced, before = marked[-1:] == " ", None
        else:
            marks.append(Mark(len(marked), piece.written or raw, piece.kind))
            is_break = piece.name in SEEN and not is_spaced and piece is not pieces[-1]
            marked += " " if is_break else ""
            is_spaced = piece.kind != "item" and (is_spaced or is_break)
            before = None if piece.name == "br" or is_break else piece.kind
    start, end = pieces[0].start, pieces[-1].end
    if not keeps_space:
        raw = text[start:end]
        marked = marked.removesuffix(" ") if raw[-1] in WHITE else marked
        start, end = end - len(raw.lstrip(WHITE)), start + len(raw.rstrip(WHITE))
    return Marked(marked, tuple(marks)), start, end


def _trimmed(text: str, pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Without markup and white space around it."""
    first, last = 0, len(pieces) - 1
    blank = [
        each.kind in STANDING or (not each.kind and not text[each.start : each.end].strip(WHITE))
        for each in pieces
    ]
    while first <= last:
        is_pair = pieces[first].kind == "open" and pieces[first].start == pieces[last].partner
        ends = is_pair or (blank[last] and pieces[last].kind != "note")  # of the last word
        if not (is_pair or blank[first] or ends):
            break
        first, last = first + (is_pair or blank[first]), last - ends
    return pieces[first : last + 1]


def paired(text: str, pieces: Iterable[Piece]) -> list[Piece]:
    """Pieces with their partners. Half a pair becomes empty, as does a pair around nothing; a pair
    around the number of a note becomes a note.
    """
    paired, opened = list[Piece](), list[int]()
    names = Counter[str]()  # of the opened tags
    for each in pieces:
        piece = each
        if piece.start == piece.end and not piece.written:
            continue
        if piece.kind == "open":
            opened.append(len(paired))
            names[piece.name] += 1
        elif piece.kind == "close" and not names[piece.name]:
            piece = piece._replace(kind="empty")
        elif piece.kind == "close":
            index = -1
            while index < 0 or paired[index].name != piece.name:
                index = opened.pop()
                names[paired[index].name] -= 1
            start = paired[index].start
            is_note = NOTE.fullmatch(text, start, piece.end)
            if is_note or all(paired[i].kind in STANDING for i in range(index + 1, len(paired))):
                kind = "note" if is_note else _kind_around(paired[index + 1 :])
                paired[index:] = [Piece(start, piece.end, kind)]
                continue
            if piece.name == "ruby" and len(paired) < index + MAX_RUBY:
                piece = _with_readings(text, paired, index, piece)
            paired[index] = paired[index]._replace(partner=piece.start)
            piece = piece._replace(partner=start)
        paired.append(piece)
    return [
        piece._replace(kind="empty") if piece.kind == "open" and piece.partner is None else piece
        for piece in paired
    ]


def _kind_around(pieces: Sequence[Piece]) -> Kind:
    """The kind of an element without words."""
    kinds = {piece.kind for piece in pieces}
    return "break" if "break" in kinds else "note" if kinds == {"note"} else "empty"


def _with_readings(text: str, pieces: list[Piece], first: int, end: Piece) -> Piece:
    """The end of an element, with the readings of its characters, which are taken off."""
    readings = [each for each in pieces[first:] if each.name in READINGS]
    pieces[first:] = [each for each in pieces[first:] if each.name not in READINGS]
    return end._replace(written="".join(text[each.start : each.end] for each in (*readings, end)))


def body_of(text: str, element: Tag) -> tuple[int, int, bool]:
    """Where the content of an element of XML begins and ends, without white space around it; and
    whether it is all in one CDATA section, whose inside it is.
    """
    section = SECTION.fullmatch(text, element.end, element.inner_end)
    start, end = section.span(1) if section else (element.end, element.inner_end)
    content = text[start:end]
    start += len(content) - len(content.lstrip())
    return start, start + len(content.strip()), section is not None


def content_of(
    text: str,
    body: tuple[int, int, bool],
    kind_of: KindOf,
    decode: Callable[[str], str] = str,
    *,
    keeps_space: bool = False,
) -> Marked:
    """The content of an element, which stands where `body_of` says. If all of it is a section, it
    has tags of HTML; other sections are text.
    """
    start, end, is_section = body
    found = [
        tag
        for tag in tags(text, HTML if is_section else XML, start, end)
        if is_section or not text.startswith("<![CDATA[", tag.start)
    ]
    *_, (_, pieces) = blocks(found, start, end, kind_in_section if is_section else kind_of)

    def decoded(raw: str) -> str:
        return decode(raw if is_section else without_sections(raw))

    return marked_of(text, pieces, decoded, keeps_space=keeps_space, keeps_ends=True)[0]


def without_sections(raw: str) -> str:
    """A text of XML, without entities; its sections are text.

    Raises:
        FormatError: `tags` has not read all tags.
    """
    parts = SECTIONS.split(raw)  # each second one is a section
    if any("<" in part for part in parts[::2]):
        raise FormatError("line 1: a tag has too many attributes; leave some out")
    return "".join(part if i % 2 else unescape(part) for i, part in enumerate(parts))


def kind_in_section(tag: Tag) -> tuple[Kind | None, str, bool]:
    """The kind of a tag that opens or closes something, or stands between words or lines."""
    name = tag.name.lstrip("/")
    if BREAK.match(f"<{name}"):
        return "break", name, False
    if name in READINGS:
        return "empty", name, name == tag.name
    if not name or name in VOID or tag.attributes.endswith("/"):
        return "empty", name, False
    return "open" if name == tag.name else "close", name, False
