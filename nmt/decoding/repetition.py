"""Repetition in the output of a decoder, a common sign of a bad translation."""

from collections.abc import Sequence
from itertools import pairwise

MAX_PERIOD = 20  # tokens in the repeated sequence


def repeats(tokens: Sequence[str], times: int) -> bool:
    """Whether a sequence of tokens occurs `times` times in a row (a single token `times` + 1 times,
    since words may be doubled).
    """
    for period in range(1, min(MAX_PERIOD, len(tokens) // times) + 1):
        needed = period * (
            times - 1 if period > 1 else times
        )  # consecutive tokens that equal the token one period later
        differing = [
            -1,
            *(i for i in range(len(tokens) - period) if tokens[i] != tokens[i + period]),
            len(tokens) - period,
        ]
        if any(after - before > needed for before, after in pairwise(differing)):
            return True
    return False
