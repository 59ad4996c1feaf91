"""A text and the markup inside it, apart from each other.

A translation goes through this package as one `Marked`: what the model reads or writes, and marks
for all that it does not. A tag stands between two characters; an item covers the word that the
model reads in its place. `written` puts everything back.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Literal

Kind = Literal["open", "close", "empty", "break", "note", "edge", "item", "number"]


@dataclass(frozen=True)
class Mark:
    """Markup at a place of a text.

    Attributes:
        position: the number of characters of the text before it.
        written: as it stands in the file, such as `<b>` or `**`.
        kind: `open` and `close` enclose a part of the text, and are nested; `empty` stands between
            two words, such as a remark; so does a `break`, which ends a line, such as `<br/>`; a
            `note` belongs to the word before it, such as `<sup>1</sup>`; an `edge` stays at the
            start or at the end of its sentence, such as "1. "; `item` takes the place of a word,
            such as `<x id="1"/>` or code; so does a `number` of a plain line.
        covered: how many characters of the text it takes the place of.
        parts: of an item that has markup in it: its marks, and its text as signs.
    """

    position: int
    written: str
    kind: Kind
    covered: int = 0
    parts: tuple["Mark", ...] = ()

    def apart(self) -> list["Mark"]:
        """The parts at this place, or itself."""
        first, *others = self.parts or (self,)
        first = replace(first, position=self.position, covered=self.covered)
        return [first, *(replace(part, position=self.end, covered=0) for part in others)]

    @property
    def end(self) -> int:
        """The first character after those that it covers."""
        return self.position + self.covered


class Sign(Mark):
    """A mark that is a part of the text, such as a tag in a plain line, or an emoji."""


@dataclass(frozen=True)
class Marked:
    """A text without its markup.

    Attributes:
        text: as a reader sees it; of documents, there is nothing at the place of an `item`.
        marks: in the order in which they are written; none covers another.
    """

    text: str
    marks: tuple[Mark, ...] = ()

    @property
    def written(self) -> str:
        """The text with its marks in it."""
        return self.escaped(str)

    def escaped(self, escape: Callable[[str], str]) -> str:
        """As `written`. escape: for what no mark covers."""
        return self._filled(lambda mark: (mark.written, False), escape).text

    @property
    def items(self) -> list[Mark]:
        """The marks that cover words."""
        return [mark for mark in self.marks if mark.covered]

    @property
    def bare(self) -> str:
        """The text with spaces in the places of items."""
        return self._filled(lambda mark: (" " * mark.covered, False)).text

    def outer(self, change: Callable[[str], str] = str) -> "Marked":
        """As a document has it: signs are text, and marks cover nothing. change: of the text that
        no mark covers.
        """
        return Marked(
            self.text, tuple(part for mark in self.marks for part in mark.apart())
        )._filled(
            lambda mark: (mark.written, False) if isinstance(mark, Sign) else ("", True), change
        )

    def with_words(self, words: Iterable[str]) -> "Marked":
        """With other words in the places of items."""
        filled = iter(words)
        return self._filled(lambda mark: (next(filled) if mark.covered else "", True))

    def _filled(
        self, fill: Callable[[Mark], tuple[str, bool]], change: Callable[[str], str] = str
    ) -> "Marked":
        """fill: from a mark to what stands in its place, and whether the mark stays over it."""
        parts, marks, length, position = list[str](), list[Mark](), 0, 0
        for mark in self.marks:
            word, stays = fill(mark)
            between = change(self.text[position : mark.position])
            if stays:
                marks.append(replace(mark, position=length + len(between), covered=len(word)))
            parts += [between, word]
            length, position = length + len(between) + len(word), mark.end
        return Marked("".join([*parts, change(self.text[position:])]), tuple(marks))

    def cut(self, borders: Sequence[int]) -> list["Marked"]:
        """The parts between these characters, of which the last is the end; every second one is a
        gap. A mark between two belongs to the first one, unless it opens or covers something; a
        break belongs to the gap.
        """
        parts: list[list[Mark]] = [[] for _ in borders[1:]]
        index = 0
        for mark in self.marks:
            find = bisect_right if mark.kind == "open" or mark.covered else bisect_left
            index = min(max(find(borders, mark.position) - 1, index), len(parts) - 1)
            if mark.kind == "break" and index % 2 == 0 and mark.position == borders[index + 1]:
                index = min(index + 1, len(parts) - 1)
            parts[index].append(replace(mark, position=mark.position - borders[index]))
        return [
            Marked(self.text[start:end], tuple(marks))
            for (start, end), marks in zip(pairwise(borders), parts, strict=True)
        ]

    @staticmethod
    def joined(parts: Sequence["Marked"]) -> "Marked":
        """One text of several."""
        starts = accumulate((len(part.text) for part in parts), initial=0)
        marks = (
            replace(mark, position=start + mark.position)
            for start, part in zip(starts, parts, strict=False)
            for mark in part.marks
        )
        return Marked("".join(part.text for part in parts), tuple(marks))

    def tokens(
        self, tokens: Sequence[str], join: Callable[[Sequence[str]], str]
    ) -> tuple[str, ...]:
        """As many tokens as the text was joined from, joined to `written`; some may be empty.

        Places are counted in visible characters: the same in a text, however it is spaced, and in
        its tokens. With an item over "Tom", the tokens "▁I see" and "▁Tom." become "▁I see" and
        "▁{name}.".
        """
        # Of each character: what stands before it, itself, and what stands behind it.
        cells = [[["", character, ""] for character in token] for token in tokens]
        visible: list[list[str]] = []
        for token, own in zip(tokens, cells, strict=True):
            n_visible = len(join([token]).replace(" ", ""))  # after the mark of a space
            visible += own[len(own) - n_visible :]
        counts = [0, *accumulate(not letter.isspace() for letter in self.text)]
        for mark in self.marks if visible else ():
            start = counts[mark.position]
            is_before_space = not self.text[mark.position : mark.position + 1].strip()
            if covered := visible[start : counts[mark.end]]:
                covered[0][1] = mark.written
                for cell in covered[1:]:
                    cell[1] = ""
            elif start and (is_before_space or start >= len(visible)):
                visible[min(start, len(visible)) - 1][2] += mark.written
            else:
                visible[start][0] += mark.written
        return tuple("".join(part for cell in own for part in cell) for own in cells)


def in_order(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """From left to right; those that cover nothing come first."""
    return tuple(sorted(marks, key=lambda mark: (mark.position, mark.end)))
