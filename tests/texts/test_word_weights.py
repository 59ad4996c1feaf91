"""Words of both sides and the attention between them, for all tokenizers."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.config.schema import TokenizerConfig
from nmt.decoding.translation import Replacement, Translation
from nmt.text.tokenizers import SubwordTokenizer, Tokenizer, load_tokenizer
from nmt.texts.word_weights import WEAK, WordWeights

TEXTS = ["The dog doesn't sleep.", "The cat sleeps, too!", "Dogs and cats sleep 3.5 hours."]


@cache
def tokenizer(kind: str, folder: Path = Path(), *, lowercase: bool = False) -> Tokenizer:
    config = TokenizerConfig(kind=kind, lowercase=lowercase, size=50)
    if kind in ("bpe", "unigram"):
        (folder / "src.spm.model").write_bytes(SubwordTokenizer.learn(TEXTS, config))
    return load_tokenizer(config, "en", "src", folder)


def copied(text: str, both: Tokenizer) -> Translation:
    """A text that is its own translation, each token aligned with itself."""
    tokens = tuple(both.split(text))
    attention = np.eye(len(tokens) + 1, dtype=np.float32)
    return Translation(text, both.join(tokens), tokens, tokens, attention=attention)


def words(translation: Translation, both: Tokenizer) -> tuple[list[str], list[str], Any]:
    found = WordWeights.of(translation, (both, both))
    return (
        [translation.source[start:end] for start, end in found.source.spans],
        [translation.text[start:end] for start, end in found.target.spans],
        found.weights,
    )


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", ["words", "characters", "bpe", "unigram"])
def test_each_word_is_aligned_with_its_copy(kind: str, lowercase: bool, tmp_path: Path) -> None:
    both = tokenizer(kind, tmp_path, lowercase=lowercase)
    text = "The  Cafe\u0301-dog doesn't sleep 3.5 hours (or so)!"
    source, target, weights = words(copied(text, both), both)
    expected = ["Cafe\u0301-dog", "doesn't", "sleep", "3.5", "hours", "(", "or", "so", ")", "!"]
    assert source == ["The", *expected]
    assert [word.lower() for word in target] == ["the", "café-dog", *expected[1:]]
    assert (weights.argmax(1) == np.arange(len(source))).all()
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-6)


def translation(
    source: str, text: str, src_tokens: str, tokens: str, attention: object
) -> Translation:
    """Tokens with spaces between them."""
    return Translation(
        source,
        text,
        tuple(src_tokens.split()),
        tuple(tokens.split()),
        attention=np.array(attention, np.float32),
    )


@pytest.mark.parametrize(
    ("kind", "given", "source", "target", "weights"),
    [
        # The sum over a source word, and the mean over a target word.
        (
            "characters",
            translation(
                "ab c", "xy", "a b ▁ c", "x y", [[0.5, 0.25, 0, 0.25, 0], [0.1, 0.3, 0, 0.4, 0.2]]
            ),
            ["ab", "c"],
            ["xy"],
            [[(0.75 + 0.4) / 2, (0.25 + 0.4) / 2]],
        ),
        # A token of several words is shared by their length.
        (
            "words",
            translation("c++", "c++", "c++", "c++", [[0.8, 0.2], [0, 1]]),
            ["c", "+", "+"],
            ["c", "+", "+"],
            np.full((3, 3), 0.8 / 3),
        ),
        # Words without spaces are as long as their tokens.
        (
            "characters",
            translation(
                "我们去北京。", "我们 去北京。", "▁我们 去 北京 。", "▁我们 去 北京 。", np.eye(5)
            ),
            ["我们", "去", "北京", "。"],
            ["我们", "去", "北京", "。"],
            np.eye(4),
        ),
        # A cut source ends with its tokens.
        (
            "words",
            translation("He sleeps here", "Er schläft", "He sleeps", "Er schläft", np.eye(3)),
            ["He", "sleeps"],
            ["Er", "schläft"],
            np.eye(2),
        ),
        # A model without attention, and an empty text.
        (
            "words",
            translation(
                "He sleeps", "Er schläft ja", "He sleeps", "Er schläft ja", [[0, 0, 0]] * 4
            ),
            ["He", "sleeps"],
            ["Er", "schläft", "ja"],
            WEAK * np.array([[1, 0], [1, 0], [0, 1]]),
        ),
        ("words", Translation(" "), [], [], np.zeros((0, 0))),
    ],
)
def test_weights(
    kind: str, given: Translation, source: list[str], target: list[str], weights: object
) -> None:
    found = words(given, tokenizer(kind))
    assert found[:2] == (source, target)
    np.testing.assert_allclose(found[2], np.array(weights), rtol=1e-6)


def test_a_vowel_sign_stays_with_its_letter() -> None:
    both = tokenizer("characters")
    assert words(copied("ที่นี่", both), both)[0] == ["ที่", "นี่"]


def test_replaced_and_left_out_words() -> None:
    both = tokenizer("words")
    tokens = ("He", "<unk>", "<unk>", "￭.")
    replaced = (Replacement(1, 1, "Xylotrop", "copied"), Replacement(2, None, "", "left out"))
    translation = Translation(
        *("He Xylotrop is.", "He Xylotrop.", ("He", "Xylotrop", "is", "￭."), tokens),
        attention=np.eye(5, dtype=np.float32),
        replaced=replaced,
    )
    source, target, weights = words(translation, both)
    assert target == ["He", "Xylotrop", "."]
    assert [source[column] for column in weights.argmax(1)] == ["He", "Xylotrop", "."]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", ["words", "characters"])
@given(text=st.text(max_size=30))
@example(text="O \u031b")
def test_words_cover_what_is_visible(kind: str, lowercase: bool, text: str) -> None:
    both = tokenizer(kind, lowercase=lowercase)
    translation = copied(text, both)
    source, target, weights = words(translation, both)
    assert weights.shape == (len(target), len(source))
    assert "".join(target) == translation.text.replace(" ", "")
    # Apart, for a letter and an accent after a space would become one.
    assert both.normalize(" ".join(source)).replace(" ", "") == translation.text.replace(" ", "")
    assert (weights.sum(0) > 0).all()
