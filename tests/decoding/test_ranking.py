"""The ranking against Wu 2016, eq. 14, and the bound against whatever may come."""

from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import DecodingConfig
from nmt.decoding.ranking import LEAST_COVERED, LENGTH_FORMULAS, bound, rank


def test_power_is_the_mean_at_1_and_nothing_at_0() -> None:
    assert rank(-6, 4, None, DecodingConfig(length_penalty=1)) == -1.5
    assert rank(-6, 4, None, DecodingConfig(length_penalty=0)) == -6
    assert rank(-6, 4, None, DecodingConfig(length_penalty=0.5)) == -3


def test_wu() -> None:
    """(5 + 7)^1 / (5 + 1)^1 = 2; at length 1 it is 1 whatever the exponent."""
    assert rank(-6, 7, None, DecodingConfig(length_formula="wu")) == -3
    assert rank(-6, 1, None, DecodingConfig(length_formula="wu", length_penalty=0.6)) == pytest.approx(-6)


def test_coverage_counts_up_to_1() -> None:
    """The columns sum to 1.5, 0.5 and 0: log 1 + log 0.5 + the most that an unseen token can cost."""
    attention = np.array([[0.9, 0.1, 0], [0.6, 0.4, 0]], np.float32)
    score = rank(-6, 2, attention, DecodingConfig(coverage_penalty=0.2))
    assert score == pytest.approx(-3 + 0.2 * (log(0.5) + log(LEAST_COVERED)))


def test_each_formula_is_of_the_configuration() -> None:
    assert set(LENGTH_FORMULAS) == {"power", "wu"}


options = st.builds(
    DecodingConfig,
    length_formula=st.sampled_from(["power", "wu"]),
    length_penalty=st.floats(0, 3),
    coverage_penalty=st.floats(0, 3),
)


@given(options, st.integers(1, 6), st.lists(st.floats(-9, 0), min_size=1, max_size=8), st.integers(0, 10_000))
def test_nothing_exceeds_the_bound(options: DecodingConfig, said: int, steps: list[float], seed: int) -> None:
    """After `said` tokens, up to 8 more may come: each continuation is at most what was promised before it."""
    begun, max_length = -1.7, said + 8
    promised = float(bound(torch.tensor([begun]), torch.tensor([float(max_length)]), options))
    attention = np.random.default_rng(seed).dirichlet([0.3] * 5, said + len(steps)).astype(np.float32)
    assert rank(begun + sum(steps), said + len(steps), attention, options) <= promised + 1e-6
