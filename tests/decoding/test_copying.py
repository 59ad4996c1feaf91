"""Which lines are copied, as they have no words."""

import pytest

from nmt.decoding.copying import WordlessLines
from nmt.text.vocabulary import Vocabulary

ENGLISH = {"the": 9, "dog": 5, "sleeps": 3, "￭.": 4, "2": 1}
JAPANESE = {"犬": 9, "は": 9, "眠る": 3, "。": 4, "２": 2}
NUMBERS = {"7": 5, "+": 5, "=": 5, "x": 1}


@pytest.mark.parametrize(
    ("source", "target", "text", "copied"),
    [
        (ENGLISH, JAPANESE, "12,345", True),
        (ENGLISH, JAPANESE, "¿ – …", True),
        (ENGLISH, JAPANESE, "😀🇯🇵 ♥", True),
        (ENGLISH, JAPANESE, "5 km", False),
        (JAPANESE, ENGLISH, "...", True),
        (JAPANESE, ENGLISH, "。", False),
        (JAPANESE, ENGLISH, "２", False),
        (JAPANESE, JAPANESE, "２。", True),
        (NUMBERS, ENGLISH, "7 + 7", False),
    ],
)
def test_lines_without_words(
    source: dict[str, int], target: dict[str, int], text: str, copied: bool
) -> None:
    lines = WordlessLines(Vocabulary.build(source), Vocabulary.build(target))
    assert (text in lines) is copied
