"""Texts in capitals."""

import pytest

from nmt.text.vocabulary import Vocabulary, WordFrequencies
from nmt.texts.capitals import usual_case
from tests.texts.fakes import WORDS, tokenizer

FREQUENCIES = WordFrequencies(tokenizer("en"), Vocabulary([*WORDS], [0, *WORDS.values()]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("THE DOG SEES TOM!", "The dog sees Tom!"),
        ("(IN NASA, TOM IS", "(In NASA, Tom is"),
        ("THE  İSTANBUL", "The  İSTANBUL"),  # lower case has another length
        ("The Dog Sees Tom", "The dog sees Tom"),
        ("42 – THE DOG", "42 – The dog"),
        ("", ""),
    ],
)
def test_usual_case(text: str, expected: str) -> None:
    assert usual_case(text, FREQUENCIES, is_whole=True) == expected


def test_single_words() -> None:
    text = "NASA, the DOG sees XYZ"
    assert usual_case(text, FREQUENCIES, is_whole=False) == "NASA, the dog sees XYZ"
    assert usual_case("TREE and TOM!", FREQUENCIES, is_whole=False) == "Tree and Tom!"
