"""Texts in capitals."""

import pytest

from nmt.text.vocabulary import Vocabulary, WordFrequencies
from nmt.texts.capitals import usual_case
from tests.texts.fakes import WORDS, tokenizer

FREQUENCIES = WordFrequencies(tokenizer("en"), Vocabulary([*WORDS], [0, *WORDS.values()]))


@pytest.mark.parametrize(
    ("text", "is_whole", "expected"),
    [
        ("THE DOG SEES TOM!", True, "The dog sees Tom!"),
        ("(IN NASA, TOM IS", True, "(In NASA, Tom is"),
        ("THE  İSTANBUL", True, "The  İSTANBUL"),  # lower case has another length
        ("The Dog Sees Tom", True, "The dog sees Tom"),
        ("42 – THE DOG", True, "42 – The dog"),
        ("", True, ""),
        # Single words in capitals.
        ("NASA, the DOG sees XYZ", False, "NASA, the dog sees XYZ"),
        ("TREE and TOM!", False, "Tree and Tom!"),
    ],
)
def test_usual_case(text: str, is_whole: bool, expected: str) -> None:
    assert usual_case(text, FREQUENCIES, is_whole=is_whole) == expected
