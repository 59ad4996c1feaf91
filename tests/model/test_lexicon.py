"""The lexicon as arrays gives what the module of the lexical bias gives."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.padding import pad_with_eos
from nmt.model.lexical_bias import LexicalBias, WordKeys
from nmt.model.lexicon import MAX_CHARACTERS, Lexicon
from tests.model.test_lexical_bias import (
    SIZE,
    SRC_V,
    TGT_V,
    TOKENS,
    fill_with_words,
    random_table,
    word_keys,
)

SENTENCES = st.lists(st.lists(st.integers(0, SRC_V - 1), max_size=7), min_size=1, max_size=4)


def make(n_words: int) -> LexicalBias:
    module = LexicalBias(SRC_V, TGT_V, SIZE, n_words)
    fill_with_words(module) if n_words else module.fill(*random_table())
    return module


@pytest.mark.parametrize("n_words", [0, 3, 6])
@given(SENTENCES)
def test_translations_are_those_of_the_module(n_words: int, sentences: list[list[int]]) -> None:
    module = make(n_words)
    src, _ = pad_with_eos(sentences)
    expected = module.look_up(torch.from_numpy(src))
    ids, probabilities = module.lexicon().look_up(sentences)
    np.testing.assert_array_equal(ids, expected.ids)
    np.testing.assert_allclose(probabilities, expected.probabilities, rtol=1e-6)
    rows = module.lexicon().rows(src)
    np.testing.assert_array_equal(rows, module.rows(torch.from_numpy(src)))


@given(
    st.lists(st.integers(0, len(TOKENS) - 1), max_size=9).map(
        lambda ids: ids * (1 + MAX_CHARACTERS // 8)
    )
)
def test_words_of_any_length_have_the_keys_of_the_module(ids: list[int]) -> None:
    words: WordKeys = word_keys()
    module = LexicalBias(len(TOKENS), TGT_V, SIZE, n_words=1)
    module.words = words
    keys = module.lexicon()._keys_of_words(np.array([ids], np.int64))
    np.testing.assert_array_equal(keys, words(torch.tensor([ids], dtype=torch.long))[1])


@pytest.mark.parametrize("n_words", [0, 3])
def test_a_file_has_the_whole_lexicon(n_words: int) -> None:
    lexicon = make(n_words).lexicon()
    same = Lexicon.of_bytes(lexicon.to_bytes())
    for each in fields(Lexicon):
        one, other = getattr(lexicon, each.name), getattr(same, each.name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
