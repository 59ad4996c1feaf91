"""Which words of a text and of its translation belong together, by attention.

A word has letters or digits, with the signs inside it ("don't", "3.5"); "'s" and every other sign
are words by themselves. In scripts without spaces a word is as long as its token.
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
_SIGN = r"(?!['’]s\b)['’-]|(?<=\d)[.,:](?=\d)"
WORD = re.compile(rf"{_LETTER}+(?:(?:{_SIGN}){_LETTER}+)*|['’]s\b|\S[{_INSIDE}]*")
_NO_SPACES = re.compile(f"[{NO_SPACES}]")


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


def word_weights(translation: Translation, tokenizers: tuple[Tokenizer, Tokenizer]) -> WordWeights:
    """The words of `translation.source` and of `translation.text`; `tokenizers`: (source, target).

    Words after the end of a cut source have no weight.
    """
    src_tokenizer, tgt_tokenizer = tokenizers
    source, in_column = words_and_shares(
        translation.source, translation.src_tokens, src_tokenizer, src_tokenizer.normalize
    )
    target, in_row = words_and_shares(translation.text, written_tokens(translation), tgt_tokenizer)
    attention = translation.attention[: in_row.shape[1], : in_column.shape[1]]
    return WordWeights(source, target, mean_weights(attention, in_row, in_column))


def words_and_shares(
    text: str, tokens: Sequence[str], tokenizer: Tokenizer, normalize: Callable[[str], str] = str
) -> tuple[list[tuple[int, int]], NDArray[np.float32]]:
    """The words of a text, and the share [words, tokens] of each token that is in each word.

    Both are compared by their visible characters, which are the same in the text and in its tokens.
    normalize: what changed the text before it was split.
    """
    visible = ("".join(tokenizer.join([token]).split()) for token in tokens)
    borders = np.array([0, *accumulate(map(len, visible))])
    words: list[tuple[int, int]] = []
    ends = [0]  # of the words, in visible characters
    before = -1  # the token of the word before, if that has no spaces around
    for match in WORD.finditer(text):
        start, end = match.span()
        size = len(normalize(match[0]))
        if not size:
            continue
        is_spaceless = _NO_SPACES.match(match[0]) is not None
        token = int(borders.searchsorted(ends[-1], "right")) if is_spaceless else -1
        goes_on = token == before or unicodedata.category(match[0][0])[0] == "M"
        if is_spaceless and goes_on and words[-1:] and words[-1][1] == start:
            words[-1], ends[-1] = (words[-1][0], end), ends[-1] + size
        else:
            words.append((start, end))
            ends.append(ends[-1] + size)
        before = token
    overlap = np.minimum.outer(ends[1:], borders[1:]) - np.maximum.outer(ends[:-1], borders[:-1])
    shares = np.maximum(overlap, 0) / np.maximum(np.diff(borders), 1)
    return words, shares.astype(np.float32)
