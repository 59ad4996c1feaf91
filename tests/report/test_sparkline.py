"""Curves of block characters."""

from nmt.report.sparkline import sparkline


def test_sparkline() -> None:
    assert sparkline([0, 1, 2]) == "▁▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([4, 3, 2], low=2) == "█▅▁"
    assert sparkline([3], low=3) == "▁"
