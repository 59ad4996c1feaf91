"""nmt.extras.analysis.skipped_words: source words with little attention."""

from pathlib import Path

import numpy as np
import pytest

from nmt.config.schema import TokenizerConfig
from nmt.decoding.translation import Translation
from nmt.extras.analysis.skipped_words import skipped_words
from nmt.text.tokenizers import load_tokenizer

TOKENIZER = load_tokenizer(TokenizerConfig(kind="words"), "en", "src", Path())


def translate(source: str, totals: list[float]) -> Translation:
    """A translation of two tokens whose attention sums to `totals` for the source's tokens."""
    tokens = TOKENIZER.split(source)
    attention = np.array([[*totals, 0.5], [0] * (len(tokens) + 1)], np.float32)
    return Translation(source, "Text", tuple(tokens), ("a", "b"), attention=attention)


@pytest.mark.parametrize(
    ("source", "totals", "expected"),
    [
        (
            "The man waits at stations",
            [0.1, 0.1, 1.0, 0.1, 0.29],
            ["stations"],
        ),  # "The", "man" and "at" are short
        ("The man waits at stations", [0.1, 0.1, 0.2, 0.1, 0.31], ["waits"]),
        (
            "He waits, always.",
            [1.0, 0.4, 0.0, 0.0, 0.0],
            ["always."],
        ),  # the comma is no part of "waits,"
        ("It doesn't matter", [1.0, 0.1, 0.1, 1.0], []),  # a contraction
    ],
)
def test_long_words_with_little_attention(
    source: str, totals: list[float], expected: list[str]
) -> None:
    assert skipped_words(translate(source, totals), TOKENIZER) == expected


def test_the_tokens_of_a_word_are_averaged(tmp_path: Path) -> None:
    characters = load_tokenizer(TokenizerConfig(kind="characters"), "en", "src", tmp_path)
    tokens = tuple(characters.split("hello world"))
    totals = [0.2, 0.3, 0.5, 0.4, 0.2, *[0.2] * (len(tokens) - 5), 1.0]  # the mean of hello is 0.32
    translation = Translation(
        "hello world", "x", tokens, ("x",), attention=np.array([totals], np.float32)
    )
    assert skipped_words(translation, characters) == ["world"]


def test_a_model_without_attention_skips_nothing() -> None:
    assert skipped_words(translate("He waits", [0.0, 0.0]), TOKENIZER) != []
    assert (
        skipped_words(
            Translation(
                "He waits", "x", ("He", "waits"), ("x",), attention=np.zeros((1, 3), np.float32)
            ),
            TOKENIZER,
        )
        == []
    )
    assert skipped_words(Translation(""), TOKENIZER) == []
