"""Puts the inline markup of a sentence around the right words of its translation."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nmt.decoding.translator import Translation
from nmt.extras.texts.marked import Mark
from nmt.extras.texts.words import WordWeights
from nmt.text.tokenizers import normalize

# A word that reads a word of the source nearly as much as the one that reads it most.
NEARLY = 0.9
# Less attention than this: "was" of one language is not "was" of another.
NO_ATTENTION = 0.1
Range = tuple[int, int]  # the first and the one after the last


@dataclass(eq=False)
class _Element:
    """An opening mark, a closing mark and what they enclose; an empty mark; or the sentence.

    Attributes:
        first, last: None if the element begins or ends in another sentence.
        span: characters of the source.
        words, characters: of the translation.
    """

    first: Mark | None
    last: Mark | None
    span: Range
    children: list["_Element"] = field(default_factory=list)
    words: Range = (0, 0)
    characters: Range = (0, 0)


def project(
    marks: Sequence[Mark], translation: Translation, weights: WordWeights
) -> tuple[Mark, ...]:
    """The marks of `translation.source`, at their places in `translation.text`.

    No mark is inside a word, and nested marks stay nested. An element is put around the same words
    if the translation has them once, else around those whose attention is inside it; without
    attention, around its share of the words. An empty mark stays beside the word that it touches,
    or that followed it. An element may begin or end in another sentence.
    """
    root = _tree(marks, len(translation.source))
    elements = [root]
    for element in elements:  # parents come before their children
        elements += element.children
    finder = _Finder(translation, weights)
    for element in reversed(elements):
        element.words = finder.find(element)
    root.characters = 0, len(translation.text)
    for element in elements:
        _separate(element.children, element.words)
        for child in element.children:
            child.characters = finder.characters(child, element.characters)
    projected: list[Mark] = []
    rest: list[_Element | Mark] = [root]
    while rest:
        part = rest.pop()
        if isinstance(part, Mark):
            projected.append(part)
            continue
        start, end = part.characters
        if part.first is not None:
            projected.append(replace(part.first, position=start))
        if part.last is not None:
            rest.append(replace(part.last, position=end))
        rest += sorted(part.children, key=lambda child: child.characters)[::-1]
    return tuple(projected)


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


def _separate(siblings: Sequence[_Element], parent: Range) -> None:
    """Limits the words of each to what the parent has, and no sibling."""
    free = [parent]

    def rank(element: _Element) -> tuple[bool, bool, int]:
        low, high = element.words
        ends_here = element.first is not None and element.last is not None
        return low == high, ends_here, high - low

    for element in sorted(siblings, key=rank):
        low, high = element.words
        part = max(free, key=lambda part: min(part[1], high) - max(part[0], low))
        start, end = part
        low, high = min(max(low, start), end), max(min(high, end), start)
        element.words = low, high
        if low < high:
            free.remove(part)
            free += [(start, low), (high, end)]


class _Finder:
    """Finds the words of the translation that belong to a part of the source."""

    def __init__(self, translation: Translation, weights: WordWeights) -> None:
        self.source, self.text = translation.source, translation.text
        self.src_words, self.words, self.weights = weights.source, weights.target, weights.weights
        self.inside = weights.inside
        self.src_signs = _are_signs(self.source, self.src_words)
        self.signs = _are_signs(self.text, self.words)
        self.has_attention = bool(self.weights.any())

    def find(self, element: _Element) -> Range:
        """The words of an element and, at least, those of the elements inside it."""
        start, end = element.span
        first, after = self.inside(start, end)
        if start == end or first >= after:
            place = self._beside(start)
            return place, place
        ranges = [child.words for child in element.children if child.words[0] < child.words[1]]
        if element.first is None:
            ranges.append((0, 0))
        if element.last is None:
            ranges.append((len(self.words), len(self.words)))
        if after - first == len(self.src_words):
            ranges.append((0, len(self.words)))
        else:
            ranges.append(self._same(start, end) or self._aligned(first, after))
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def characters(self, element: _Element, limits: Range) -> Range:
        """Where an element begins and ends in the translation, within these limits."""
        low, high = element.words
        if low < high:
            return self.words[low][0], self.words[high - 1][1]
        if low > 0 and (low == len(self.words) or self._touches_left(element.span[0])):
            place = self.words[low - 1][1]
        else:
            place = self.words[low][0] if self.words else 0
        place = min(max(place, limits[0]), limits[1])
        return place, place

    def _touches_left(self, position: int) -> bool:
        """Whether a word ends at this place of the source, and a space follows."""
        around = self.source[max(position - 1, 0) : position + 1]
        return len(around) == 2 and not around[0].isspace() and around[1].isspace()

    def _beside(self, position: int) -> int:
        """The word of the translation before which an empty mark belongs."""
        following = self.inside(position, position)[0]
        if following in (0, len(self.src_words)):
            return len(self.words) if following else 0
        word = following - self._touches_left(position)
        low, high = self._same(*self.src_words[word]) or self._aligned(word, word + 1)
        return low if word == following else high

    def _same(self, start: int, end: int) -> Range | None:
        """The same words, if the translation has them once, or as often as the source."""
        wanted, inside = normalize(self.source[start:end]), self.inside(start, end)
        found = _occurrences(wanted, self.text, self.words)
        sources = _occurrences(wanted, self.source, self.src_words)
        if len(found) == 1:
            place = found[0]
        elif len(found) == len(sources) and inside in sources:
            place = found[sources.index(inside)]
        else:
            return None
        attention = self.weights[slice(*place), slice(*inside)].sum(1).max()
        is_other = self.has_attention and wanted.islower() and attention < NO_ATTENTION
        return None if is_other else place

    def _aligned(self, first: int, after: int) -> Range:
        """The words that belong to words of the source by attention; signs at the ends, too."""
        n, n_source = len(self.words), len(self.src_words)
        if not self.has_attention:
            low = round(first * n / n_source)
            return low, min(max(round(after * n / n_source), low + 1), n)
        columns = [word for word in range(first, after) if not self.src_signs[word]]
        rows = [word for word in range(n) if columns and not self.signs[word]] or [*range(n)]
        low, high = self._attending(rows, columns or [*range(first, after)])
        for word in range(first, after):
            if not (self.src_signs[word] and low > 0 and self.signs[low - 1]):
                break
            low -= 1
        for word in range(after - 1, first - 1, -1):
            if not (self.src_signs[word] and high < n and self.signs[high]):
                break
            high += 1
        return low, high

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


def _occurrences(wanted: str, text: str, words: Sequence[Range]) -> list[Range]:
    """Where a text has the same words."""
    starts = {start: index for index, (start, _) in enumerate(words)}
    ends = {end: index + 1 for index, (_, end) in enumerate(words)}
    return [
        (starts[match.start()], ends[match.end()])
        for match in re.finditer(re.escape(wanted), text)
        if match.start() in starts and match.end() in ends
    ]


def _are_signs(text: str, words: Sequence[Range]) -> list[bool]:
    return [not any(map(str.isalnum, text[start:end])) for start, end in words]
