"""Puts the inline markup of a sentence around the right words of its translation."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np

from nmt.text.tokenizers import normalize
from nmt.texts.marked import Mark
from nmt.texts.word_weights import NEARLY, Range, Words, WordWeights

# Less attention than this: "was" of one language is not "was" of another.
NO_ATTENTION = 0.1


@dataclass(eq=False)
class _Element:
    """An opening mark, a closing mark and what they enclose; an empty mark; or the sentence.

    Attributes:
        first, last: None if the element begins or ends in another sentence.
        span: characters of the source. place: of the translation.
        is_note: whether it belongs to the word before it.
    """

    first: Mark | None
    last: Mark | None
    span: Range
    children: list["_Element"] = field(default_factory=list)
    place: Range = (0, 0)
    is_note: bool = False


def project(marks: Sequence[Mark], words: WordWeights) -> list[Mark]:
    """The marks of a source, at their places in its translation.

    No mark is inside a word, and nested marks stay nested. An element is put around the same words
    if the translation has them as often, else around those whose attention is inside it. An empty
    mark stays before the element that it touches, else beside the word that it touches, or that
    followed it. An element may begin or end in another sentence.
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
        with_words = (each for each in part.children if each.span[0] < each.span[1])
        starts = {each.span[0]: each.place[0] for each in with_words}
        for child in part.children:
            start, end = child.span
            if start == end and start in starts and not child.is_note:
                child.place = starts[start], starts[start]
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
            element = _Element(mark, None, (mark.position, end), is_note=mark.kind == "note")
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
    """Finds the characters of the translation that belong to a part of the source.

    Attributes:
        weights: [words of the translation + 1, words of the source + 1], 0 for signs.
        peaks: the word of the source that a word reads most. heights: how much it reads that.
        readers: the word that reads a word of the source most. least: nearly as much as that.
    """

    def __init__(self, words: WordWeights) -> None:
        self.source, self.target, self.all_weights = words.source, words.target, words.weights
        self.weights = np.pad(words.weights, (0, 1))
        self.weights[[*words.target.signs, True]] = 0
        self.weights[:, [*words.source.signs, True]] = 0
        self.peaks, self.heights = self.weights.argmax(1), self.weights.max(1)
        self.readers, self.least = self.weights.argmax(0), NEARLY * self.weights.max(0)

    def find(self, element: _Element) -> Range:
        """Where an element begins and ends."""
        start, end = element.span
        first, after = self.source.inside(start, end)
        if start == end or first >= after:
            place = self._beside(start, is_note=element.is_note)
            return place, place
        low, high = 0, len(self.target.text)
        if after - first < len(self.source.spans):
            low, high = self._same(start, end) or self._aligned(first, after)
        return (
            low if element.first is not None else 0,
            high if element.last is not None else len(self.target.text),
        )

    def separate(
        self, siblings: Sequence[_Element], parent: Range, *, are_shared: bool = False
    ) -> None:
        """Limits the place of each to what the parent has, and no sibling. If one with words would
        get none, all share the words evenly.
        """
        free = [parent]

        def rank(element: _Element) -> tuple[bool, bool, int]:
            low, high = element.place
            ends_here = element.first is not None and element.last is not None
            return low == high, ends_here, high - low

        edges = set[int]()
        for element in sorted(siblings, key=rank):
            low, high = element.place
            if low == high and low in edges:  # right beside another one
                continue
            start, end = max(free, key=lambda part: min(part[1], high) - max(part[0], low))
            low, high = min(max(low, start), end), max(min(high, end), start)
            element.place = low, high
            if low < high:
                free.remove((start, end))
                edges |= {low, high}
                # Without spaces at their ends.
                low = start + len(self.target.text[start:low].rstrip())
                high = end - len(self.target.text[high:end].lstrip())
                free += [(start, low), (high, end)]
        worded = [each for each in siblings if _words_in(self.source, each.span)]
        if are_shared or all(_words_in(self.target, each.place) for each in worded):
            return
        words = _words_in(self.target, parent)
        for index, each in enumerate(worded):
            first, after = (len(words) * i // len(worded) for i in (index, index + 1))
            own = words[first:after] or [(each.place[0], each.place[0])]
            low, high = own[0][0], own[-1][1]
            each.place = low if each.first else parent[0], high if each.last else parent[1]
        self.separate(siblings, parent, are_shared=True)

    def _beside(self, position: int, *, is_note: bool) -> int:
        """Where an empty mark belongs: after a word that it touches, if a space follows or it is a
        note; or before the word that follows.
        """
        following = self.source.inside(position, position)[0]
        if following in (0, len(self.source.spans)) or not self.target.spans:
            return len(self.target.text) if following else 0
        around = self.source.text[position - 1 : position + 1]
        word = following - (not around[0].isspace() and (is_note or around[1:].isspace()))
        if not self.heights[self.peaks == word].any():  # it is not translated
            word = following - 1
        low, high = self._same(*self.source.spans[word]) or self._aligned(word, word + 1)
        return low if word == following else high

    def _same(self, start: int, end: int) -> Range | None:
        """The same words, if the translation has them as often as the source."""
        wanted = normalize(self.source.text[start:end])
        found = _occurrences(wanted, self.target)
        sources = _occurrences(wanted, self.source)
        if len(found) != len(sources) or (start, end) not in sources:
            return None
        place = found[sources.index((start, end))]
        rows, columns = self.target.inside(*place), self.source.inside(start, end)
        attention = self.all_weights[slice(*rows), slice(*columns)].sum(1).max()
        return None if wanted.islower() and attention < NO_ATTENTION else place

    def _aligned(self, first: int, after: int) -> Range:
        """What belongs to words of the source by attention; signs at the ends, too."""
        source, target = self.source.signs, self.target.signs
        if not target:
            return 0, 0
        is_best = (self.heights > 0) & (self.heights >= self.least[self.peaks])
        rows = np.flatnonzero(is_best & (self.peaks >= first) & (self.peaks < after)).tolist()
        if not rows:
            own = self.weights[:-1, first:after].sum(1)
            own = own if own.any() else self.all_weights[:, first:after].sum(1)
            rows = [int(own.argmax())]
        low, high = rows[0], rows[-1] + 1
        if source[first:after].count(False) > 1:  # one word is seldom translated by several
            read_most = {*self.readers[first:after].tolist()}
            while low - 1 in read_most:
                low -= 1
            while high in read_most:
                high += 1
        low -= _n_signs(source[first:after], target[:low][::-1])
        high += _n_signs(source[first:after][::-1], target[high:])
        return self.target.spans[low][0], self.target.spans[high - 1][1]


def _n_signs(*texts: Sequence[bool]) -> int:
    """How many signs begin both texts."""
    return sum(1 for _ in takewhile(all, zip(*texts, strict=False)))


def _words_in(words: Words, place: Range) -> list[Range]:
    return [words.spans[word] for word in range(*words.inside(*place)) if not words.signs[word]]


def _occurrences(wanted: str, words: Words) -> list[Range]:
    """Where a text has the same words."""
    found = (match.span() for match in re.finditer(re.escape(wanted), words.text))
    places = ((place, words.inside(*place)) for place in found)
    return [
        (start, end)
        for (start, end), (first, after) in places
        if first < after and (words.spans[first][0], words.spans[after - 1][1]) == (start, end)
    ]
