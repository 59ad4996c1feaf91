"""What the check of equal results reads, and calls different."""

import pytest

from scripts.check_same import flatten, verdict


def test_values_have_paths_and_times_are_left_out() -> None:
    results = {"scores": [{"score": 1.5}, {"score": 2}], "lines": [1, 2], "translation_seconds": 3}
    assert [*flatten(results)] == [
        ("scores.0.score", "1.5"),
        ("scores.1.score", "2"),
        ("lines", "[1, 2]"),
    ]


@pytest.mark.parametrize(
    ("name", "before", "now", "expected"),
    [
        ("runs/a/model", "1", "1", "equal"),
        ("runs/a/model", "1", "2", "DIFFERENT"),
        ("runs/a/model", "1", None, "DIFFERENT"),
        ("evaluate/run/leaks.near", "1", None, "gone"),
        ("evaluate/run/loss", None, "1", "new"),
        ("evaluate/run/error", None, "no such run", "DIFFERENT"),
    ],
)
def test_verdicts(name: str, before: str | None, now: str | None, expected: str) -> None:
    records = [{} if value is None else {name: value} for value in (before, now)]
    assert verdict(name, *records) == expected
