"""nmt.evaluation.forcing: the loss of each token of the references, teacher-forced and free-running."""

import numpy as np
import pytest

from nmt import runs
from nmt.decoding.translator import Translator
from nmt.evaluation.forcing import force, mean_loss
from tests import toy


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return runs.load_translator(toy.train(tmp_path_factory.mktemp("run")), beam=1)


@pytest.fixture(scope="module")
def pairs(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    sources = ["The dog sees the tree.", "", "The man knows.", "The king loves the river and the day."]
    return sources, ["Der Hund sieht den Baum.", "Ja.", "Der Mann kennt den Tisch.", ""]


def test_of_its_own_greedy_output_the_losses_are_those_of_search(translator: Translator) -> None:
    """And feeding back what it thinks likeliest is the same then as feeding the reference."""
    found = [one for one in translator.translate(["The dog sees the tree.", "The man knows the king."]) if one.complete]
    assert found
    for one in found:
        (forced,) = force(translator, [one.source], [one.text], free=True)
        assert forced.tokens == one.tokens
        np.testing.assert_allclose(-forced.losses, one.token_log_probs, atol=1e-4)
        assert forced.free is not None
        np.testing.assert_allclose(forced.losses, forced.free, atol=1e-5)
        assert one.attention is not None
        np.testing.assert_allclose(forced.attention, one.attention, atol=1e-5)


def test_a_batch_is_its_sentences(translator: Translator, pairs: tuple[list[str], list[str]]) -> None:
    together = force(translator, *pairs, free=True)
    assert [len(one.losses) for one in together] == [len(one.tokens) + 1 for one in together]
    for one, source, reference in zip(together, *pairs, strict=True):
        (alone,) = force(translator, [source], [reference], free=True)
        assert one.attention.shape == (len(one.tokens) + 1, len(one.src_tokens) + 1)
        for part in ("losses", "free", "attention"):
            np.testing.assert_allclose(getattr(one, part), getattr(alone, part), atol=1e-5)


def test_the_first_token_is_the_same_in_both_ways(translator: Translator, pairs: tuple[list[str], list[str]]) -> None:
    found = force(translator, *pairs, free=True)
    assert all(one.free is not None and one.free[0] == pytest.approx(one.losses[0], abs=1e-5) for one in found)
    assert any(one.free is not None and not np.allclose(one.free, one.losses, atol=0.01) for one in found)


def test_the_mean_is_over_tokens(translator: Translator, pairs: tuple[list[str], list[str]]) -> None:
    found = force(translator, *pairs)
    assert all(one.free is None for one in found)
    assert mean_loss(found) == pytest.approx(np.concatenate([one.losses for one in found]).mean(), rel=1e-6)
