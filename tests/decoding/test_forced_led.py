"""Given translations on trained models: where these look, and what they make of them when they are fed their own output."""

from copy import deepcopy

import numpy as np
import pytest

from nmt.decoding.ensemble import Ensemble
from nmt.decoding.forced import score_pairs
from nmt.decoding.translator import Translator
from nmt.model.seq2seq import Seq2Seq
from nmt.model.translation_model import TranslationModel
from nmt.run.load import load_translator
from tests import toy


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return load_translator(toy.train(tmp_path_factory.mktemp("run")), overrides=["decoding.beam=1"])


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return [
        ("The dog sees the tree.", "Der Hund sieht den Baum."),
        ("", "Ja."),
        ("The man knows.", "Der Mann kennt den Tisch."),
        ("The king loves the river and the day.", ""),
    ]


def test_of_its_own_greedy_output_the_figures_are_those_of_search(translator: Translator) -> None:
    """And feeding back what it thinks likeliest is the same then as feeding the translation."""
    found = [one for one in translator.translate(["The dog sees the tree.", "The man knows the king."]) if one.complete]
    assert found
    for one in found:
        forced, free = (score_pairs(translator, [(one.source, one.text)], free_running=free)[0] for free in (False, True))
        assert (forced.src_tokens, forced.tokens) == (one.src_tokens, one.tokens)
        np.testing.assert_allclose(forced.token_log_probs, one.token_log_probs, atol=1e-4)
        np.testing.assert_allclose(forced.token_log_probs, free.token_log_probs, atol=1e-5)
        np.testing.assert_allclose(forced.attention, one.attention, atol=1e-5)


@pytest.mark.parametrize("free", [False, True])
def test_a_batch_is_its_pairs(translator: Translator, pairs: list[tuple[str, str]], free: bool) -> None:
    for pair, one in zip(pairs, score_pairs(translator, pairs, free_running=free), strict=True):
        (alone,) = score_pairs(translator, [pair], free_running=free)
        assert one.attention.shape == (len(one.tokens) + 1, len(one.src_tokens) + 1)
        np.testing.assert_allclose(one.attention.sum(1), 1, atol=1e-5)
        np.testing.assert_allclose(one.attention, alone.attention, atol=1e-5)
        np.testing.assert_allclose(one.token_log_probs, alone.token_log_probs, atol=1e-5)


def test_the_first_token_is_the_same_in_both_ways(translator: Translator, pairs: list[tuple[str, str]]) -> None:
    both = [
        (np.array(one.token_log_probs), np.array(two.token_log_probs))
        for one, two in zip(score_pairs(translator, pairs), score_pairs(translator, pairs, free_running=True), strict=True)
    ]
    assert all(forced[0] == pytest.approx(free[0], abs=1e-5) for forced, free in both)
    assert any(not np.allclose(forced, free, atol=0.01) for forced, free in both)


def test_an_ensemble_finds_them_as_likely_as_its_models_on_average(translator: Translator, pairs: list[tuple[str, str]]) -> None:
    other = as_it_is_with(translator, disturbed(translator.model))
    together = as_it_is_with(translator, Ensemble([seq2seq(translator.model), seq2seq(other.model)]))
    for one, *its in zip(*(score_pairs(each, pairs) for each in (together, translator, other)), strict=True):
        assert not np.allclose(its[0].token_log_probs, its[1].token_log_probs, atol=0.01)
        mean = np.log(np.mean(np.exp([each.token_log_probs for each in its]), 0))
        np.testing.assert_allclose(one.token_log_probs, mean, atol=1e-5)
        np.testing.assert_allclose(one.attention, np.mean([each.attention for each in its], 0), atol=1e-6)


def as_it_is_with(translator: Translator, model: TranslationModel) -> Translator:
    """The same tokenizers, vocabularies and options."""
    return Translator(
        model,
        tokenizers=(translator.src_tokenizer, translator.tgt_tokenizer),
        vocabularies=(translator.src_vocabulary, translator.tgt_vocabulary),
        options=translator.options,
    )


def disturbed(model: TranslationModel) -> Seq2Seq:
    """A copy with other weights."""
    copy = deepcopy(seq2seq(model))
    for parameter in copy.parameters():
        parameter.data.mul_(0.5)
    return copy


def seq2seq(model: TranslationModel) -> Seq2Seq:
    assert isinstance(model, Seq2Seq)
    return model
