"""What the check of equal results makes smaller, reads, and calls different."""

import pytest

from scripts.check_same import flatten, smaller, verdict


def test_all_sizes_are_divided() -> None:
    model = {
        "embedding_size": 64,
        "encoder": {"hidden_size": 32, "layers": 2},
        "readout_size": None,
    }
    assert [*smaller({"model": model})] == [
        "model.embedding_size=16",
        "model.encoder.hidden_size=8",
    ]


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
