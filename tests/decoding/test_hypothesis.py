"""Candidates and banned ids against loops over the words; the bound of scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nmt.config.schema import DecodingConfig
from nmt.decoding.hypothesis import (
    sample,
    sampling_probabilities,
    upper_bound,
    without_banned,
)
from nmt.decoding.model import k_best

seeds = st.integers(0, 10_000)


def make_log_probs(seed: int, rows: int, size: int) -> NDArray[np.float64]:
    logits = np.random.default_rng(seed).normal(size=(rows, size)) * 3
    return np.array([row - np.log(np.exp(row).sum()) for row in logits])


@given(seeds, st.integers(1, 4), st.integers(0, 5))
def test_banned_tokens_have_no_probability(seed: int, width: int, n_banned: int) -> None:
    log_probs = make_log_probs(seed, 3, 9)
    banned = np.random.default_rng(seed).integers(0, 9, (3, n_banned))
    candidates = without_banned(*k_best(log_probs, width + n_banned), banned)
    for row in range(3):
        expected = [i for i in np.argsort(-log_probs[row]).tolist() if i not in banned[row]]
        possible = np.isfinite(candidates.log_probs[row])
        assert candidates.ids[row][possible].tolist()[:width] == expected[:width]
        np.testing.assert_array_equal(
            candidates.log_probs[row][possible][:width], log_probs[row][expected[:width]]
        )


def nucleus(
    log_probs: NDArray[np.float64], temperature: float, top_k: int | None, top_p: float
) -> NDArray[np.float64]:
    """Top-k and top-p, one id at a time."""
    order = np.argsort(-log_probs)[:top_k]
    p = np.exp(log_probs[order] / temperature)
    p /= p.sum()
    kept = [int(np.searchsorted(p.cumsum(), top_p, side="left")) + 1, len(p)]
    result = np.zeros(len(log_probs))
    result[order[: min(kept)]] = p[: min(kept)]
    return result


@given(
    seeds,
    st.sampled_from([0.3, 1.0, 2.0]),
    st.sampled_from([None, 1, 3, 20]),
    st.sampled_from([0.1, 0.5, 0.95, 1.0]),
)
def test_top_k_and_top_p(seed: int, temperature: float, top_k: int | None, top_p: float) -> None:
    log_probs = make_log_probs(seed, 4, 9)
    options = DecodingConfig(method="sampling", temperature=temperature, top_k=top_k, top_p=top_p)
    sampled = sampling_probabilities(log_probs, options)
    expected = [nucleus(row, temperature, top_k, top_p) for row in log_probs]
    np.testing.assert_allclose(sampled, expected, atol=1e-12)


def test_samples_follow_the_distribution() -> None:
    """100,000 samples: each share within five standard deviations; a banned id is never sampled."""
    n, options = 100_000, DecodingConfig(method="sampling", temperature=0.7)
    (row,) = make_log_probs(3, 1, 6)
    uniform = np.random.default_rng(1).random(n)
    candidates = sample(np.tile(row, (n, 1)), np.full((n, 1), 2), uniform, options)
    p = np.exp(row / 0.7) * (np.arange(6) != 2)
    p /= p.sum()
    shares = np.bincount(candidates.ids[:, 0], minlength=6) / n
    assert shares[2] == 0
    np.testing.assert_array_less(np.abs(shares - p), 5 * np.sqrt(p * (1 - p) / n) + 1e-12)
    # The log-probability is the model's, at temperature 1 and with nothing banned.
    np.testing.assert_array_equal(candidates.log_probs, row[candidates.ids])


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1.0, 0.0)])
def test_the_ends_of_the_distribution(uniform: float) -> None:
    """Neither samples an id of probability 0."""
    log_probs, banned = np.full((1, 5), np.log(0.2)), np.array([[0, 4]])
    candidates = sample(log_probs, banned, np.array([uniform]), DecodingConfig(method="sampling"))
    assert candidates.ids.tolist() == [[1 if uniform == 0 else 3]]


# --- Scores


@given(
    st.builds(DecodingConfig, length_penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0])),
    st.integers(1, 6),
    st.lists(st.floats(-9, 0), min_size=1, max_size=8),
)
def test_nothing_exceeds_the_bound(
    options: DecodingConfig, length: int, steps: list[float]
) -> None:
    """After `length` tokens, up to 8 more may come: no continuation scores above the bound."""
    log_prob, max_length = -1.7, length + 8
    (limit,) = upper_bound(np.array([log_prob]), np.array([float(max_length)]), options)
    score = (log_prob + sum(steps)) / (length + len(steps)) ** options.length_penalty
    assert score <= limit + 1e-12
