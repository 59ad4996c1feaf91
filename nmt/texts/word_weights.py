"""What a word is; and which words of a text and of its translation belong together, by attention.

A word has letters or digits, with the signs inside it ("don't", "3.5"); "'s" and every other sign
are words by themselves.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.decoding.alignment import written_tokens
from nmt.decoding.translation import Translation
from nmt.text.tokenizers import NO_SPACES, WORD_CHARACTERS, Tokenizer

# Accents that follow their letter, joiners of letters, and what no reader sees inside a word.
_INSIDE = "\u0300-\u036f\u00ad\u200b-\u200f\u2060\ufe0f"
_LETTER = rf"(?:(?![{NO_SPACES}])[{WORD_CHARACTERS}{_INSIDE}])"
_SIGN = r"(?!['’]s\b)['’-]|(?<=\d)[.,:](?=\d)"
WORD = re.compile(rf"{_LETTER}+(?:(?:{_SIGN}){_LETTER}+)*|['’]s\b|\S[{_INSIDE}]*")

WEAK = 0.05  # the attention of a model without any
NEARLY = 0.9  # of the attention of a word: another one belongs to the same, too
_NO_SPACES = re.compile(f"[{NO_SPACES}]")
Range = tuple[int, int]  # the first, and the one after the last


class Words:
    """The words of a text, and the tokens that they are in. In scripts without spaces a word is as
    long as its token.

    Both are compared by their visible characters, which are the same in the text and in its tokens.

    Args:
        normalize: what changed the text before it was split.

    Attributes:
        text: up to the end of the tokens. spans: characters of its words.
        signs: whether each has neither letters nor digits.
        ends: of the words, in visible characters, after a 0.
        borders: of the tokens, in visible characters.
    """

    def __init__(
        self,
        text: str,
        tokens: Sequence[str],
        tokenizer: Tokenizer,
        normalize: Callable[[str], str] = str,
    ) -> None:
        visible = ("".join(tokenizer.join([token]).split()) for token in tokens)
        self.borders = np.array([0, *accumulate(map(len, visible))])
        self.spans: list[Range] = []
        self.ends = [0]
        before = -1  # the token of the word before, if that has no spaces around
        for match in WORD.finditer(text):
            start, end = match.span()
            if self.ends[-1] >= self.borders[-1]:
                text = text[:start]
                break
            size = len(normalize(match[0]))
            if not size:
                continue
            is_spaceless = _NO_SPACES.match(match[0]) is not None
            token = int(self.borders.searchsorted(self.ends[-1], "right")) if is_spaceless else -1
            goes_on = token == before or unicodedata.category(match[0][0])[0] == "M"
            if is_spaceless and goes_on and self.spans[-1:] and self.spans[-1][1] == start:
                self.spans[-1], self.ends[-1] = (self.spans[-1][0], end), self.ends[-1] + size
            else:
                self.spans.append((start, end))
                self.ends.append(self.ends[-1] + size)
            before = token
        self.text = text
        self.signs = [not any(map(str.isalnum, text[start:end])) for start, end in self.spans]

    def inside(self, start: int, end: int) -> Range:
        """The words between two characters."""
        first = bisect_right(self.spans, start, key=lambda word: word[1])
        return first, max(first, bisect_left(self.spans, end, key=lambda word: word[0]))

    def tokens_of(self, start: int, end: int) -> range:
        """The tokens of the words between two characters."""
        first, after = self.inside(start, end)
        token = int(self.borders.searchsorted(self.ends[first], "right")) - 1
        next_token = int(self.borders.searchsorted(self.ends[after]))
        return range(token, min(next_token, len(self.borders) - 1))

    def sums(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Weights [N, tokens] as [N, words]; words share a token by their length."""
        if not weights.shape[1]:
            return np.zeros((len(weights), len(self.spans)))
        before = np.cumsum(weights, 1, dtype=np.float64) - weights
        tokens = np.searchsorted(self.borders[1:-1], self.ends, "right")
        sizes = np.maximum(np.diff(self.borders), 1)[tokens]
        shares = np.clip((self.ends - self.borders[tokens]) / sizes, 0, 1)
        return np.diff(before[:, tokens] + shares * weights[:, tokens])


@dataclass(frozen=True)
class WordWeights:
    """The words of a source and of its translation, and the attention between them.

    Attributes:
        weights: [target words, source words]: the sum over the tokens of a source word, the mean
            over those of a target word. Without attention, a little for the word that is as far on
            the way.
    """

    source: Words
    target: Words
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, translation: Translation, tokenizers: tuple[Tokenizer, Tokenizer]) -> "WordWeights":
        """The words of `translation.source` and of `translation.text`.

        Args:
            tokenizers: (source, target).
        """
        src, tgt = tokenizers
        source = Words(translation.source, translation.src_tokens, src, src.normalize)
        target = Words(translation.text, written_tokens(translation), tgt)
        attention = translation.attention[: len(target.borders) - 1, : len(source.borders) - 1]
        totals = target.sums(source.sums(attention).T).T
        weights = totals / np.maximum(target.sums(np.ones((1, len(attention)))).T, 1e-9)
        if source.spans and not weights.any():
            rows = np.arange(len(target.spans))
            weights[rows, rows * len(source.spans) // max(len(rows), 1)] = WEAK
        return cls(source, target, weights.astype(np.float32))

    def readers(self, start: int, end: int, taken: Sequence[Range]) -> tuple[float, int, int]:
        """The words of the translation that read a part of the source most, as many as that has at
        most, and none that is taken: the attention of the best one, and their characters.
        """
        first, after = self.source.inside(start, end)
        attention = self.weights[:, first:after].sum(1) + 1e-9
        attention[self.target.signs] = 0
        for each in taken:
            attention[slice(*self.target.inside(*each))] = 0
        if not attention.any():
            return 0.0, len(self.target.text), len(self.target.text)
        best = low = high = int(attention.argmax())
        least, size = NEARLY * attention[best], after - first
        while low > 0 and high - low + 1 < size and attention[low - 1] >= least:
            low -= 1
        while high - low + 1 < size and attention[high + 1 : high + 2].sum() >= least:
            high += 1
        spans = self.target.spans
        return float(attention[best]), spans[low][0], spans[high][1]
