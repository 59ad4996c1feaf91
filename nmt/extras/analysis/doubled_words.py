"""Outputs that say something twice, a common sign that the decoder lost its place in the source.

Of 2,000 outputs of a model with BLEU 39 for Tatoeba English-German, 60 were found; 54 of them were
wrong. The test with outputs and references swapped, so that each hit is a mistake, found 10.
"""

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile

MIN_STEM, MAX_ENDING = (
    4,
    2,
)  # letters: two words share a stem if they differ only after 4 letters, in at most 2 letters each

_WORDS_AND_MARKS = re.compile(r"\w+|[^\w\s]")


def doubles(output: str, source: str, references: Sequence[str]) -> bool:
    """Whether words with the same stem follow each other in the output, and in no reference; or the
    output has more words of one stem than the source and every reference have of any stem.
    """
    texts = [_WORDS_AND_MARKS.findall(text.casefold()) for text in (output, source, *references)]
    if _has_neighbors(texts[0]) and not any(map(_has_neighbors, texts[2:])):
        return True
    counts = [_largest_count(words) for words in texts]
    return counts[0] > max(1, *counts[1:])


def share_stem(word: str, other: str) -> bool:
    """Whether two words are the same, or differ only in an ending, such as intelligent and
    intelligente.
    """
    if word == other:
        return True
    n_common = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False))
    )
    return n_common >= MIN_STEM and max(len(word), len(other)) - n_common <= MAX_ENDING


def _has_neighbors(words: Sequence[str]) -> bool:
    return any(word.isalnum() and share_stem(word, after) for word, after in pairwise(words))


def _largest_count(words: Sequence[str]) -> int:
    """How many words have the most common stem; short words are left out, since function words
    repeat in good sentences.
    """
    content = [word for word in words if word.isalpha() and len(word) >= MIN_STEM]
    return max((sum(share_stem(word, other) for other in content) for word in content), default=0)
