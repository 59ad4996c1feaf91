"""The score against Wu 2016, eq. 14, and the upper bound against random continuations."""

from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import DecodingConfig
from nmt.decoding.hypothesis import MIN_COVERAGE, hypothesis_score, upper_bound


def test_power_is_the_mean_at_1_and_nothing_at_0() -> None:
    assert hypothesis_score(-6, 4, None, DecodingConfig(length_penalty=1)) == -1.5
    assert hypothesis_score(-6, 4, None, DecodingConfig(length_penalty=0)) == -6
    assert hypothesis_score(-6, 4, None, DecodingConfig(length_penalty=0.5)) == -3


def test_wu() -> None:
    """(5 + 7)^1 / (5 + 1)^1 = 2; at length 1 it is 1 whatever the exponent."""
    assert hypothesis_score(-6, 7, None, DecodingConfig(length_formula="wu")) == -3
    assert hypothesis_score(
        -6, 1, None, DecodingConfig(length_formula="wu", length_penalty=0.6)
    ) == pytest.approx(-6)


def test_coverage_counts_up_to_1() -> None:
    """The columns sum to 1.5, 0.5 and 0: log 1 + log 0.5 + the limit for a token without
    attention.
    """
    attention = np.array([[0.9, 0.1, 0], [0.6, 0.4, 0]], np.float32)
    score = hypothesis_score(
        -6, 2, attention.sum(0, dtype=np.float64), DecodingConfig(coverage_penalty=0.2)
    )
    assert score == pytest.approx(-3 + 0.2 * (log(0.5) + log(MIN_COVERAGE)))


options = st.builds(
    DecodingConfig,
    length_formula=st.sampled_from(["power", "wu"]),
    length_penalty=st.floats(0, 3),
    coverage_penalty=st.floats(0, 3),
)


@given(
    options,
    st.integers(1, 6),
    st.lists(st.floats(-9, 0), min_size=1, max_size=8),
    st.integers(0, 10_000),
)
def test_nothing_exceeds_the_bound(
    options: DecodingConfig, length: int, steps: list[float], seed: int
) -> None:
    """After `length` tokens, up to 8 more may come: no continuation scores above the bound."""
    log_prob, max_length = -1.7, length + 8
    limit = float(upper_bound(torch.tensor([log_prob]), torch.tensor([float(max_length)]), options))
    sums = np.random.default_rng(seed).dirichlet([0.3] * 5, length + len(steps)).sum(0)
    assert (
        hypothesis_score(log_prob + sum(steps), length + len(steps), sums, options) <= limit + 1e-6
    )
