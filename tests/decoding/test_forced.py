"""Forced decoding: the same probabilities as in search, independently of the other pairs of the batch."""

from math import exp

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.batching import pad_sources
from nmt.decoding import forced
from nmt.decoding.forced import ScoredPair, score_batch, score_pairs
from nmt.decoding.translator import Translator
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, SOS
from tests.decoding.test_translator import make_translator

TEXT = st.text("ab ?", max_size=12)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return make_translator()


def test_the_same_probabilities_as_in_search(translator: Translator) -> None:
    texts = ["ab", "a b a b", "b", "abababab", "ba?"]
    src = [translator.src_vocabulary.ids(tokens) for tokens in translator.src_tokenizer.split_all(texts)]
    found = translator.translate(texts)
    tgt = [translator.tgt_vocabulary.ids(translation.tokens) for translation in found]
    for (scored, _), translation in zip(score_batch(translator.model, src, tgt), found, strict=True):
        n = len(translation.token_log_probs)  # one less, where search was cut off before <eos>
        assert n == len(translation.tokens) + translation.complete
        np.testing.assert_allclose(scored[:n], translation.token_log_probs, atol=1e-5)
        assert sum(scored[:n]) == pytest.approx(translation.log_prob, abs=1e-5)


def test_the_same_probabilities_as_the_unrolled_model(translator: Translator) -> None:
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


def test_batches_stay_within_their_limits(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[tuple[int, int]] = []

    def record(_: object, src: list[list[int]], tgt: list[list[int]], **__: object) -> list[tuple[list[float], np.ndarray]]:
        batches.append((len(src), max(map(len, [*src, *tgt]))))
        return [([0.0], np.zeros((1, 1)))] * len(src)

    monkeypatch.setattr(forced, "score_batch", record)
    monkeypatch.setattr(forced, "MAX_TOKENS", 40)
    pairs = [("ab", "ba")] * 9 + [("a" * 20, "a"), ("a", "a" * 41), ("b" * 9, "b" * 9)]
    assert [(scored.source, scored.text) for scored in score_pairs(translator, pairs)] == pairs
    assert sorted(batches) == [(1, 9), (1, 41), (2, 20), (4, 2), (4, 2)]


def test_the_perplexity_of_an_impossible_translation_is_finite() -> None:
    pair = ScoredPair("a", "b", ("a",), (), (), (-1000.0,), np.zeros((1, 2), np.float32))
    assert pair.perplexity == exp(700)


def test_nothing_to_score(translator: Translator) -> None:
    assert score_pairs(translator, []) == []
    (scored,) = score_pairs(translator, [("", "")])
    assert len(scored.token_log_probs) == 1  # <eos> alone
