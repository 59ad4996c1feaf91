"""HTML: whole pages and parts of them, also templates of Jinja, Django, Go, ERB and PHP."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape, unescape
from typing import Literal

from nmt.extras.documents.document import Segment, joined
from nmt.extras.texts.marked import Mark, Marked

Kind = Literal["open", "close", "empty", "item"]

# Each search for an end has a limit: hostile pages take no longer than others.
START = re.compile(r"<!--|<!\[CDATA\[|<![A-Za-z]|\{\{|\{%|\{#|<%|<\?|</?[A-Za-z]")
ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "{{": "}}", "{%": "%}", "{#": "#}", "<%": "%>"}
ENDS["<?"] = "?>"
TAG = re.compile(
    r"<(/?[A-Za-z][^\s/<>]*)((?:\{\{[^{}]{0,500}\}\}|\{%[^%]{0,500}%\}|<[%?].{0,500}?[%?]>"
    r"""|[^<>"'{]++|\{|"[^"<]*+"|'[^'<]*+'|"[^"]{0,5000}"|'[^']{0,5000}'){0,300}+)>"""
)
ATTRIBUTE = re.compile(r"""\s([\w:.-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>]+)""")
INLINE = re.compile(
    "a|abbr|acronym|b|bdi|bdo|big|br|cite|code|data|del|dfn|em|font|i|img|input|ins|kbd|mark|math|"
    "nobr|output|q|rp|rt|ruby|s|samp|small|span|strike|strong|sub|sup|svg|time|tt|u|var|wbr"
).fullmatch
VOID = {"br", "img", "input", "wbr"}  # those of INLINE without an end
KEPT = {"code", "kbd", "math", "samp", "svg", "tt", "var"}  # stay, as words of the text around
SKIPPED = {"pre", "script", "style", "template", "textarea", "xmp"}
RAW = SKIPPED - {"pre", "template"}  # have no tags inside
READ = {"alt", "aria-label", "aria-description", "label", "placeholder", "title"}  # attributes
READ_META = re.compile(r"(?:\w+:)?(?:description|title|site_name)")
# Templates with a condition, a loop or a remark are no words.
BRANCH = re.compile(
    r"\{\{[-~]?\s*(?:[#/^!>]|(?:else|end|if|range|with|block|define)\b)|\{#|<%(?!=)|<\?(?!=)"
)
QUOTES = {'"': "&quot;", "'": "&#39;"}
SPACE = re.compile(r"[ \t\n\f\r]+")


@dataclass(frozen=True)
class Piece:
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


@dataclass(frozen=True)
class Token:
    """Markup in a page: a tag (`name` begins with `/` if it ends an element), or something else."""

    start: int
    end: int
    name: str = ""
    attributes: str = ""

    @property
    def values(self) -> dict[str, str]:
        """The attributes, in lower case."""
        found = ATTRIBUTE.finditer(self.attributes)
        return {each[1].lower(): each[2].strip("\"'").lower() for each in found}

    @property
    def stays(self) -> bool:
        """Whether the author wants no translation of the element."""
        if "translate" not in self.attributes.lower():  # most have no such thing
            return False
        values = self.values
        return values.get("translate") == "no" or "notranslate" in values.get("class", "")


def find(text: str) -> Iterator[Segment]:
    """The texts between the borders of blocks, and the attributes that people read."""
    tokens = [*_tokens(text)]
    ends = _ends(tokens)
    loops = set(re.findall(r"\{%-?\s*end(\w+)", text))
    pieces: list[Piece] = []
    index, position = 0, 0
    while index < len(tokens):
        token, last, stop = tokens[index], index, tokens[index].end
        name = token.name.lstrip("/")
        pieces.append(Piece(position, token.start))
        if token.name and token.name == name:
            if name not in VOID and (token.stays or name in KEPT | SKIPPED):
                last = ends.get(index, index)
                while index not in ends and _is_inline(tokens, last + 1):
                    last += 1  # without an end tag, up to the next border
                borders = [*tokens[last + 1 : last + 2], Token(len(text), 0)]
                stop = tokens[last].end if index in ends else borders[0].start
            elif not token.stays:
                yield from _read_attributes(text, token)
        position = stop
        kind = _kind(token, text[token.start : token.end], loops)
        if kind is None:
            yield from _segments(text, pieces)
            pieces = []
        else:
            kind = "item" if kind == "open" and stop > token.end else kind
            pieces.append(Piece(token.start, position, kind, name))
        index = last + 1
    yield from _segments(text, [*pieces, Piece(position, len(text))])


def _tokens(text: str) -> Iterator[Token]:
    position, missing = 0, set[str]()
    while start := START.search(text, position):
        position = start.end()
        if end := ENDS.get(start[0]):
            found = -1 if end in missing else text.find(end, position)
            if found < 0:
                missing.add(end)
            else:
                position = found + len(end)
                yield Token(start.start(), position)
        elif start[0].startswith("<!"):
            position = text.find(">", position) + 1 or len(text)
            yield Token(start.start(), position)
        elif tag := TAG.match(text, start.start()):
            position, name = tag.end(), tag[1].lower()
            yield Token(*tag.span(), name, tag[2])
            if name in RAW:
                end_tag = re.compile(f"</{name}", re.IGNORECASE).search(text, position)
                position = end_tag.start() if end_tag else len(text)


def _ends(tokens: Sequence[Token]) -> dict[int, int]:
    """For each start tag, the index of its end tag, where it has one."""
    ends: dict[int, int] = {}
    opened: dict[str, list[int]] = {}
    for index, token in enumerate(tokens):
        if not token.name.startswith("/"):
            opened.setdefault(token.name, []).append(index)
        elif opened.get(token.name[1:]):
            ends[opened[token.name[1:]].pop()] = index
    return ends


def _is_inline(tokens: Sequence[Token], index: int) -> bool:
    return index < len(tokens) and INLINE(tokens[index].name.lstrip("/")) is not None


def _kind(token: Token, raw: str, loops: set[str]) -> Kind | None:
    """The kind of markup; None for the border of a text."""
    name = token.name.lstrip("/")
    if raw.startswith("<!--") or name in VOID or name == "svg":
        return "empty"
    if name in KEPT or (raw[:2] in ("{{", "{%", "<%", "<?") and not _is_branch(raw, loops)):
        return "item"
    if INLINE(name):
        return "open" if name == token.name else "close"
    return None


def _is_branch(template: str, loops: set[str]) -> bool:
    """Whether a template has a condition or a loop, or ends one."""
    if BRANCH.match(template):
        return True
    name = re.match(r"\{%-?\s*(\w+)", template)
    branches = {"else", "elif", "elsif", "elseif", "empty", "plural", *loops}
    return name is not None and name[1].removeprefix("end") in branches


def _read_attributes(text: str, token: Token) -> Iterator[Segment]:
    """The attributes of a tag that people read."""
    values = token.values
    offset = token.end - 1 - len(token.attributes)
    is_button = token.name == "input" and values.get("type") in ("button", "reset", "submit")
    names = READ | ({"value"} if is_button else set())
    if token.name == "meta" and READ_META.fullmatch(
        values.get("name") or values.get("property") or ""
    ):
        names = {"content"}
    for found in ATTRIBUTE.finditer(token.attributes):
        if found[1].lower() not in names:
            continue
        n_quotes = found[2][0] in "\"'"
        start, end = offset + found.start(2) + n_quotes, offset + found.end(2) - n_quotes
        pieces, position = list[Piece](), start
        for each in _tokens(text[start:end]):
            if not each.name:
                pieces.append(Piece(position, start + each.start))
                position = start + each.end
                pieces.append(Piece(start + each.start, position, "item"))
        if result := marked_of(text, [*pieces, Piece(position, end)]):
            value, first, last = result
            quote = found[2][0] if n_quotes else '"'
            before = f"{text[offset + found.start() : start - n_quotes]}{quote}{text[start:first]}"
            write = partial(_write, before, f"{text[last:end]}{quote}", quote)
            yield Segment(offset + found.start(), offset + found.end(), value, write)


def _write(before: str, after: str, quote: str, translation: Marked) -> str:
    """What stands in the file. quote: that of an attribute."""

    def escaped(text: str) -> str:
        text = escape(text, quote=False)
        return text.replace(quote, QUOTES[quote]) if quote else text

    return f"{before}{joined(translation, escaped)}{after}"


def _segments(text: str, pieces: Sequence[Piece]) -> Iterator[Segment]:
    """The text of a block, if it has words."""
    if result := marked_of(text, pieces):
        marked, start, end = result
        yield Segment(start, end, marked, partial(_write, "", "", ""))


def marked_of(
    text: str, pieces: Sequence[Piece], decode: Callable[[str], str] = unescape
) -> tuple[Marked, int, int] | None:
    """A text without its markup, and where it begins and ends; None without words.

    White space becomes one space each, and markup around the text is left off.
    """
    pieces = _trimmed(text, _paired(pieces))
    marked, marks = "", list[Mark]()
    is_spaced = True  # whether a further space would be too many
    before: Kind | None = None
    for piece in pieces:
        raw = text[piece.start : piece.end]
        if piece.kind is None:
            part = SPACE.sub(" ", raw)
            if is_spaced and part[0] == " " and before == "empty":  # has spaces on both sides
                marks[-1] = replace(marks[-1], written=f"{marks[-1].written} ")
            marked += decode(part.removeprefix(" ") if is_spaced else part)
            is_spaced = part[-1] == " "
        else:
            marks.append(Mark(len(marked), piece.written or raw, piece.kind))
            if piece.name == "br" and not is_spaced:
                marked += " "
            is_spaced = piece.kind != "item" and (is_spaced or piece.name == "br")
        before = None if piece.name == "br" else piece.kind
    if not any(map(str.isalpha, marked)):
        return None
    start, end = pieces[0].start, pieces[-1].end
    raw = text[start:end]
    start, end = end - len(raw.lstrip()), start + len(raw.rstrip())
    marked = marked if pieces[-1].kind else marked.rstrip()
    return Marked(marked, tuple(marks)), start, end


def _trimmed(text: str, pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Without markup and white space around it."""
    first, last = 0, len(pieces) - 1
    while first <= last:
        if _is_blank(text, pieces[first]):
            first += 1
        elif _is_blank(text, pieces[last]):
            last -= 1
        elif first < last and pieces[first].start == pieces[last].partner:
            first, last = first + 1, last - 1
        else:
            break
    return pieces[first : last + 1]


def _is_blank(text: str, piece: Piece) -> bool:
    return piece.kind == "empty" or (
        piece.kind is None and not text[piece.start : piece.end].strip()
    )


def _paired(pieces: Iterable[Piece]) -> list[Piece]:
    """Pieces with their partners. Half a pair becomes empty, as does a pair around nothing."""
    paired, opened = list[Piece](), list[int]()
    names = Counter[str]()  # of the opened tags
    for piece in pieces:
        if piece.start == piece.end:
            continue
        if piece.kind == "open":
            opened.append(len(paired))
            names[piece.name] += 1
        if piece.kind != "close":
            paired.append(piece)
            continue
        if not names[piece.name]:
            paired.append(replace(piece, kind="empty"))
            continue
        index = opened.pop()
        while paired[index].name != piece.name:
            names[paired[index].name] -= 1
            index = opened.pop()
        names[piece.name] -= 1
        start = paired[index].start
        if index == len(paired) - 1:
            paired[index] = Piece(start, piece.end, "empty")
        else:
            paired[index] = replace(paired[index], partner=piece.start)
            paired.append(replace(piece, partner=start))
    return [
        replace(piece, kind="empty") if piece.kind == "open" and piece.partner is None else piece
        for piece in paired
    ]
