"""The score that ranks hypotheses, s = log P / lp(length) + cp (Wu 2016, eq. 14), and an upper
bound for open hypotheses.

Search uses these functions during and after the search, with unnormalized log-probabilities: there
is no second formula.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nmt.config.schema import DecodingConfig, LengthFormula

LengthT = TypeVar("LengthT", float, Tensor)

MIN_COVERAGE = (
    1.0e-3  # a source token without any attention costs 6.9 times the penalty instead of infinity
)

# length -> lp before the exponent; each is above 0 from length 1 on, and grows with the length.
LENGTH_FORMULAS: dict[LengthFormula, Callable[[Any], Any]] = {
    "power": lambda length: length,
    "wu": lambda length: (5 + length) / 6,
}


def hypothesis_score(
    log_prob: float,
    length: int,
    attention_sums: NDArray[np.float64] | None,
    options: DecodingConfig,
) -> float:
    """The score of a finished hypothesis.

    Args:
        length: tokens, <eos> counted.
        attention_sums: [S], the attention that each source token received in all steps; None
            without a coverage penalty.
    """
    score = log_prob / length_penalty(float(length), options)
    return score if attention_sums is None else score + coverage_penalty(attention_sums, options)


def length_penalty(length: LengthT, options: DecodingConfig) -> LengthT:
    """lp of `length` tokens. power: length ** alpha, with alpha = 1 the mean of the tokens; wu: ((5
    + length) / 6) ** alpha.
    """
    penalty: LengthT = LENGTH_FORMULAS[options.length_formula](length) ** options.length_penalty
    return penalty


def coverage_penalty(attention_sums: NDArray[np.float64], options: DecodingConfig) -> float:
    """cp = beta * sum_j log min(sum_t alpha_tj, 1), for attention sums [S]; never above 0."""
    covered = np.clip(attention_sums, MIN_COVERAGE, 1)
    return options.coverage_penalty * float(np.log(covered).sum())


def upper_bound(log_prob: Tensor, max_length: Tensor, options: DecodingConfig) -> Tensor:
    """The highest score that any continuation of at most `max_length` [b] tokens can have, for
    hypotheses of `log_prob` [b].

    Proof. A continuation of T <= max_length tokens has log P <= log_prob <= 0, because no
    probability is above 1. lp is above 0 and never falls with the length, as alpha >= 0; and
    dividing a number that is not above 0 by a larger lp brings it nearer to 0. So log P / lp(T) <=
    log_prob / lp(T) <= log_prob / lp(max_length). And cp <= 0, as beta >= 0. Banned and forced
    tokens only remove continuations.
    """
    return log_prob.clamp(max=0) / length_penalty(max_length, options)
