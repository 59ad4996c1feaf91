"""Forced decoding: the same probabilities as in search, independently of the other pairs of the
batch.
"""

from math import exp
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.data.padding import pad_with_eos
from nmt.decoding import forced
from nmt.decoding.forced import ScoredPair, score_pairs
from nmt.decoding.translator import Translator
from nmt.run.load import load_translator
from nmt.text.vocabulary import EOS, SOS
from tests.decoding.test_translator import make_seq2seq, make_translator


@pytest.fixture(scope="module")
def translator() -> Translator:
    return make_translator()


def test_the_same_probabilities_as_the_unrolled_model(translator: Translator) -> None:
    src, tgt = translator.src_vocabulary.ids("ab?"), translator.tgt_vocabulary.ids("b?a")
    padded, lengths = map(torch.from_numpy, pad_with_eos([src]))
    model = make_seq2seq(len(translator.tgt_vocabulary))
    with torch.inference_mode():
        decoded = model(padded, lengths, torch.tensor([[SOS, *tgt]]))
        logits = model.output(decoded.vectors)[0].double().numpy()
    expected = [
        row[word] - np.log(np.exp(row).sum()) for row, word in zip(logits, [*tgt, EOS], strict=True)
    ]
    (scored,) = score_pairs(translator, [("ab?", "b?a")])
    np.testing.assert_allclose(scored.token_log_probs, expected, atol=1e-5)
    assert scored.log_prob == pytest.approx(sum(expected), abs=1e-5)
    assert scored.perplexity == pytest.approx(exp(-sum(expected) / 4), rel=1e-5)
    assert (scored.tokens, scored.unknown) == (("b", "?", "a"), (1,))


def test_batches_stay_within_their_limits(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[tuple[int, int]] = []

    def record(
        _: object, src: list[list[int]], tgt: list[list[int]], **__: object
    ) -> list[list[float]]:
        batches.append((len(src), max(map(len, [*src, *tgt]))))
        return [[0.0]] * len(src)

    monkeypatch.setattr(forced, "score_batch", record)
    monkeypatch.setattr(forced, "MAX_FORCED_TOKENS", 40)
    pairs = [("ab", "ba")] * 9 + [("a" * 20, "a"), ("a", "a" * 41), ("b" * 9, "b" * 9)]
    assert [(scored.source, scored.text) for scored in score_pairs(translator, pairs)] == pairs
    assert sorted(batches) == [(1, 9), (1, 41), (2, 20), (4, 2), (4, 2)]


def test_the_perplexity_of_an_impossible_translation_is_finite() -> None:
    pair = ScoredPair("a", "b", (), (), (-1000.0,))
    assert pair.perplexity == exp(700)


def test_nothing_to_score(translator: Translator) -> None:
    assert score_pairs(translator, []) == []
    (scored,) = score_pairs(translator, [("", "")])
    assert len(scored.token_log_probs) == 1  # <eos> alone


# --- A trained model


@pytest.fixture(scope="module")
def trained(folder: Path) -> Translator:
    return load_translator(folder / "run", overrides=["decoding.beam=1"])


PAIRS = [
    ("The dog sees the tree.", "Der Hund sieht den Baum."),
    ("", "Ja."),
    ("The man knows.", "Der Mann kennt den Tisch."),
    ("The king loves the river and the day.", ""),
]


def test_the_output_of_greedy_search_has_the_same_numbers(trained: Translator) -> None:
    translations = [
        translation
        for translation in trained.translate(["The dog sees the tree.", "The man knows the king."])
        if translation.complete
    ]
    assert translations
    for translation in translations:
        (teacher,) = score_pairs(trained, [(translation.source, translation.text)])
        assert teacher.tokens == translation.tokens
        np.testing.assert_allclose(teacher.token_log_probs, translation.token_log_probs, atol=1e-4)


def test_pairs_in_a_batch_do_not_affect_each_other(trained: Translator) -> None:
    for pair, scored in zip(PAIRS, score_pairs(trained, PAIRS), strict=True):
        (alone,) = score_pairs(trained, [pair])
        np.testing.assert_allclose(scored.token_log_probs, alone.token_log_probs, atol=1e-5)
