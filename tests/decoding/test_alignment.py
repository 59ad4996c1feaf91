"""Word alignment from attention, for all tokenizers."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import TokenizerConfig
from nmt.decoding.alignment import align, token_to_word
from nmt.decoding.translation import Replacement, Translation
from nmt.text.tokenizers import Tokenizer, load_tokenizer


def tokenizer(
    kind: str, language: str = "en", *, lowercase: bool = False, folder: Path = Path()
) -> Tokenizer:
    return load_tokenizer(
        TokenizerConfig(kind=kind, lowercase=lowercase, size=60), language, "src", folder
    )


WORDS = (tokenizer("words"), tokenizer("words", "de"))


def translate(source: str, text: str, rows: list[list[float]], **fields: Any) -> Translation:
    """A translation with its attention, one row a token; both sides as words."""
    src, tgt = WORDS[0].split(source), WORDS[1].split(text)
    attention = np.array(rows, np.float32)
    return Translation(source, text, tuple(src), tuple(tgt), attention=attention, **fields)


@pytest.mark.parametrize(
    ("source", "text", "rows", "expected"),
    [
        # Punctuation is part of its word: Er schläft . <eos>
        (
            "He sleeps.",
            "Er schläft.",
            [[0.8, 0.1, 0.1, 0.0], [0.1, 0.7, 0.1, 0.1], [0.0, 0.1, 0.8, 0.1], [0, 0.1, 0.1, 0.8]],
            [(0, 0), (1, 1)],
        ),
        # A word that attends to <eos> is not aligned.
        ("He sleeps", "Er schläft", [[0.3, 0.3, 0.4], [0.0, 0.9, 0.1], [0, 0, 1]], [(1, 1)]),
        # The order is that of the source.
        (
            "now he sleeps",
            "er schläft jetzt",
            [[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]],
            [(0, 2), (1, 0), (2, 1)],
        ),
        ("He sleeps", "Er schläft", [[0, 0, 0]] * 3, []),  # without attention
    ],
)
def test_words_that_belong_together(
    source: str, text: str, rows: list[list[float]], expected: list[tuple[int, int]]
) -> None:
    assert align(translate(source, text, rows), WORDS) == expected


def test_words_are_counted_in_the_raw_source() -> None:
    """A word of invisible characters has no tokens; any white space separates words."""
    translation = translate(
        "He\u00a0 \u200b  sleeps", "Er schläft", [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    )
    assert align(translation, WORDS) == [(0, 0), (2, 1)]
    lower = (tokenizer("words", lowercase=True), tokenizer("words", "de", lowercase=True))
    translation = Translation(
        "HE İS",
        "er ist",
        tuple(lower[0].split("HE İS")),
        ("er", "ist"),
        attention=np.eye(3, dtype=np.float32),
    )
    assert align(translation, lower) == [(0, 0), (1, 1)]


def test_a_word_that_was_left_out_does_not_shift_others() -> None:
    rows = [[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1]]
    attention = np.array(rows, np.float32)
    translation = Translation(
        "He sleeps", "Er schläft", ("He", "sleeps"), ("Er", "<unk>", "schläft"), attention=attention
    )
    assert align(translation, WORDS) == [(0, 0), (1, 2)]
    left_out = Translation(
        *("He sleeps", "Er schläft", ("He", "sleeps"), ("Er", "<unk>", "schläft")),
        attention=attention,
        replaced=(Replacement(1, None, "", "left out"),),
    )
    assert align(left_out, WORDS) == [(0, 0), (1, 1)]
    joined = Translation(
        *("He, sleeps", "Er, schläft", ("He", "￭,", "sleeps"), ("Er", "<unk>", "schläft")),
        attention=np.eye(4, dtype=np.float32),
        replaced=(Replacement(1, 1, "￭,", "copied"),),
    )
    assert align(joined, WORDS) == [(0, 0), (1, 1)]


@pytest.mark.parametrize("kind", ["words", "characters"])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_every_word_has_its_tokens(kind: str, text: str) -> None:
    splitter = WORDS[0] if kind == "words" else tokenizer(kind)
    tokens = splitter.split(text)
    words = splitter.normalize(text).split()
    places = token_to_word(tokens, splitter.join)
    for place, word in enumerate(words):
        assert (
            "".join(
                splitter.join([token])
                for token, of in zip(tokens, places, strict=True)
                if of == place
            )
            == word
        )
    assert set(places) <= {-1, *range(len(words))}


@pytest.mark.parametrize("kind", ["words", "characters"])
@given(tokens=st.lists(st.sampled_from(["a", "▁b", "▁", "￭,", "￭", "", "c d", "▁e▁f", "▁ ", " g"])))
def test_words_of_many_tokens_are_those_of_the_whole_text(kind: str, tokens: list[str]) -> None:
    join = (WORDS[0] if kind == "words" else tokenizer(kind)).join
    texts = [join(tokens[:end]) for end in range(len(tokens) + 1)]
    expected = [len(text.split()) - 1 if text != old else -1 for old, text in pairwise(texts)]
    assert token_to_word(tokens, join) == expected
