"""Changes a text, and the tokens that it was joined from, at given places."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

from nmt.extras.texts.marked import Mark, Marked, Sign


@dataclass(frozen=True)
class Edit:
    """What takes the place of some characters.

    Attributes:
        start, end: the characters.
        mark: the markup that it is; None for a part of the text.
    """

    start: int
    end: int
    written: str
    mark: Mark | None = None

    @classmethod
    def of(cls, mark: Mark) -> Self:
        """Puts in a mark at its place."""
        return cls(mark.position, mark.position, mark.written, mark)


def apply(text: str, edits: Sequence[Edit], change: Callable[[str], str] = str) -> Marked:
    """The text with the edits. `change`: of all that no edit replaces."""
    written, marks, position = "", list[Mark](), 0
    for edit in in_order(edits):
        written += change(text[position : edit.start])
        position = edit.end
        if edit.mark is None or isinstance(edit.mark, Sign):
            written += edit.written
        else:
            marks.append(Mark(len(written), edit.written, edit.mark.kind))
    return Marked(written + change(text[position:]), tuple(marks))


def in_order(edits: Sequence[Edit]) -> list[Edit]:
    """From left to right; marks before the word at whose start they stand."""
    return sorted(edits, key=lambda edit: (edit.start, edit.end))


def apply_to_tokens(
    tokens: Sequence[str], text: str, edits: Sequence[Edit], join: Callable[[Sequence[str]], str]
) -> list[str]:
    """As many tokens, joined to the text with the edits; some may be empty.

    Places are counted in visible characters: the same in a text, however it is spaced, and in its
    tokens.
    """
    new = [*tokens]
    visible = [join([token]).replace(" ", "") for token in tokens]
    ends = [*accumulate(map(len, visible))]
    if not ends:
        return new
    counts = [0, *accumulate(not letter.isspace() for letter in text)]
    for edit in in_order(edits)[::-1]:
        start, end = counts[edit.start], counts[edit.end]
        is_attached = start == end and not text[edit.start : edit.start + 1].strip()
        find = bisect_left if is_attached else bisect_right
        first = min(find(ends, start), len(new) - 1)
        for index in range(first, min(bisect_left(ends, end, first), len(new) - 1) + 1):
            begin = ends[index] - len(visible[index])
            # After the mark of a space.
            offset = len(tokens[index]) - len(visible[index]) - begin
            low, high = max(start, begin) + offset, max(min(end, ends[index]), begin) + offset
            low = min(low, high) if start != end else low
            filling = edit.written if index == first else ""
            new[index] = new[index][:low] + filling + new[index][max(low, high) :]
    return new
