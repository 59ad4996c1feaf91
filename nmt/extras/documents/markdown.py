"""Markdown: CommonMark with tables and strikethrough, as READMEs and documentation use it."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from html import unescape
from itertools import accumulate, pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from nmt.errors import FormatError
from nmt.extras.documents.document import Segment, Skipped, line_at
from nmt.extras.documents.html import KEPT
from nmt.extras.documents.markup import READINGS, Kind, Piece, marked_of, paired
from nmt.lines import MAX_STREAMED_BYTES
from nmt.texts.items import BREAK, VOID
from nmt.texts.marked import Mark, Marked

FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\n(?:.*\n)*?\1[ \t]*(?:\n|\Z)")
# What other dialects have inside a text. `border`: boxes of tasks, footnotes and what follows them,
# kinds of notes, definitions; `empty`: remarks, attributes; `item`: numbers of footnotes, links of
# a wiki, templates, mathematics, names of emoji, addresses. The lengths have limits, so that no
# file takes long.
DIALECTS = re.compile(
    r"(?P<border>^(?:\[[ xX]\](?=\s)|\[\^[^\]\n]{1,99}\]:|\[[^\]\n]{1,99}\]:.*|\[![A-Za-z]+\].*"
    r"|:[ \t]+(?=\S)|\*\[[^\]\n]{1,99}\]:"
    r"|(?:!!!|\?\?\?|:::|===).*|import\s.{1,500}\sfrom\s+['\"].*"
    r"|export\s(?:const|default|function|let)\b.*"
    # Lines that have nothing but shortcodes: of Hugo, Zola, Jekyll and Handlebars.
    r"|[ \t]*(?:(?:\{\{(?:[<%#/>]|\s*\w+\()[^{}]{0,1000}\}\}|\{%[^{}]{0,1000}%\})[ \t]*){1,9}$))"
    r"|(?P<empty>\{/\*.{0,500}?\*/\}|\{[:#.][^{}\n]{0,500}\})"
    r"|(?P<item>\[\^[^\]\s]{1,99}\]|!?\[\[[^\[\]\n]{1,200}\]\]"
    r"|\{\{.{0,500}?\}\}|\{%.{0,500}?%\}|\$\$[^$]{1,2000}\$\$|(\$\$?)(?!\s)[^$\n]{1,500}(?<!\s)\4(?!\d)"
    r"|:[a-z][a-z\d_+-]{0,99}:|https?://[^\s<>()\[\]]*[^\s<>()\[\].,;:!?'\"*_~])",
    re.MULTILINE,
)
# Nothing in them is Markdown. The second part of one that ends what another one begins is "/".
SHORTCODE = re.compile(
    r"(?:\{\{[<%]|\{%-?)\s*+(?:(?P<end>/|end)\s*+)?(?P<name>\w++)[^{}]{0,1000}(?:[>%]\}\}|%\})"
)
SAME = re.compile(r"\[([^\[\]]+)\]\[\1\]")
HTML_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)")
ESCAPES = re.compile(r"\\([!-/:-@\[-`{-~])|&#?\w+;")
SPECIAL = re.compile(r"[\\`*\[\]<~]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")
# What begins another block at the start of a line, after the number of an item.
BLOCK = re.compile(
    r"\A(?:\d{1,9}(?=[.)](?:\s|$))|(?=#{1,6}(?:\s|$)|[-+*](?:\s|$)|[>|]|[-=]+$|```|~~~))"
)
MAX_ENCLOSED = 5000  # characters between two shortcodes of a pair
HARMLESS = r"[\[!(\"'*_]{0,3}`{0,2}[^\W\d_]"  # a word that begins no block


def find(text: str) -> Iterator[Segment | Skipped]:
    """Paragraphs, headings and the cells of tables."""
    text = _readable(text)
    parser = _Parser(text)
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    cells: dict[int, int] = {}  # where the last cell of a line ends, by where the line begins
    for block, token in pairwise(parser.blocks):
        if token.type != "inline" or token.map is None:
            continue
        first = token.map[0]
        is_cell = block.type in ("td_open", "th_open")
        last = first + token.content.count("\n") + 1
        rows = [*zip(lines[first:last], starts[first:last], strict=True)]
        places = _places(token.content, rows, cells if is_cell else None)
        if len(places) <= token.content.count("\n"):
            yield Skipped(
                starts[first],
                "a text could not be found in its line, because of tabs or such; translate it by "
                "hand",
            )
            continue
        for pieces in _blocks(token):
            marked, *span = marked_of(token.content, pieces, _decode)
            if not any(map(str.isalpha, marked.text)):
                continue
            (upper, start), (lower, end) = (
                _place(token.content, each, places, is_cell=is_cell) for each in span
            )
            write: Callable[[Marked], str] = parser.written
            if not block.markup.startswith("#"):
                shown = lines[first + upper : first + lower + 1]
                prefix = text[starts[first + lower] : places[lower][1]] if shown[1:] else ""
                width = max(map(len, shown)) - len(prefix) if shown[1:] else 0
                write = partial(parser.lines, prefix=prefix, width=width, is_cell=is_cell)
            yield Segment(start, end, marked, write)


def _places(
    content: str, rows: Sequence[tuple[str, int]], cells: dict[int, int] | None
) -> list[tuple[int, int]]:
    """Of each line of a text that was found: where it begins in the text, and in the file.

    Args:
        rows: the lines of the file with these lines, and where they begin.
        cells: of tables, where the last cell of a line ends, by the beginning of the line.
    """
    places = list[tuple[int, int]]()
    offset = 0
    for part, (line, start) in zip(content.split("\n"), rows, strict=True):
        if cells is None:
            column = line.rfind(part.strip())
        else:
            cell = part.strip().replace("|", r"\|")
            column = line.find(cell, cells.get(start, 0))
            cells[start] = column + len(cell)
        if column >= 0:
            places.append((offset + len(part) - len(part.lstrip()), start + column))
        offset += len(part) + 1
    return places


def _readable(text: str) -> str:
    """As the parser needs it, with as many characters. Raises: FormatError."""
    front = FRONT_MATTER.match(text)
    end = front.end() if front else 0
    # The parser replaces these by others.
    rest = text[end:].replace("\r", " ").replace("\0", "\ufffd")
    for paragraph in re.finditer(r"(?:.+\n?)+", rest):  # which would take the parser minutes
        if len(paragraph[0]) > MAX_STREAMED_BYTES:
            line = line_at(text, end + paragraph.start())
            raise FormatError(
                f"line {line}: a text is longer than {MAX_STREAMED_BYTES:,} characters; divide it"
            )
    return re.sub(".", " ", text[:end]) + rest


def _place(
    content: str, position: int, places: Sequence[tuple[int, int]], *, is_cell: bool
) -> tuple[int, int]:
    """The line of a character of a text, from 0, and its place in the file."""
    row = bisect_right(places, position, key=lambda place: place[0]) - 1
    start, place = places[row]
    n_bars = content.count("|", start, position) if is_cell else 0
    return row, place + position - start + n_bars


class _Parser:
    """Reads a file, and writes texts so that they are read as meant.

    Attributes:
        blocks: the tokens of the file. Those of markup in a text know their place, `meta["span"]`.
    """

    def __init__(self, source: str) -> None:
        self._markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        self._markdown.disable("text_join")
        for rule in self._markdown.inline.ruler.__rules__:
            rule.fn = partial(_recorded, rule.name, rule.fn)
        self._references: dict[str, Any] = {}
        self.blocks = self._markdown.parse(source, self._references)

    def written(self, text: Marked) -> str:
        """A text with its markup, and with backslashes where it would be read as markup."""
        marks: list[Mark] = []
        for mark in text.marks:  # stars around nothing would be read as stars
            if mark.kind == "close" and marks[-1:] == [replace(mark, kind="open")]:
                marks.pop()
            else:
                marks.append(mark)
        text = replace(text, marks=tuple(marks))
        for written in (text.written, text.escaped(_escape), _spaced(text)):
            [token] = self._markdown.parseInline(written, self._references)
            pieces = [piece for block in _blocks(token) for piece in paired(written, block)]
            found = [each.written or written[each.start : each.end] for each in pieces if each.kind]
            words = [_decode(written[each.start : each.end]) for each in pieces if not each.kind]
            is_found = _letters(found) == _letters(mark.written for mark in marks)
            # Code beside code is one.
            n_items = [sum(each.kind == "item" for each in group) for group in (pieces, marks)]
            if is_found and _letters(words) == _letters(text.text) and len({*n_items}) == 1:
                break
        return SAME.sub(r"[\1][]", written)

    def lines(self, text: Marked, *, prefix: str, width: int, is_cell: bool) -> str:
        """A paragraph, or a cell of a table. prefix: of its further lines. width: of lines, or 0 if
        it has only one.
        """
        written = self.written(text)
        written = written.replace("|", r"\|") if is_cell else written
        fitting = (
            rf"(.{{1,{width}}}|.+?)(?:(?<![ \t])[ \t]++(?={HARMLESS})|\Z)" if width else "(.+)"
        )
        lines = [
            line
            for part in written.split("\n")
            for line in re.findall(fitting, re.sub("(?<! )  +$", "  ", part.lstrip()))
        ]
        return f"\n{prefix}".join(BLOCK.sub(r"\g<0>\\", line, count=1) for line in lines)


def _escape(text: str) -> str:
    return SPECIAL.sub(r"\\\g<0>", text)


def _spaced(text: Marked) -> str:
    """With stars and spaces, where an emphasis or code would not begin or end inside a word."""
    written, position = "", 0
    for mark in text.marks:
        written += _escape(text.text[position : mark.position])
        position = mark.position
        if mark.kind in ("open", "item") and re.search(r"[\w`]", written[-1:]):
            written += " "
        is_end = mark.kind == "close" and text.text[position : position + 1].isalnum()
        needs_space = is_end and not written[-1:].isalnum()
        written += re.sub("^__?$", lambda found: "*" * len(found[0]), mark.written)
        written += " " if needs_space else ""
    return written + _escape(text.text[position:])


def _letters(texts: Iterable[str]) -> str:
    """Without white space; stars for underscores."""
    return "".join("".join(texts).split()).replace("_", "*")


def _decode(raw: str) -> str:
    """Without backslashes and entities."""
    return ESCAPES.sub(lambda found: found[1] or unescape(found[0]), raw)


def _recorded(
    name: str, rule: Callable[[StateInline, bool], bool], state: StateInline, silent: bool
) -> bool:
    """A rule of the parser that also tells the new tokens of markup where they stand."""
    start, count = state.pos, len(state.tokens)
    if not rule(state, silent):
        return False
    new, end = state.tokens[count:], state.pos
    if silent or not new:
        return True
    if name in ("emphasis", "strikethrough"):  # a token for each character, or for two
        for token in reversed(new):
            if end > start:
                end -= len(token.content)
                token.meta["span"] = (end, end + len(token.content))
    elif name == "link":
        label_end = state.md.helpers.parseLinkLabel(state, start, True)
        opening = next(each for each in new if each.type == "link_open" and not each.meta)
        opening.meta["span"] = (start, start + 1)
        new[-1].meta["span"] = (label_end, end)
    else:
        new[-3 if name == "autolink" else -1].meta["span"] = (start, end)
    return True


def _blocks(token: Token) -> Iterator[list[Piece]]:
    """A text and its markup, in parts between borders."""
    pieces, position = list[Piece](), 0
    labels: list[int] = []  # where those of the open links begin
    kept: Piece | None = None  # the start of an element that stays
    inside = {
        place for found in SHORTCODE.finditer(token.content) for place in range(*found.span())
    }
    for child in token.children or ():
        if "span" not in child.meta or child.type in ("text", "text_special", "softbreak"):
            continue
        if child.meta["span"][0] in inside:
            continue
        piece = _markup(child, token.content, labels)
        if kept is None and piece.kind == "open" and (piece.name in KEPT or piece.name in READINGS):
            kept = piece
        elif kept is not None and (piece.kind, piece.name) == ("close", kept.name):
            written = token.content[kept.start : piece.end]
            kind: Kind = "empty" if kept.name in READINGS else "item"
            piece, kept = Piece(kept.start, piece.end, kind, kept.name, written=written), None
        if piece.kind != "break":
            written = re.sub(r"\s+", lambda at: " " if "\n" in at[0] else at[0], piece.written)
            piece = piece._replace(written=written)
        if kept is None:
            pieces += [*_texts(token.content, position, piece.start), piece]
            position = piece.end
    pieces += _texts(token.content, position, len(token.content))
    borders = [-1, *(i for i, piece in enumerate(pieces) if piece.name == "border"), len(pieces)]
    for before, after in pairwise(borders):
        yield pieces[before + 1 : after]


def _markup(token: Token, content: str, labels: list[int]) -> Piece:
    """Markup in a text."""
    start, end = token.meta["span"]
    kind: Kind = "item"
    name, _, side = token.type.rpartition("_")
    if token.type == "hardbreak":
        written = "\\\n" if content[start] == "\\" else "  \n"
        return Piece(start, end, "break", "br", written=written)
    if token.type == "html_inline":
        tag = HTML_TAG.match(content, start)
        name = tag[2].lower() if tag else ""
        is_empty = tag is None or name in VOID or token.content.endswith("/>")
        kind = "empty" if is_empty else "close" if tag and tag[1] else "open"
        if BREAK.match(content, start):
            kind = "break"
        # Alone in its line, it is a border.
        if content[start - 1 : start] in ("", "\n") and content[end : end + 1] in ("", "\n"):
            kind, name = "empty", "border"
    elif side == "open" and token.markup != "autolink":
        kind, start = "open", end - len(token.markup or "[")
        labels.append(end)
    elif side == "close":
        kind, end = "close", start + len(token.markup) if token.markup else end
        label = content[labels.pop() : start]
        if content[start:end] in ("]", "][]"):  # the link depends on its text
            return Piece(start, end, kind, name, written=f"][{label}]")
    return Piece(start, end, kind, name, written=content[start:end])


def _texts(content: str, start: int, end: int) -> Iterator[Piece]:
    """A part of a text without markup of CommonMark."""
    for found in DIALECTS.finditer(content, start, end):
        yield Piece(start, found.start())
        kind: Kind = "item" if found["item"] else "empty"
        kind = "note" if found[0].startswith("[^") and found["item"] else kind
        name = "border" if found["border"] else ""
        if found["item"] and (shortcode := SHORTCODE.fullmatch(found[0])):
            name = shortcode["name"]
            if shortcode["end"]:
                kind = "close"
            elif re.compile(rf"\{{.{{1,3}}(?:/|end)\s*{name}\b").search(
                content, found.end(), found.end() + MAX_ENCLOSED
            ):
                kind = "open"
        yield Piece(*found.span(), kind, name, written=found[0])
        start = found.end()
    yield Piece(start, end)
