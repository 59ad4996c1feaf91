"""A document: a file whose texts stand at known places."""

from collections.abc import Callable
from dataclasses import dataclass

from nmt.extras.texts.marked import Marked


@dataclass(frozen=True)
class Segment:
    """A text of a document, and its place.

    Attributes:
        start, end: the characters of the file that its translation replaces.
        text: without line ends, indentation and escapes.
        write: from the translation to what stands in the file at this place.
        target: in a file with both languages, the translation that it has.
        line: its number in the file, from 1.
    """

    start: int
    end: int
    text: Marked
    write: Callable[[Marked], str]
    target: Marked | None = None
    line: int = 0
