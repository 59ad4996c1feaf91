"""nmt.evaluation.results: the limits that are not met."""

import pytest

from nmt.evaluation.results import missed_limits
from nmt.evaluation.scores import MetricScore

SCORES = [
    MetricScore("BLEU", 31.42, ""),
    MetricScore("chrF", 55.5, ""),
    MetricScore("TER", 48.25, ""),
]


@pytest.mark.parametrize(
    ("limits", "missed"),
    [
        ({}, []),
        ({"BLEU": 31.42, "chrF": 55.5, "TER": 48.25}, []),
        (
            {"BLEU": 32, "chrF": 50, "TER": 47.5},
            ["BLEU 31.42 is below 32, by 0.58", "TER 48.25 is above 47.5, by 0.75"],
        ),
    ],
)
def test_each_missed_limit_is_a_phrase(limits: dict[str, float], missed: list[str]) -> None:
    assert missed_limits(SCORES, limits) == missed


@pytest.mark.parametrize("metric", ["BLEU", "TER"])
def test_nan_meets_no_limit(metric: str) -> None:
    assert missed_limits(SCORES, {metric: float("nan")})
    assert missed_limits([MetricScore(metric, float("nan"), "")], {metric: 1})
