"""Puts the inline markup of a sentence around the right words of its translation."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nmt.extras.texts.marked import Mark
from nmt.extras.texts.words import NEARLY, Range, Words, WordWeights
from nmt.text.tokenizers import normalize

# Less attention than this: "was" of one language is not "was" of another.
NO_ATTENTION = 0.1


@dataclass(eq=False)
class _Element:
    """An opening mark, a closing mark and what they enclose; an empty mark; or the sentence.

    Attributes:
        first, last: None if the element begins or ends in another sentence.
        span: characters of the source. place: of the translation.
    """

    first: Mark | None
    last: Mark | None
    span: Range
    children: list["_Element"] = field(default_factory=list)
    place: Range = (0, 0)


def project(marks: Sequence[Mark], words: WordWeights) -> list[Mark]:
    """The marks of a source, at their places in its translation.

    No mark is inside a word, and nested marks stay nested. An element is put around the same words
    if the translation has them as often, else around those whose attention is inside it. An empty
    mark stays beside the word that it touches, or that followed it. An element may begin or end in
    another sentence.
    """
    finder = _Finder(words)
    root = _tree(marks, len(words.source.text))
    root.place = 0, len(words.target.text)
    projected: list[Mark] = []
    rest: list[_Element | Mark] = [root]
    while rest:
        part = rest.pop()
        if isinstance(part, Mark):
            projected.append(part)
            continue
        for child in part.children:
            child.place = finder.find(child)
        finder.separate(part.children, part.place)
        start, end = part.place
        if part.first is not None:
            projected.append(replace(part.first, position=start))
        if part.last is not None:
            rest.append(replace(part.last, position=end))
        rest += sorted(part.children, key=lambda child: child.place)[::-1]
    return projected


def _tree(marks: Sequence[Mark], length: int) -> _Element:
    """The sentence, with the elements inside it."""
    root = _Element(None, None, (0, length))
    stack = [root]
    for mark in marks:
        if mark.kind != "close":
            end = length if mark.kind == "open" else mark.position
            element = _Element(mark, None, (mark.position, end))
            stack[-1].children.append(element)
            if mark.kind == "open":
                stack.append(element)
        elif len(stack) > 1:
            element = stack.pop()
            element.last, element.span = mark, (element.span[0], mark.position)
        else:  # opened in another sentence
            root.children = [_Element(None, mark, (0, mark.position), root.children)]
    return root


class _Finder:
    """Finds the characters of the translation that belong to a part of the source."""

    def __init__(self, words: WordWeights) -> None:
        self.src_words, self.words, self.weights = words.source, words.target, words.weights
        self.source, self.text = words.source.text, words.target.text
        self.src_signs, self.signs = words.source.signs, words.target.signs

    def find(self, element: _Element) -> Range:
        """Where an element begins and ends."""
        start, end = element.span
        first, after = self.src_words.inside(start, end)
        if start == end or first >= after:
            place = self._beside(start)
            return place, place
        low, high = 0, len(self.text)
        if after - first < len(self.src_words.spans):
            low, high = self._same(start, end) or self._aligned(first, after)
        return (
            low if element.first is not None else 0,
            high if element.last is not None else len(self.text),
        )

    def separate(self, siblings: Sequence[_Element], parent: Range) -> None:
        """Limits the place of each to what the parent has, and no sibling."""
        free = [parent]

        def rank(element: _Element) -> tuple[bool, bool, int]:
            low, high = element.place
            ends_here = element.first is not None and element.last is not None
            return low == high, ends_here, high - low

        for element in sorted(siblings, key=rank):
            low, high = element.place
            part = max(free, key=lambda part: min(part[1], high) - max(part[0], low))
            start, end = part
            low, high = min(max(low, start), end), max(min(high, end), start)
            element.place = low, high
            if low < high:
                free.remove(part)
                # Without spaces at their ends.
            low = start + len(self.text[start:low].rstrip())
            high = end - len(self.text[high:end].lstrip())
            free += [(start, low), (high, end)]

    def _beside(self, position: int) -> int:
        """Where an empty mark belongs: after a word that it touches, if a space follows; or before
        the word that follows.
        """
        following = self.src_words.inside(position, position)[0]
        if following in (0, len(self.src_words.spans)) or not self.words.spans:
            return len(self.text) if following else 0
        around = self.source[position - 1 : position + 1]
        word = following - (not around[0].isspace() and around[1:].isspace())
        low, high = self._same(*self.src_words.spans[word]) or self._aligned(word, word + 1)
        return low if word == following else high

    def _same(self, start: int, end: int) -> Range | None:
        """The same words, if the translation has them as often as the source."""
        wanted = normalize(self.source[start:end])
        found = _occurrences(wanted, self.words)
        sources = _occurrences(wanted, self.src_words)
        if len(found) != len(sources) or (start, end) not in sources:
            return None
        place = found[sources.index((start, end))]
        rows, columns = self.words.inside(*place), self.src_words.inside(start, end)
        attention = self.weights[slice(*rows), slice(*columns)].sum(1).max()
        return None if wanted.islower() and attention < NO_ATTENTION else place

    def _aligned(self, first: int, after: int) -> Range:
        """What belongs to words of the source by attention; signs at the ends, too."""
        columns = [word for word in range(first, after) if not self.src_signs[word]]
        rows = [word for word, is_sign in enumerate(self.signs) if columns and not is_sign]
        rows, columns = rows or [*range(len(self.words.spans))], columns or [*range(first, after)]
        if not rows:
            return 0, 0
        low, high = self._attending(rows, columns)
        for word in range(first, after):
            if not (self.src_signs[word] and low > 0 and self.signs[low - 1]):
                break
            low -= 1
        for word in range(after - 1, first - 1, -1):
            if not (self.src_signs[word] and high < len(self.words.spans) and self.signs[high]):
                break
            high += 1
        return self.words.spans[low][0], self.words.spans[high - 1][1]

    def _attending(self, rows: Sequence[int], columns: Sequence[int]) -> Range:
        """Of the words `rows`, the first and the one after the last that belong to `columns`."""
        peaks, own = self.weights.argmax(1), self.weights[rows][:, columns]
        least = NEARLY * self.weights[rows].max(0)
        best = [row for row in rows if peaks[row] in columns]
        best = [row for row in best if self.weights[row].max() >= least[peaks[row]]]
        best = best or [rows[int(own.sum(1).argmax())]]
        low, high = best[0], best[-1] + 1
        if len(columns) > 1:  # one word is seldom translated by several
            read_most = {rows[place] for place in own.argmax(0).tolist()}
            while low - 1 in read_most:
                low -= 1
            while high in read_most:
                high += 1
        return low, high


def _occurrences(wanted: str, words: Words) -> list[Range]:
    """Where a text has the same words."""
    starts, ends = {start for start, _ in words.spans}, {end for _, end in words.spans}
    found = (match.span() for match in re.finditer(re.escape(wanted), words.text))
    return [(start, end) for start, end in found if start in starts and end in ends]
