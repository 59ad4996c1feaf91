"""Whether a text repeats itself, as a decoder does that has lost its way."""

from collections.abc import Sequence
from itertools import pairwise

LONGEST_PERIOD = 20  # tokens that come again together


def repeats(tokens: Sequence[str], times: int) -> bool:
    """Whether some tokens come so many times in a row; a single one, which may well be doubled, once more."""
    for period in range(1, min(LONGEST_PERIOD, len(tokens) // times) + 1):
        needed = period * (times - 1 if period > 1 else times)  # in a row, equal to what stands a period further on
        differing = [-1, *(i for i in range(len(tokens) - period) if tokens[i] != tokens[i + period]), len(tokens) - period]
        if any(after - before > needed for before, after in pairwise(differing)):
            return True
    return False
