"""Minimum Bayes risk decoding: similarities and expected utility against loops with sacrebleu, and
how the translator uses it.
"""

from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.config.schema import DecodingConfig
from nmt.decoding.search import search
from nmt.decoding.translator import Translation, Translator
from nmt.errors import ConfigError
from nmt.extras.ranking.keys import Utility
from nmt.extras.ranking.mbr import UTILITIES, rank_by_expected_utility
from nmt.extras.ranking.reverse import Ranking
from tests.decoding.test_translator import TEXTS, make_translator, outputs

SACREBLEU = {"chrf": CHRF(), "bleu": BLEU(effective_order=True)}
SAMPLING = {"candidates": "sampling", "samples": 8}


def make_options(**options: Any) -> DecodingConfig:
    return DecodingConfig.model_validate({"method": "mbr", **options})


def translator_with(kind: str = "characters", **options: Any) -> Translator:
    translator = make_translator(kind, method="mbr", **options)
    translator.rankers = [Ranking(translator.options, None)]
    return translator


def candidate(text: str, log_prob: float, *, complete: bool = True) -> Translation:
    return Translation("source", text, log_prob=log_prob, complete=complete)


# Few letters, so that texts share long n-grams; digits, marks and entities, which tokenizer 13a
# treats in its own way.
similar_texts = st.text("ab Ä .,-1", max_size=25)
any_texts = st.text(max_size=8) | st.sampled_from(
    ["&quot;a&amp;b&lt;", "a <skipped> b", "a\u00a0b\n", "\ud83d", "𝄞𝄞"]
)
lists_of_texts = st.lists(similar_texts | any_texts, min_size=1, max_size=6)

SENTENCES = [
    "Kluge Leute lernen aus Unfällen.",
    "Intelligente Leute lernen durch Unfälle Unfälle.",
    "Die klugen Leute lernen aus den Unfällen, sagt er.",
    "la la la la la la la la la",
    "la",
    "",
    "x" * 700,
]


@pytest.mark.parametrize("utility", UTILITIES)
@example(texts=SENTENCES)
@given(texts=lists_of_texts)
def test_all_pairs_as_in_sacrebleu(utility: Utility, texts: list[str]) -> None:
    score = SACREBLEU[utility].sentence_score
    expected = [[score(text, [reference]).score for reference in texts] for text in texts]
    np.testing.assert_allclose(UTILITIES[utility](texts), expected, rtol=0, atol=1e-9)


candidates_of_a_sentence = st.lists(
    st.builds(
        candidate,
        st.text("ab .", max_size=9),
        st.floats(-9, 0),
        complete=st.sampled_from([True, True, True, False]),
    ),
    min_size=1,
    max_size=7,
)


@given(
    candidates_of_a_sentence,
    st.sampled_from(["chrf", "bleu"]),
    st.sampled_from(["beam", "sampling"]),
    st.sampled_from([0.5, 1.0, 4.0]),
)
def test_expected_utility(
    translations: list[Translation], utility: str, search_name: str, temperature: float
) -> None:
    options = make_options(
        temperature=temperature, mbr={"candidates": search_name, "utility": utility}
    )
    ranked = rank_by_expected_utility(translations, options)
    kept = [one for one in translations if one.complete] or translations
    weights = [
        1.0 if search_name == "sampling" else exp(one.log_prob / temperature) for one in kept
    ]
    expected = {
        one.text: sum(
            weight * SACREBLEU[utility].sentence_score(one.text, [other.text]).score
            for weight, other in zip(weights, kept, strict=True)
        )
        / sum(weights)
        for one in kept
    }
    assert {one.text: one.score for one in ranked} == pytest.approx(expected, abs=1e-5)
    assert len(ranked) == len(expected)
    order = [(-one.score, -one.log_prob) for one in ranked]
    assert order == sorted(order)
    for one in ranked:
        assert one.log_prob == max(other.log_prob for other in kept if other.text == one.text)


@pytest.mark.parametrize("mbr", [{}, {**SAMPLING, "utility": "bleu"}], ids=["beam", "sampling"])
def test_translations_do_not_depend_on_the_batch(mbr: dict[str, Any]) -> None:
    texts = [*TEXTS, *(f"{'ab' * i}a" for i in range(9))]
    translator = translator_with(beam=6, mbr=mbr)
    together = translator.translate(texts)
    assert [one.source for one in together] == texts
    assert [together[i].text for i in (1, 3)] == ["", ""]
    assert outputs(together) == [outputs(translator.translate([text]))[0] for text in texts]
    assert outputs(together) == outputs(translator.translate(texts[::-1]))[::-1]
    assert outputs(together) == outputs(translator_with(beam=6, mbr=mbr, batch=64).translate(texts))


@pytest.mark.parametrize("mbr", [{}, SAMPLING], ids=["beam", "sampling"])
def test_candidates_are_those_of_the_search(mbr: dict[str, Any]) -> None:
    translator, n = translator_with("words", beam=6, mbr=mbr), 8 if mbr else 6
    translator.options = translator.options.model_copy(update={"replace_unknown": False})
    (source,) = (
        translator.src_vocabulary.ids(tokens)
        for tokens in translator.src_tokenizer.split_all(["a b a b"])
    )
    plain = make_translator("words", method="sampling" if mbr else "beam", beam=6)
    (hypotheses,) = search(plain.model, [source], plain.options, n_best=n)
    texts = {
        plain.tgt_tokenizer.join(plain.tgt_vocabulary.tokens(one.ids))
        for one in hypotheses
        if one.complete
    }
    (ranked,) = translator.translate_n_best(["a b a b"], n)
    assert {one.text for one in ranked} == texts
    assert len(texts) > 1
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
    assert outputs(translator.translate_n_best(["a b a b"], 2)[0]) == outputs(ranked[:2])
    rows = len(ranked[0].tokens) + ranked[0].complete
    assert ranked[0].attention.shape == (rows, 5)
    assert sum(ranked[0].token_log_probs) == pytest.approx(ranked[0].log_prob, abs=1e-5)


@pytest.mark.parametrize(
    ("mbr", "n", "problem"),
    [
        ({}, 4, "4 translations per sentence: the beam is 3; set decoding.beam to 4 or more"),
        (
            SAMPLING,
            9,
            "9 translations per sentence: there are 8 samples; set decoding.mbr.samples to 9",
        ),
    ],
)
def test_n_best_is_limited_by_the_candidates(mbr: dict[str, Any], n: int, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        translator_with(mbr=mbr).translate_n_best(["ab"], n)
