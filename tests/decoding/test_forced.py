"""Given translations: as likely as search says of its own, and whatever else is scored with them."""

from math import exp

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.batching import pad_sources
from nmt.decoding import forced as scoring
from nmt.decoding.forced import score_batch, score_pairs
from nmt.decoding.translator import Translator
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, SOS
from tests.decoding.test_translator import make_translator

TEXT = st.text("ab ?", max_size=12)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return make_translator()


def test_as_likely_as_search_says(translator: Translator) -> None:
    texts = ["ab", "a b a b", "b", "abababab", "ba?"]
    src = [translator.src_vocabulary.ids(tokens) for tokens in translator.src_tokenizer.split_all(texts)]
    found = translator.translate(texts)
    tgt = [translator.tgt_vocabulary.ids(translation.tokens) for translation in found]
    for (scored, _), translation in zip(score_batch(translator.model, src, tgt), found, strict=True):
        n = len(translation.token_log_probs)  # one less, where search was cut off before <eos>
        assert n == len(translation.tokens) + translation.complete
        np.testing.assert_allclose(scored[:n], translation.token_log_probs, atol=1e-5)
        assert sum(scored[:n]) == pytest.approx(translation.log_prob, abs=1e-5)


def test_the_figures_are_those_of_the_whole_unrolled_model(translator: Translator) -> None:
    src, tgt = translator.src_vocabulary.ids("ab?"), translator.tgt_vocabulary.ids("b?a")
    padded, lengths = pad_sources([src])
    assert isinstance(translator.model, Seq2Seq)
    with torch.inference_mode():
        decoded = translator.model(padded, lengths, torch.tensor([[SOS, *tgt]]))
        logits = translator.model.output(decoded.vectors)[0].double().numpy()
    expected = [row[word] - np.log(np.exp(row).sum()) for row, word in zip(logits, [*tgt, EOS], strict=True)]
    (scored,) = score_pairs(translator, [("ab?", "b?a")])
    np.testing.assert_allclose(scored.token_log_probs, expected, atol=1e-5)
    assert scored.log_prob == pytest.approx(sum(expected), abs=1e-5)
    assert scored.perplexity == pytest.approx(exp(-sum(expected) / 4), rel=1e-5)
    assert (scored.tokens, scored.unknown) == (("b", "?", "a"), (1,))


@given(pairs=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
def test_no_pair_depends_on_another(translator: Translator, pairs: list[tuple[str, str]]) -> None:
    together = score_pairs(translator, pairs)
    assert [(scored.source, scored.text) for scored in together] == pairs
    for pair, scored in zip(pairs, together, strict=True):
        (alone,) = score_pairs(translator, [pair])
        assert len(scored.token_log_probs) == len(scored.tokens) + 1
        np.testing.assert_allclose(scored.token_log_probs, alone.token_log_probs, atol=1e-5)


def test_long_pairs_are_batched_with_few() -> None:
    lengths = [(3, 3)] * 100 + [(scoring.MOST_TOKENS // 2, 1), (2, scoring.MOST_TOKENS), (9, 9)]
    plan = list(scoring._plan(lengths, 64))
    assert sorted(i for batch in plan for i in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(max(lengths[i]) for i in batch) <= scoring.MOST_TOKENS for batch in plan)
    assert max(map(len, plan)) == 64


def test_nothing_to_score(translator: Translator) -> None:
    assert score_pairs(translator, []) == []
    (scored,) = score_pairs(translator, [("", "")])
    assert len(scored.token_log_probs) == 1  # <eos> alone
