"""Words of both sides and the attention between them, for all tokenizers."""

from dataclasses import replace
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


def test_the_sum_over_a_source_word_and_the_mean_over_a_target_word() -> None:
    both = tokenizer("characters")
    attention = np.array([[0.5, 0.25, 0, 0.25, 0], [0.1, 0.3, 0, 0.4, 0.2]], np.float32)
    translation = Translation("ab c", "xy", (*"ab▁c",), ("x", "y"), attention=attention)
    source, target, weights = words(translation, both)
    assert (source, target) == (["ab", "c"], ["xy"])
    np.testing.assert_allclose(weights, [[(0.75 + 0.4) / 2, (0.25 + 0.4) / 2]])


def test_a_token_of_several_words_is_shared_by_their_length() -> None:
    both = tokenizer("words")
    attention = np.array([[0.8, 0.2], [0, 1]], np.float32)
    translation = Translation("c++", "c++", ("c++",), ("c++",), attention=attention)
    source, _, weights = words(translation, both)
    assert source == ["c", "+", "+"]
    np.testing.assert_allclose(weights, np.full((3, 3), 0.8 / 3), rtol=1e-6)


def test_words_without_spaces_are_as_long_as_their_tokens() -> None:
    both = tokenizer("characters")
    tokens = ("▁我们", "去", "北京", "。")
    attention = np.eye(5, dtype=np.float32)
    translation = Translation("我们去北京。", "我们 去北京。", tokens, tokens, attention=attention)
    source, target, weights = words(translation, both)
    assert source == target == ["我们", "去", "北京", "。"]
    np.testing.assert_array_equal(weights, np.eye(4))
    thai = "ที่นี่"  # a vowel sign stays with its letter
    assert words(copied(thai, both), both)[0] == ["ที่", "นี่"]


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


def test_a_cut_source_ends_with_its_tokens() -> None:
    both = tokenizer("words")
    translation = Translation(
        *("He sleeps here", "Er schläft", ("He", "sleeps"), ("Er", "schläft")),
        attention=np.eye(3, dtype=np.float32),
        src_cut=True,
    )
    np.testing.assert_array_equal(words(translation, both)[2], [[1, 0], [0, 1]])


def test_an_empty_text_and_a_model_without_attention() -> None:
    both = tokenizer("words")
    assert words(Translation(" "), both)[:2] == ([], [])
    zeros = np.zeros((5, 3), np.float32)
    given = Translation("He sleeps", "Er schläft ja", ("He", "sleeps"), attention=zeros)
    weights = words(replace(given, tokens=tuple(given.text.split())), both)[2]
    np.testing.assert_allclose(weights / WEAK, [[1, 0], [1, 0], [0, 1]])


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
