"""nmt.extras.ranking.pairwise against sacrebleu, pair by pair."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.extras.ranking.pairwise import pairwise_bleu, pairwise_chrf

METRICS = [(pairwise_chrf, CHRF()), (pairwise_bleu, BLEU(effective_order=True))]
# Few letters, so that texts share long n-grams; digits, marks and entities, which tokenizer 13a
# treats in its own way.
similar_texts = st.text("ab Ä .,-1", max_size=25)
any_texts = st.text(max_size=8) | st.sampled_from(
    ["&quot;a&amp;b&lt;", "a <skipped> b", "a\u00a0b\n", "\ud83d", "𝄞𝄞"]
)
lists_of_texts = st.lists(similar_texts | any_texts, min_size=1, max_size=6)

each_metric = pytest.mark.parametrize(("pairwise", "metric"), METRICS, ids=["chrF", "BLEU"])


def pair_by_pair(metric: CHRF | BLEU, texts: Sequence[str]) -> np.ndarray:
    return np.array(
        [[metric.sentence_score(text, [reference]).score for reference in texts] for text in texts]
    )


@each_metric
@given(texts=lists_of_texts)
def test_all_pairs_as_in_sacrebleu(pairwise, metric: CHRF | BLEU, texts: list[str]) -> None:  # type: ignore[no-untyped-def]
    np.testing.assert_allclose(pairwise(texts), pair_by_pair(metric, texts), rtol=0, atol=1e-9)


@each_metric
def test_sentences_as_in_sacrebleu(pairwise, metric: CHRF | BLEU) -> None:  # type: ignore[no-untyped-def]
    texts = [
        "Kluge Leute lernen aus Unfällen.",
        "Intelligente Leute lernen durch Unfälle Unfälle.",
        "Die klugen Leute lernen aus den Unfällen, sagt er.",
        "la la la la la la la la la",
        "la",
        "",
        "x" * 700,
    ]
    np.testing.assert_allclose(pairwise(texts), pair_by_pair(metric, texts), rtol=0, atol=1e-9)


@each_metric
def test_a_text_equals_itself(pairwise, metric: CHRF | BLEU) -> None:  # type: ignore[no-untyped-def]
    np.testing.assert_allclose(
        pairwise(["one two", "two three four five", " ", ""]).diagonal(), [100, 100, 0, 0]
    )
