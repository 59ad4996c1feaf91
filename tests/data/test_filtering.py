"""nmt.data.filtering: why pairs are dropped."""

import pytest

from nmt.config.schema import CleaningConfig
from nmt.data import filtering

CONFIG = CleaningConfig(max_characters=50, max_length_ratio=2.0)


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [
        ("Hi.", "Hallo!", None),
        ("", "Hallo!", filtering.EMPTY_SOURCE),
        ("Hi.", "", filtering.EMPTY_TARGET),
        ("a" * 50, "b" * 50, None),
        ("a" * 51, "b" * 50, filtering.TOO_LONG),
        ("a" * 50, "b" * 51, filtering.TOO_LONG),
        ("a" * 10, "b" * 30, None),
        ("a" * 10, "b" * 31, filtering.LENGTH_RATIO),
        ("a" * 31, "b" * 10, filtering.LENGTH_RATIO),
    ],
)
def test_why_a_pair_is_dropped(src: str, tgt: str, reason: str | None) -> None:
    assert filtering.drop_reason(src, tgt, CONFIG) == reason
    assert reason is None or reason in filtering.DROP_REASONS
