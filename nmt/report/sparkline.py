"""Curves of block characters, for the screen."""

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], low: float = 0.0) -> str:
    """A bar for each value, from `low` to the largest."""
    height = (max(values) - low) or 1.0
    return "".join(BARS[round((value - low) / height * (len(BARS) - 1))] for value in values)
