"""Markdown: CommonMark with tables and strikethrough, as READMEs and documentation use it."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from html import unescape
from itertools import accumulate, pairwise
from typing import Any

from markdown_it import MarkdownIt, rules_inline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from nmt.extras.documents.document import Segment, Skipped, joined
from nmt.extras.documents.html import KEPT, VOID, Kind, Piece, marked_of
from nmt.extras.texts.marked import Mark, Marked

FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\n(?:.*\n)*?\1[ \t]*(?:\n|\Z)")
# What other dialects have inside a text. `empty`: boxes of tasks, footnotes, kinds of notes,
# attributes; `item`: numbers of footnotes, templates, names of emoji, addresses. The lengths have
# limits, so that no file takes long.
DIALECTS = re.compile(
    r"(?P<empty>^(?:\[[ xX]\](?=\s)|\[\^[^\]\n]{1,99}\]:|\[![A-Za-z]+\].*|(?:!!!|\?\?\?|:::|===).*)"
    r"|\{[:#.][^{}\n]{0,500}\})|(?P<item>\[\^[^\]\s]{1,99}\]|\{\{.{0,500}?\}\}|\{%.{0,500}?%\}"
    r"|:[a-z][a-z\d_+-]{0,99}:|https?://[^\s<>()\[\]]*[^\s<>()\[\].,;:!?'\"*_~])",
    re.MULTILINE,
)
RULES: dict[str, Callable[[StateInline, bool], bool]] = {
    "autolink": rules_inline.autolink,
    "backticks": rules_inline.backtick,
    "emphasis": rules_inline.emphasis.tokenize,
    "entity": rules_inline.entity,
    "escape": rules_inline.escape,
    "html_inline": rules_inline.html_inline,
    "image": rules_inline.image,
    "link": rules_inline.link,
    "newline": rules_inline.newline,
    "strikethrough": rules_inline.strikethrough.tokenize,
}
SAME_CODE = re.compile(r"\[(`[^`]+`)\]\[\1\]")
SOFT_BREAK = re.compile(r"\s*\n\s*")
HTML_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)")
ESCAPES = re.compile(r"\\([!-/:-@\[-`{-~])|&#?\w+;")
SPECIAL = re.compile(r"[\\`*\[\]<~]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")
# What begins another block at the start of a line, after the number of an item.
BLOCK = re.compile(
    r"(?:\d{1,9}(?=[.)](?:\s|$))|(?=#{1,6}(?:\s|$)|[-+*](?:\s|$)|[>|]|[-=]+$|```|~~~))"
)
HARMLESS = re.compile(r"\W{0,2}[^\W\d_]")  # a word that begins no block
LOST = "a text could not be found in its line, because of tabs or such; translate it by hand"


def find(text: str) -> Iterator[Segment | Skipped]:
    """Paragraphs, headings and the cells of tables."""
    front = FRONT_MATTER.match(text)
    end = front.end() if front else 0
    # The parser replaces these by others.
    rest = text[end:].replace("\r", " ").replace("\0", "\ufffd")
    text = re.sub(".", " ", text[:end]) + rest
    parser = _Parser(text)
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    cells: dict[int, int] = {}  # by the number of a line, where its last cell ends
    for block, token in pairwise(parser.blocks):
        if token.type != "inline" or token.map is None:
            continue
        first = token.map[0]
        in_table, in_title = block.type in ("td_open", "th_open"), block.markup.startswith("#")
        content = token.content.replace("|", r"\|") if in_table else token.content
        parts = content.split("\n")
        if in_table or in_title:
            columns = [lines[first].find(content, cells.get(first, 0))]
            cells[first] = columns[0] + len(content)
        else:
            rows = zip(lines[first:], parts, strict=False)
            columns = [len(line.rstrip()) - len(part.strip()) for line, part in rows]
        result = marked_of(token.content, _pieces(token), _decode)
        if result is None:
            continue
        checked = zip(lines[first:], parts, columns, strict=False)
        if not all(line.startswith(part.strip(), max(at, 0)) for line, part, at in checked):
            yield Skipped(starts[first], LOST)
            continue
        places = []  # the row, and the position in the file, of the start and the end
        for position in result[1:]:
            before = token.content[:position].split("\n")
            row, part = len(before) - 1, before[-1].replace("|", r"\|" if in_table else "|")
            indent = len(parts[row]) - len(parts[row].lstrip())
            places.append((row, starts[first + row] + columns[row] + len(part) - indent))
        (upper, start), (lower, end) = places
        shown = lines[first + upper : first + lower + 1]
        write: Callable[[Marked], str] = parser.cell if in_table else parser.written
        if not in_table and not in_title:
            write = partial(
                parser.lines,
                indent=start - starts[first + upper],
                prefix=shown[1][: columns[upper + 1]] if shown[1:] else "",
                width=max(map(len, shown)) if shown[1:] else None,
            )
        yield Segment(start, end, result[0], write)


class _Parser:
    """Reads a file, and writes texts so that they are read as meant.

    Attributes:
        blocks: the tokens of the file. Those of markup in a text know their place, `meta["span"]`.
    """

    def __init__(self, source: str) -> None:
        self._markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        self._markdown.disable("text_join")
        for name, rule in RULES.items():
            self._markdown.inline.ruler.at(name, partial(_recorded, name, rule))
        self._references: dict[str, Any] = {}
        self.blocks = self._markdown.parse(source, self._references)

    def written(self, text: Marked) -> str:
        """A text with its markup, and with backslashes where it would be read as markup."""
        kept: list[Mark] = []
        for mark in text.marks:  # stars around nothing would be read as stars
            if mark.kind == "close" and kept[-1:] == [replace(mark, kind="open")]:
                kept.pop()
            else:
                kept.append(mark)
        starred = [
            replace(mark, written=re.sub("^__?$", lambda found: "*" * len(found[0]), mark.written))
            for mark in kept
        ]
        spaced = [
            replace(mark, written=f" {mark.written}") if mark.kind in ("open", "item") else mark
            for mark in starred
        ]
        full = partial(SPECIAL.sub, r"\\\g<0>")
        written = ""
        for marks, escape in (
            (kept, str),
            (kept, full),
            (starred, full),
            (spaced, full),
        ):
            form = Marked(text.text, tuple(marks))
            written = joined(form, escape)
            [token] = self._markdown.parseInline(written, self._references)
            pieces = _pieces(token)
            found = [piece.written for piece in pieces if piece.kind]
            words = [_decode(written[each.start : each.end]) for each in pieces if not each.kind]
            is_found = _letters(found) == _letters(mark.written for mark in marks)
            # Code beside code is one.
            n_items = [sum(each.kind == "item" for each in group) for group in (pieces, marks)]
            if is_found and _letters(words) == _letters(text.text) and len({*n_items}) == 1:
                break
        return SAME_CODE.sub(r"[\1][]", written)

    def cell(self, text: Marked) -> str:
        """The cell of a table."""
        return _unlike_block(self.written(text).replace("|", r"\|"))

    def lines(self, text: Marked, *, indent: int, prefix: str, width: int | None) -> str:
        """A paragraph.

        Args:
            indent: where it begins in its line. prefix: of its other lines.
            width: about the length of lines; None for a single one.
        """
        lines: list[str] = []
        for part in self.written(text).split("\n"):
            words = re.split("[ \t]+", part.strip(" \t")) if width else [part.strip(" \t")]
            lines.append(words[0])
            for word in words[1:]:
                size = (len(prefix) if lines[1:] else indent) + len(lines[-1]) + len(word)
                if width and size >= width and HARMLESS.match(word):
                    lines.append(word)
                else:
                    lines[-1] += f" {word}"
            lines[-1] += "  " if part.endswith("  ") else ""
        return f"\n{prefix}".join(map(_unlike_block, lines))


def _unlike_block(line: str) -> str:
    """A line of a text, with a backslash if it would begin another block."""
    found = BLOCK.match(line)
    return f"{found[0]}\\{line[found.end() :]}" if found else line


def _letters(texts: Iterable[str]) -> str:
    """Without white space."""
    return "".join("".join(texts).split())


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


def _pieces(token: Token) -> list[Piece]:
    """A text and its markup."""
    pieces, position = list[Piece](), 0
    labels: list[int] = []  # where those of the open links begin
    kept: Piece | None = None  # the start of an element that stays
    for child in token.children or ():
        if "span" not in child.meta or child.type in ("text", "text_special", "softbreak"):
            continue
        piece = _markup(child, token.content, labels)
        if kept is None and piece.kind == "open" and piece.name in KEPT:
            kept = piece
        elif kept is not None and (piece.kind, piece.name) == ("close", kept.name):
            written = SOFT_BREAK.sub(" ", token.content[kept.start : piece.end])
            piece, kept = Piece(kept.start, piece.end, "item", written=written), None
        if kept is None:
            pieces += [*_texts(token.content, position, piece.start), piece]
            position = piece.end
    return [*pieces, *_texts(token.content, position, len(token.content))]


def _markup(token: Token, content: str, labels: list[int]) -> Piece:
    """Markup in a text."""
    start, end = token.meta["span"]
    kind: Kind = "item"
    name, _, side = token.type.rpartition("_")
    if token.type == "hardbreak":
        written = "\\\n" if content[start] == "\\" else "  \n"
        return Piece(start, end, "empty", "br", written=written)
    if token.type == "html_inline":
        kind, name = _html(token.content)
    elif side == "open" and token.markup != "autolink":
        kind, start = "open", end - len(token.markup or "[")
        labels.append(end)
    elif side == "close":
        kind, end = "close", start + len(token.markup) if token.markup else end
        label = content[labels.pop() : start]
        if content[start:end] in ("]", "][]"):  # the link depends on its text
            return Piece(start, end, kind, name, written=SOFT_BREAK.sub(" ", f"][{label}]"))
    return Piece(start, end, kind, name, written=SOFT_BREAK.sub(" ", content[start:end]))


def _html(tag: str) -> tuple[Kind, str]:
    """The kind and the name of a tag."""
    found = HTML_TAG.match(tag)
    name = found[2].lower() if found else ""
    if found is None or name in VOID or tag.endswith("/>"):
        return "empty", name
    return ("close" if found[1] else "open"), name


def _texts(content: str, start: int, end: int) -> Iterator[Piece]:
    """A part of a text without markup of CommonMark."""
    for found in DIALECTS.finditer(content, start, end):
        yield Piece(start, found.start())
        kind: Kind = "empty" if found["empty"] else "item"
        yield Piece(*found.span(), kind, written=found[0])
        start = found.end()
    yield Piece(start, end)
