"""A text and the markup inside it, apart from each other."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Mark:
    """Markup at a place of a text.

    Attributes:
        position: the number of characters of the text before it.
        written: as it stands in the file, such as `<b>` or `**`.
        kind: `open` and `close` enclose a part of the text, and are nested; `empty` stands between
            two words, such as `<br/>`; `item` takes the place of a word, such as `<x id="1"/>`
            or code.
    """

    position: int
    written: str
    kind: Literal["open", "close", "empty", "item"]


class Sign(Mark):
    """A mark that is a part of the text, such as a tag in a plain line, or an emoji."""


@dataclass(frozen=True)
class Marked:
    """A text without its markup.

    Attributes:
        text: as a reader sees it; at the place of a mark of kind `item` there is nothing.
        marks: in the order in which they are written.
    """

    text: str
    marks: tuple[Mark, ...] = ()

    @property
    def written(self) -> str:
        """The text with its marks in it."""
        parts, position = [], 0
        for mark in self.marks:
            parts += [self.text[position : mark.position], mark.written]
            position = mark.position
        return "".join([*parts, self.text[position:]])
