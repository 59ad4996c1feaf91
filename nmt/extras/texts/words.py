"""Which words of a text and of its translation belong together, by attention.

A word has letters or digits, with the signs inside it ("don't", "3.5"); every other sign is a word
by itself. In scripts without spaces a word is as long as its token.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from nmt.decoding.alignment import mean_weights, written_tokens
from nmt.decoding.translator import Translation
from nmt.text.tokenizers import WORD_CHARACTERS, Tokenizer

# Thai, Lao, Tibetan, Burmese, Khmer, Japanese, Chinese
NO_SPACES = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf"
NO_SPACES += "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Accents that follow their letter, joiners of letters, and what no reader sees inside a word.
_INSIDE = "\u0300-\u036f\u00ad\u200b-\u200f\u2060\ufe0f"
_LETTER = rf"(?:(?![{NO_SPACES}])[{WORD_CHARACTERS}{_INSIDE}])"
WORD = re.compile(rf"{_LETTER}+(?:(?:['’-]|(?<=\d)[.,:](?=\d)){_LETTER}+)*|\S[{_INSIDE}]*")
_NO_SPACES = re.compile(f"[{NO_SPACES}]")


# A word that reads a word of the source nearly as much as the one that reads it most.
_NEARLY = 0.9


@dataclass(frozen=True)
class WordWeights:
    """The words of a source and of its translation, and the attention between them.

    Attributes:
        source, target: (first character, character after the last) of each word.
        weights: [target words, source words]: the sum over the tokens of a source word, the mean
            over those of a target word; 0 without attention.
    """

    source: list[tuple[int, int]]
    target: list[tuple[int, int]]
    weights: NDArray[np.float32]

    def inside(self, start: int, end: int) -> tuple[int, int]:
        """The first word, and the one after the last, between two characters of the source."""
        first = sum(stop <= start for _, stop in self.source)
        return first, sum(begin < end for begin, _ in self.source)

    def aligned(self, first: int, after: int, usable: Sequence[int]) -> tuple[list[int], list[int]]:
        """Which of the `usable` target words belong to source words: those that read them most, and
        all that read them more than any others. There is at least one; attention is needed.
        """
        peaks = self.weights.argmax(1)
        highest = self.weights.max(0)[peaks]
        reading = [word for word in usable if first <= peaks[word] < after]
        best = [word for word in reading if self.weights[word].max() >= _NEARLY * highest[word]]
        nearest = usable[int(self.weights[usable, first:after].sum(1).argmax())]
        return best or [nearest], reading


def word_weights(translation: Translation, tokenizers: tuple[Tokenizer, Tokenizer]) -> WordWeights:
    """The words of `translation.source` and of `translation.text`; `tokenizers`: (source, target).

    Words after the end of a cut source have no weight.
    """
    source, target = sides(translation, tokenizers)
    src_words, in_column = source.words()
    words, in_row = target.words()
    attention = translation.attention[: in_row.shape[1], : in_column.shape[1]]
    return WordWeights(src_words, words, mean_weights(attention, in_row, in_column))


def sides(
    translation: Translation, tokenizers: tuple[Tokenizer, Tokenizer]
) -> tuple["TokenizedText", "TokenizedText"]:
    """The source and the translation with their tokens, as written."""
    src_tokenizer, tgt_tokenizer = tokenizers
    return (
        TokenizedText(
            translation.source, translation.src_tokens, src_tokenizer, src_tokenizer.normalize
        ),
        TokenizedText(translation.text, written_tokens(translation), tgt_tokenizer),
    )


class TokenizedText:
    """A text and its tokens, compared by their visible characters, which are the same in both.

    Args:
        normalize: what changed the text before it was split.

    Attributes:
        borders: before each token and after the last, in visible characters.
    """

    def __init__(
        self,
        text: str,
        tokens: Sequence[str],
        tokenizer: Tokenizer,
        normalize: Callable[[str], str] = str,
    ) -> None:
        self.text, self.normalize = text, normalize
        parts = ("".join(tokenizer.join([token]).split()) for token in tokens)
        self.borders = np.array([0, *accumulate(map(len, parts))])

    def tokens(self, start: int, end: int) -> tuple[int, int]:
        """The first token, and the one after the last, of a part of the text."""
        borders, n = self.borders, len(self.borders) - 1
        first = borders.searchsorted(len(self._visible(0, start)), "right") - 1
        after = borders.searchsorted(len(self._visible(0, end)), "left")
        return min(int(first), n), min(int(after), n)

    def around(self, start: int, end: int) -> tuple[str, str]:
        """What these tokens have before and behind that part of the text."""
        first, after = self.tokens(start, end)
        visible, before = self._visible(0, len(self.text)), len(self._visible(0, start))
        behind = len(self._visible(0, end))
        return visible[self.borders[first] : before], visible[behind : self.borders[after]]

    def _visible(self, start: int, end: int) -> str:
        return "".join(self.normalize(self.text[start:end]).split())

    def words(self) -> tuple[list[tuple[int, int]], NDArray[np.float32]]:
        """The words, and the share [words, tokens] of each token that is in each word."""
        words: list[tuple[int, int]] = []
        ends = [0]  # of the words, in visible characters
        before = -1  # the token of the word before, if that has no spaces around
        for match in WORD.finditer(self.text):
            start, end = match.span()
            size = len(self.normalize(match[0]))
            if not size:
                continue
            is_spaceless = _NO_SPACES.match(match[0]) is not None
            token = int(self.borders.searchsorted(ends[-1], "right")) if is_spaceless else -1
            goes_on = token == before or unicodedata.category(match[0][0])[0] == "M"
            if is_spaceless and goes_on and words[-1:] and words[-1][1] == start:
                words[-1], ends[-1] = (words[-1][0], end), ends[-1] + size
            else:
                words.append((start, end))
                ends.append(ends[-1] + size)
            before = token
        borders = self.borders
        overlap = np.minimum.outer(ends[1:], borders[1:]) - np.maximum.outer(
            ends[:-1], borders[:-1]
        )
        shares = np.maximum(overlap, 0) / np.maximum(np.diff(borders), 1)
        return words, shares.astype(np.float32)
