"""Texts as numbered words; and pairs with a side that is a copy of the other, or in its language.

A word is in lower case; its stem is its first letters, so that inflected forms share their counts.
In scripts without spaces, each character is a word.

For copies, the weight of a word is log p(word | source side) - log p(word | target side), learned
from the pairs whose sides share few words. Names and loan words weigh nothing: "GIMP" beside "GIMP"
is no copy.
"""

import re
from collections.abc import Sequence

import numpy as np

from nmt.data.corpus import Corpus, Sequences
from nmt.data.encoding import TokenizedChunk, TokenTable
from nmt.data.splitting import Mask
from nmt.data.word_alignment import Floats, Indices
from nmt.text.tokenizers import NO_SPACES, WORD_CHARACTERS

STEM = 6  # letters
MAX_WORDS = 250  # of a text; those after them are not read
UNSPACED = rf"{NO_SPACES}\uac00-\ud7a3"  # words of Korean have too many forms
_LETTER = rf"(?:(?![\d_{UNSPACED}])[{WORD_CHARACTERS}])"
_WORD = re.compile(
    # Placeholders, tags, addresses and paths are the same in all languages.
    r"%[\w().$*#-]*|\$?\{[^{}]*\}|<[^<>]*>|&\w+;|[!-~]*[@/\\][!-~]*|\d+"
    rf"|[{UNSPACED}]|{_LETTER}+|[.?!…:。？！؟।]+$"
)
MAX_WEIGHT = 4.0
SMOOTHING = 0.3  # added to counts
ROUNDS = 3  # of learning, without the copies found so far
COPIED, MOSTLY_COPIED, OTHER_SIDE = 2.0, 4.0, 6.0  # sums of weights
_RUN = re.compile(rf"[{WORD_CHARACTERS}-]*[^\W\d_][{WORD_CHARACTERS}-]*")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]").match


def split(text: str) -> list[str]:
    """The words of a text."""
    return _WORD.findall(text.lower().replace("_", ""))[:MAX_WORDS]


def split_sides(pairs: Sequence[tuple[str, str]]) -> list[TokenizedChunk]:
    """Runs in a worker: the words of each side."""
    return [TokenizedChunk.of([*map(split, texts)]) for texts in zip(*pairs, strict=True)]


class Words:
    """The words of pairs, with numbers from 1 on, the same for both sides.

    Attributes:
        src, tgt: the sides. size: one more than the largest number.
        letters: [size], what each word counts as: 0 if it is no word of letters, half for a
            character of a script without spaces.
        stems: [size], a number for the first letters of each word.
    """

    def __init__(self, chunks: Sequence[Sequence[TokenizedChunk]]) -> None:
        table = TokenTable()
        self.src, self.tgt = (
            Sequences.of_blocks(
                [(table.numbers(chunk, count=False) + 1, chunk.lengths) for chunk in side]
            )
            for side in zip(*chunks, strict=True)
        )
        weights = [word[0].isalpha() / (1 + (_IS_UNSPACED(word) is not None)) for word in table]
        self.letters = np.array([0.0, *weights])
        self.size = len(self.letters)
        stems: dict[str, int] = {}
        numbers = [
            stems.setdefault(word[:STEM] if word[0].isalpha() else word, len(stems) + 1)
            for word in table
        ]
        self.stems = np.array([0, *numbers], np.int32)

    def stemmed(self) -> Corpus:
        """The sides in stems."""
        return Corpus(
            *(
                Sequences.of_blocks([(self.stems[ids], lengths) for ids, lengths in side.blocks()])
                for side in (self.src, self.tgt)
            )
        )

    def n_letters(self, side: Sequences) -> Floats:
        """The number of words of letters of each text."""
        weights = np.concatenate([self.letters[ids] for ids, _ in side.blocks()])
        texts = np.repeat(np.arange(len(side)), side.lengths)
        return np.bincount(texts, weights, len(side)).astype(float)


def find_copies(words: Words) -> tuple[Mask, Mask]:
    """Which pairs have the same words on both sides, of one language: they may be copies. And which
    are: most of four or more words are the same, and of one language; or a side of three or more
    words is clearly in the other one's language.
    """
    n_pairs, size = len(words.src), words.size

    def total(entries: Indices, values: Floats | None = None) -> Floats:
        """The sum over the words of each pair; by default, their number."""
        of_words = None if values is None else values[entries % size]
        return np.bincount(entries // size, of_words, n_pairs).astype(float)

    sides = [_different_words(side, words) for side in (words.src, words.tgt)]
    common = total(np.intersect1d(sides[0], sides[1], assume_unique=True))
    shorter, longer = np.sort([total(entries) for entries in sides], axis=0)
    is_learned = common <= 0.5 * shorter
    n_src, n_tgt = (total(entries, words.letters) for entries in sides)
    for _ in range(ROUNDS):
        counts = [
            np.bincount(entries[is_learned[entries // size]] % size, minlength=size)
            for entries in sides
        ]
        of_src, of_tgt = (np.log((n + SMOOTHING) / max(1, n.sum())) for n in counts)
        weights = np.clip(of_src - of_tgt, -MAX_WEIGHT, MAX_WEIGHT)
        src, tgt = (total(entries, weights) for entries in sides)
        is_other = ((n_src > 2) & (src < -OTHER_SIDE)) | ((n_tgt > 2) & (tgt > OTHER_SIDE))
        is_learned &= ~is_other
    same = common / np.maximum(longer, 1)
    is_mixed = np.all([total(sides[1], 1.0 * (sign * weights > 1)) for sign in (1, -1)], axis=0)
    is_mostly_copied = (
        (same >= 0.75)
        & (total(sides[1]) >= 4)
        & (np.minimum(np.abs(src), np.abs(tgt)) > MOSTLY_COPIED)
        & (src * tgt > 0)
        & ~is_mixed
    )
    has_same = (same == 1) & (np.abs(src + tgt) / 2 > COPIED)
    return np.asarray(has_same), np.asarray(is_mostly_copied | is_other)


def is_same_text(src: str, tgt: str) -> bool:
    """Whether texts with the same words are the same; but "FTP public" is French for "Public FTP",
    "Audio-Player" German, and "copy <datei>" is a translation, too.
    """
    of_src, of_tgt = (
        [word.strip("-") for word in _RUN.findall(each.lower())] for each in (src, tgt)
    )
    return of_src == of_tgt


def _different_words(side: Sequences, words: Words) -> Indices:
    """The words of letters of each text, each once, as text * words.size + word."""
    ids = np.concatenate([block for block, _ in side.blocks()]).astype(np.int64)
    texts = np.repeat(np.arange(len(side)), side.lengths)
    return np.unique((texts * words.size + ids)[words.letters[ids] > 0])
