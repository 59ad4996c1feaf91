"""By what a hypothesis is extended, against NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import DecodingConfig
from nmt.decoding.candidates import Extensions, allowed, draw, sampling_probabilities
from nmt.model.topk import log_norm, topk_log_probs

seeds = st.integers(0, 10_000)


def make_scores(seed: int, rows: int, size: int, *, ties: bool = False) -> torch.Tensor:
    random = np.random.default_rng(seed)
    scores = random.integers(0, 50, (rows, size)).astype(float) if ties else random.normal(size=(rows, size)) * 3
    return torch.from_numpy(scores)


@given(seeds, st.integers(1, 4), st.integers(0, 5))
def test_what_is_banned_is_not_allowed(seed: int, width: int, n_banned: int) -> None:
    scores = make_scores(seed, 3, 9)
    banned = torch.from_numpy(np.random.default_rng(seed).integers(0, 9, (3, n_banned)))
    found = allowed(*topk_log_probs(scores, width + n_banned), banned)
    log_probs = scores.log_softmax(1)
    for row in range(3):
        expected = [i for i in log_probs[row].argsort(descending=True).tolist() if i not in banned[row]]
        possible = found.log_probs[row].isfinite()
        assert found.ids[row][possible].tolist()[:width] == expected[:width]
        np.testing.assert_allclose(found.log_probs[row][possible][:width], log_probs[row][expected[:width]])


def test_what_is_forced_stands_alone() -> None:
    scores = make_scores(1, 2, 6)
    found = allowed(*topk_log_probs(scores, 3), torch.empty(2, 0, dtype=torch.long))
    forced = found.force(torch.tensor([-1, 4]), scores, log_norm(scores))
    assert torch.equal(forced.ids[0], found.ids[0])
    assert torch.equal(forced.log_probs[0], found.log_probs[0])
    assert forced.ids[1, 0] == 4
    assert forced.log_probs[1].tolist() == pytest.approx([float(scores[1].log_softmax(0)[4]), -np.inf, -np.inf])


def test_what_has_ended_gets_nothing() -> None:
    alive = torch.tensor([[True, False], [False, True]])
    spread = Extensions(torch.tensor([[4], [5]]), torch.tensor([[-1.0], [-2.0]])).spread(alive)
    assert spread.log_probs.tolist() == [[[-1], [-np.inf]], [[-np.inf], [-2]]]
    assert spread.ids[alive].tolist() == [[4], [5]]


def nucleus(scores: np.ndarray, temperature: float, top_k: int | None, top_p: float) -> np.ndarray:
    """The same, an id at a time."""
    order = np.argsort(-scores)[:top_k]
    p = np.exp(scores[order] / temperature)
    p /= p.sum()
    kept = [int(np.searchsorted(p.cumsum(), top_p, side="left")) + 1, len(p)]
    result = np.zeros(len(scores))
    result[order[: min(kept)]] = p[: min(kept)]
    return result


@given(seeds, st.sampled_from([0.3, 1.0, 2.0]), st.sampled_from([None, 1, 3, 20]), st.sampled_from([0.1, 0.5, 0.95, 1.0]))
def test_what_top_k_and_top_p_leave(seed: int, temperature: float, top_k: int | None, top_p: float) -> None:
    scores = make_scores(seed, 4, 9)
    options = DecodingConfig(method="sampling", temperature=temperature, top_k=top_k, top_p=top_p)
    for row, probabilities in zip(scores.numpy(), sampling_probabilities(scores, options), strict=True):
        np.testing.assert_allclose(probabilities, nucleus(row, temperature, top_k, top_p), atol=1e-12)


def test_draws_follow_the_distribution() -> None:
    """100,000 draws: each share within five standard deviations; what is banned never comes."""
    n, options = 100_000, DecodingConfig(method="sampling", temperature=0.7)
    scores = make_scores(3, 1, 6).expand(n, -1)
    uniform = torch.from_numpy(np.random.default_rng(1).random(n))
    found = draw(scores, log_norm(scores), torch.full((n, 1), 2), uniform, options)
    p = np.exp(scores[0].numpy() / 0.7) * (np.arange(6) != 2)
    p /= p.sum()
    shares = np.bincount(found.ids[:, 0], minlength=6) / n
    assert shares[2] == 0
    np.testing.assert_array_less(np.abs(shares - p), 5 * np.sqrt(p * (1 - p) / n) + 1e-12)
    # The log-probability is the model's, at temperature 1 and with nothing banned.
    np.testing.assert_allclose(found.log_probs[:50, 0], scores[0].log_softmax(0)[found.ids[:50, 0]])


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1.0, 0.0)])
def test_the_ends_of_the_distribution(uniform: float) -> None:
    """Neither draws an id without probability."""
    scores, options = torch.zeros(1, 5, dtype=torch.float64), DecodingConfig(method="sampling")
    banned = torch.tensor([[0, 4]])
    found = draw(scores, log_norm(scores), banned, torch.tensor([uniform], dtype=torch.float64), options)
    assert found.ids.tolist() == [[1 if uniform == 0 else 3]]
