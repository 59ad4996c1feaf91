"""A lexicon in which the words of terms have no other translations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import DecodingConfig
from nmt.data.padding import pad_with_eos
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.model import TermLexicon, Terms
from nmt.decoding.search import search
from nmt.text.vocabulary import PAD
from tests.model.test_graphs import models
from tests.model.test_lexical_bias import SRC_V, TGT_V
from tests.model.test_lexicon import make

SOURCES = st.lists(
    st.lists(st.integers(4, SRC_V - 1), min_size=1, max_size=5), min_size=1, max_size=4
)


@pytest.mark.parametrize("n_words", [0, 3])
@given(SOURCES, st.data())
def test_the_words_of_terms_have_no_other_translations(
    n_words: int, sources: list[list[int]], data: st.DataObject
) -> None:
    lexicon, weight = make(n_words).lexicon(), 7.0
    terms: dict[tuple[int, ...], list[tuple[list[int], list[int]]]] = {}
    for source in data.draw(st.lists(st.sampled_from(sources), max_size=3)):
        positions = data.draw(st.lists(st.integers(0, len(source) - 1), min_size=1, unique=True))
        ids = data.draw(st.lists(st.integers(1, TGT_V - 1), min_size=1, max_size=3))
        terms[tuple(source)] = [(positions, ids)]
    src, _ = pad_with_eos(sources)
    expected = np.zeros((*src.shape, TGT_V))
    rows = lexicon.rows(src)
    for place in np.ndindex(*src.shape):
        expected[place][lexicon.ids[rows[place]]] = lexicon.probabilities[rows[place]]
    expected[:, :, PAD] = 0
    for number, source in enumerate(sources):
        for positions, ids in terms.get(tuple(source), ()):
            expected[number, positions] = 0
            for position in positions:
                expected[number, position, ids] = weight
    found, probabilities = TermLexicon(lexicon, terms, weight).look_up(sources)
    dense = np.zeros_like(expected)
    for number, row in enumerate(found.tolist()):
        words = [word for word in row if word != PAD]
        assert len(words) == len({*words})
        for column, word in enumerate(row):
            dense[number, :, word] += probabilities[number, :, column]
    np.testing.assert_allclose(dense, expected, rtol=1e-6)


def test_an_ensemble_writes_terms_if_one_of_its_models_can() -> None:
    (*_, plain), (*_, biased) = models("luong"), models("lexical bias")
    terms: Terms = {(9,): [((0,), (10,))]}
    both = Ensemble([plain, biased])
    assert both.lexicon is biased.lexicon
    with_terms = both.with_terms(terms, 1e12)
    assert with_terms is not None
    found, before = (
        search(model, [[9], [8]], DecodingConfig(beam=3)) for model in (with_terms, both)
    )
    assert 10 in found[0][0].ids
    assert 10 not in before[0][0].ids
    assert found[1][0].ids == before[1][0].ids
    assert Ensemble([plain, plain]).with_terms(terms, 1.0) is None
