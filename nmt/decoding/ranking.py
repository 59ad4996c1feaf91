"""What hypotheses are ranked by: s = log P / lp(length) + cp (Wu 2016, eq. 14), and what no live one can exceed.

Raw log-probability and length come in apart, and there is no other formula: neither within the search nor after it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nmt.config.schema import DecodingConfig, LengthFormula

Lengths = TypeVar("Lengths", float, Tensor)

LEAST_COVERED = 1.0e-3  # a source token that was never looked at costs 6.9 times the penalty, not infinitely much

# length -> lp before the exponent; each is above 0 from length 1 on, and grows with the length.
LENGTH_FORMULAS: dict[LengthFormula, Callable[[Any], Any]] = {
    "power": lambda length: length,
    "wu": lambda length: (5 + length) / 6,
}


def rank(log_prob: float, length: int, attention: NDArray[np.float32] | None, options: DecodingConfig) -> float:
    """The score of what has ended: of so many tokens, <eos> counted, that looked at `attention` [T, S] (None without cp)."""
    score = log_prob / length_penalty(float(length), options)
    return score if attention is None else score + coverage_penalty(attention, options)


def length_penalty(length: Lengths, options: DecodingConfig) -> Lengths:
    """lp of `length` tokens. power: length ** alpha, with alpha = 1 the mean of the tokens; wu: ((5 + length) / 6) ** alpha."""
    penalty: Lengths = LENGTH_FORMULAS[options.length_formula](length) ** options.length_penalty
    return penalty


def coverage_penalty(attention: NDArray[np.float32], options: DecodingConfig) -> float:
    """cp = beta * sum_j log min(sum_t alpha_tj, 1): what the weights [T, S] have left unseen of the source; never above 0."""
    covered = np.clip(attention.sum(0, dtype=np.float64), LEAST_COVERED, 1)
    return options.coverage_penalty * float(np.log(covered).sum())


def bound(log_prob: Tensor, max_length: Tensor, options: DecodingConfig) -> Tensor:
    """What no continuation of a hypothesis of `log_prob` [b] can exceed, if it has at most `max_length` [b] tokens.

    Proof. A continuation of T <= max_length tokens has log P <= log_prob <= 0, for no probability is above 1. lp is above 0 and
    never falls with the length, alpha being at least 0; and to divide what is not above 0 by more brings it nearer to 0. So
    log P / lp(T) <= log_prob / lp(T) <= log_prob / lp(max_length). And cp <= 0, beta being at least 0. What is forbidden or forced
    only takes continuations away.
    """
    return log_prob.clamp(max=0) / length_penalty(max_length, options)
