"""Keys and values that have left nmt: what is off is ignored, what is on is one clear line."""

from typing import Any

import pytest

from nmt.config.load import RETIRED, RETIRED_VALUES, config_from_dict
from tests.config.examples import MINIMAL, problems_of, values_with


def values_of(key: str, value: Any) -> dict[str, Any]:
    for part in reversed(key.split(".")):
        value = {part: value}
    (section, content), *_ = value.items()
    return values_with(**{section: content})


@pytest.mark.parametrize("key", RETIRED)
def test_what_is_off_is_ignored(key: str) -> None:
    for value in RETIRED[key] or ("anything",):
        assert config_from_dict(values_of(key, value)) == MINIMAL


@pytest.mark.parametrize("key", [key for key, off in RETIRED.items() if off])
def test_what_is_on_is_named(key: str) -> None:
    (problem,) = problems_of(values_of(key, 5))
    assert problem.startswith(f"{key}: left nmt in 0.2, where it is always ")
    assert problem.endswith("; remove it, or use nmt 0.1 for this run")


@pytest.mark.parametrize(("key", "value"), RETIRED_VALUES.items())
def test_retired_values_are_named(key: str, value: str) -> None:
    text = f'{key}: "{value}" left nmt in 0.2; choose another value, or use nmt 0.1 for this run'
    assert problems_of(values_of(key, value)) == [text]


def test_all_problems_are_named_at_once() -> None:
    values = values_with(training={"r_drop": 5, "epochs": 0})
    assert problems_of(values) == [
        "training.r_drop: left nmt in 0.2, where it is always 0; remove it, or use nmt 0.1 for "
        "this run",
        "training.epochs: must be at least 1; got 0",
    ]
