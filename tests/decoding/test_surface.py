"""Tokens as the text has them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import TokenizerConfig
from nmt.decoding.surface import surfaces
from nmt.text.tokenizers import Tokenizer, load_tokenizer


def tokenizer_of(kind: str, lowercase: bool = True) -> Tokenizer:
    return load_tokenizer(TokenizerConfig.model_validate({"kind": kind, "lowercase": lowercase}), "en", "src", Path())


WORDS = tokenizer_of("words")
TOKENIZERS = (WORDS, tokenizer_of("characters"), tokenizer_of("words", lowercase=False))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Is Nagasaki far?", ["Is", "Nagasaki", "far", "￭?"]),
        ("The  McDonald-Smiths\tPAID.", ["The", "McDonald", "￭-", "￭Smiths", "PAID", "￭."]),
        ("Tom, tom, TOM!", ["Tom", "￭,", "tom", "￭,", "TOM", "￭!"]),
        ("İzmir and Ankara", ["İzmir", "and", "Ankara"]),  # two characters in lower case
        ("Cafe\u0301 Zoe", ["Café", "Zoe"]),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert surfaces(text, WORDS.split(text), WORDS) == expected


def test_a_mark_in_the_text_stays_the_look_alike() -> None:
    assert surfaces("A ￭ B", WORDS.split("A ￭ B"), WORDS) == ["A", "■", "B"]


def test_characters() -> None:
    tokenizer = tokenizer_of("characters")
    assert surfaces("Ab C", tokenizer.split("Ab C"), tokenizer) == ["A", "b", "▁", "C"]


@given(st.text(max_size=20))
def test_nothing_is_lost(text: str) -> None:
    for tokenizer in TOKENIZERS:
        tokens = tokenizer.split(text)
        written = surfaces(text, tokens, tokenizer)
        assert len(written) == len(tokens)
        for token, one in zip(tokens, written, strict=True):
            assert one == token or one.lower() == token.lower()
        if not tokenizer.signature.endswith("case:lower"):
            assert written == tokens
