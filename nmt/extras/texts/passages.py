"""Finds tags and items in a text, and cuts it into sentences with what belongs to each."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from nmt.decoding.translator import has_letters
from nmt.extras.texts.edits import Edit, apply
from nmt.extras.texts.marked import Mark, Marked, Sign
from nmt.extras.texts.spans import Span, spans
from nmt.extras.texts.words import NO_SPACES

_WITHOUT_END = {"br", "hr", "img", "input", "wbr"}
# Tags whose other half may stand in another line.
_HTML = (
    "a b body button code div em font form h1 h2 h3 h4 head html i label li ol option p pre span"
)
_HTML += " strong sub sup table td th title tr u ul"
_KNOWN = {*_WITHOUT_END, *_HTML.split()}
# Of scripts that write spaces between words.
_LETTER = re.compile(rf"[^\W{NO_SPACES}]")
_NUMBER = re.compile(r"(?<![^\W_])\d+(?:[.,:/'’-]\d+)*(?![^\W_])")
Kind = Literal["open", "close", "empty", "item"]


@dataclass(frozen=True)
class Item:
    """What takes the place of a word, and stays as it is.

    Attributes:
        start, end: its characters.
        is_number: or it is a name of a thing.
        mark: the markup that it is; None for a part of the text.
    """

    start: int
    end: int
    is_number: bool = False
    mark: Mark | None = None


@dataclass(frozen=True)
class Passage:
    """A text or a sentence, with items in it, and tags taken off.

    Attributes:
        text: with its items.
        items: in order. marks: those that take no place of a word, in order.
    """

    text: str
    items: tuple[Item, ...] = ()
    marks: tuple[Mark, ...] = ()

    @property
    def is_plain(self) -> bool:
        return not self.items and not self.marks

    @property
    def marked(self) -> Marked:
        """The text, in which the marks are marks again."""
        items = [
            Edit(item.start, item.end, item.mark.written, item.mark)
            for item in self.items
            if item.mark is not None
        ]
        return apply(self.text, [*items, *map(Edit.of, self.marks)])

    @property
    def has_words(self) -> bool:
        """Whether there are letters outside of items."""
        return has_letters(self.masked(" "))

    def with_numbers(self) -> "Passage":
        """The same with each number as an item."""
        taken = [(item.start, item.end) for item in self.items]
        taken += [(mark.position, mark.position) for mark in self.marks]
        numbers = (
            Item(*match.span(), is_number=True)
            for match in _NUMBER.finditer(self.text)
            if all(end <= match.start() or match.end() <= start for start, end in taken)
        )
        items = sorted([*self.items, *numbers], key=lambda item: item.start)
        return replace(self, items=tuple(items))

    def masked(self, letter: str | None = None) -> str:
        """As long a text, with `letter` at the place of items; or a name for each, and zeros for
        numbers.
        """
        parts, position = [], 0
        for item in self.items:
            size = item.end - item.start
            name = "0" * size if item.is_number else "Xx" + "x" * (size - 2)
            filling = name[:size] if letter is None else letter * size
            parts += [self.text[position : item.start], filling]
            position = item.end
        return "".join([*parts, self.text[position:]])

    def part(self, start: int, end: int) -> "Passage":
        """A sentence: the part between two characters, with its items and marks. A mark between two
        sentences without a space belongs to the first one, unless it opens.
        """
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
        marks = (
            replace(mark, position=mark.position - start)
            for mark in self._marks_in(start, end)
            if start < mark.position < end
            or (mark.position == start and (start == 0 or mark.kind == "open"))
            or (mark.position == end and (end == len(self.text) or mark.kind != "open"))
        )
        items = (
            replace(item, start=item.start - start, end=item.end - start)
            for item in self.items[first:last]
        )
        return Passage(self.text[start:end], tuple(items), tuple(marks))

    def gap(self, start: int, end: int) -> Marked:
        """What stands between two sentences, with the marks that belong to none."""
        marks = (
            replace(mark, position=mark.position - start)
            for mark in (self._marks_in(start, end) if start < end else ())
            if start < mark.position < end or (mark.position == start) == (mark.kind == "open")
        )
        return Marked(self.text[start:end], tuple(marks))

    def _marks_in(self, start: int, end: int) -> Sequence[Mark]:
        return self.marks[bisect_left(self._places, start) : bisect_right(self._places, end)]

    @cached_property
    def _starts(self) -> list[int]:
        return [item.start for item in self.items]

    @cached_property
    def _places(self) -> list[int]:
        return [mark.position for mark in self.marks]


def passage_of(marked: Marked, keep: Sequence[re.Pattern[str]] | None) -> Passage:
    """A text with its items found, and its tags. `keep`: finds further items; with None there are
    no items but those that are marks.
    """
    found = [] if keep is None else spans(marked.text, keep)
    if not found and not marked.marks:
        return Passage(marked.text)
    builder = _Builder()
    position = 0
    marks = [*marked.marks]
    for span, kind in zip(found, _kinds(marked.text, found), strict=True):
        while marks and marks[0].position < span.end:
            # No mark is inside of an item.
            mark = marks.pop(0)
            if mark.position > span.start and mark.kind == "close":
                marks.insert(0, replace(mark, position=span.end))
                break
            builder.add_text(marked.text[position : min(mark.position, span.start)])
            position = min(mark.position, span.start)
            builder.add_mark(mark, marked.text[position : position + 1])
        builder.add_text(marked.text[position : span.start])
        written, position = marked.text[span.start : span.end], span.end
        if kind == "item":
            builder.add_item(written, is_number=span.kind == "number")
        else:
            builder.add_mark(Sign(0, written, kind), marked.text[position : position + 1])
    for mark in marks:
        builder.add_text(marked.text[position : mark.position])
        position = mark.position
        builder.add_mark(mark, marked.text[position : position + 1])
    builder.add_text(marked.text[position:])
    return Passage(builder.text, tuple(builder.items), tuple(builder.marks))


class _Builder:
    """Puts a passage together from left to right."""

    def __init__(self) -> None:
        self.text, self.items, self.marks = "", list[Item](), list[Mark]()

    def add_text(self, text: str) -> None:
        self.text += text

    def add_item(self, written: str, *, is_number: bool = False, mark: Mark | None = None) -> None:
        start = len(self.text)
        self.text += written
        self.items.append(Item(start, len(self.text), is_number, mark))

    def add_mark(self, mark: Mark, following: str) -> None:
        """following: the character after it, or ""."""
        is_after_item = bool(self.items) and self.items[-1].end == len(self.text)
        touches = is_after_item or _LETTER.match(self.text[-1:]) or _LETTER.match(following)
        if mark.kind == "item" and mark.written and not touches:
            self.add_item(mark.written, mark=mark)
            return
        written = mark.written
        if mark.kind == "empty" and following.isspace() and not is_after_item:
            # Between two spaces: one of them goes with it.
            text = self.text.rstrip()
            if isinstance(mark, Sign) and text:
                self.text, written = text, self.text[len(text) :] + written
        self.marks.append(replace(mark, position=len(self.text), written=written))


def _kinds(text: str, found: Sequence[Span]) -> list[Kind]:
    """How to treat each of the spans of a text."""
    kinds: list[Kind] = ["empty" if span.kind in ("tag", "sign") else "item" for span in found]
    is_open: list[tuple[int, str]] = []
    for index, span in enumerate(found):
        if span.kind != "tag":
            continue
        written = text[span.start : span.end]
        name = re.findall(r"[\w:.-]+", written)[0].lower()
        if written[1] == "/":
            names = [each for _, each in is_open]
            if name in names:
                last = len(names) - 1 - names[::-1].index(name)
                kinds[is_open[last][0]], kinds[index] = "open", "close"
                del is_open[last:]
        elif written[-2] != "/" and name not in _WITHOUT_END:
            is_open.append((index, name))
    for index, span in enumerate(found):
        before, after = text[max(span.start - 1, 0) : span.start], text[span.end : span.end + 1]
        is_free = (not before or before.isspace()) and not after.isalnum()
        if span.kind == "tag" and kinds[index] == "empty" and is_free:
            name = text[span.start + 1 : span.end - 1]
            if name.isidentifier() and name.lower() not in _KNOWN:
                kinds[index] = "item"  # "Type <name> here"
    return kinds
