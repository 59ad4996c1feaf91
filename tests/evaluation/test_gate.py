"""nmt.evaluation.gate: the conditions that are not met."""

import pytest

from nmt.errors import ConfigError
from nmt.evaluation.gate import Gate
from nmt.evaluation.scores import MetricScore
from nmt.extras.analysis.significance import Difference

SCORES = [
    MetricScore("BLEU", 31.42, ""),
    MetricScore("chrF", 55.5, ""),
    MetricScore("TER", 48.25, ""),
]


def test_conditions_that_are_met() -> None:
    assert Gate().failures(SCORES) == []
    assert Gate({"BLEU": 31.42, "chrF": 55.5, "TER": 48.25}).failures(SCORES) == []


def test_each_failure_is_a_phrase() -> None:
    assert Gate({"BLEU": 32, "chrF": 50, "TER": 47.5}).failures(SCORES) == [
        "BLEU 31.42 is below 32, by 0.58",
        "TER 48.25 is above 47.5, by 0.75",
    ]


@pytest.mark.parametrize("metric", ["BLEU", "TER"])
def test_nan_meets_no_condition(metric: str) -> None:
    assert Gate({metric: float("nan")}).failures(SCORES)
    assert Gate({metric: 1}).failures([MetricScore(metric, float("nan"), "")])


def test_worse_than_another_in_the_first_metric() -> None:
    worse = Difference("BLEU", 30, 31.5, 0.01, 0.01, "")
    other = Difference("chrF", 50, 55, 0.0001, 0.0001, "")
    assert Gate(alpha=0.05).failures(SCORES, [worse, other]) == [
        "BLEU 30.00 is worse than 31.50, by 1.50 (p = 0.0100 < 0.05)"
    ]
    assert Gate(alpha=0.01).failures(SCORES, [worse]) == []
    assert Gate(alpha=None).failures(SCORES, [worse]) == []
    better_ter = Difference("TER", 40, 45, 0.01, 0.01, "")
    assert Gate(alpha=0.05).failures(SCORES, [better_ter]) == []
    worse_ter = Difference("TER", 45, 40, 0.01, 0.01, "")
    assert Gate(alpha=0.05).failures(SCORES, [worse_ter]) == [
        "TER 45.00 is worse than 40.00, by 5.00 (p = 0.0100 < 0.05)"
    ]


@pytest.mark.parametrize("alpha", [0.0, 1.0, float("nan")])
def test_an_impossible_significance_level_is_refused(alpha: float) -> None:
    with pytest.raises(ConfigError, match=f"--alpha {alpha:g}: give a probability between 0 and 1"):
        Gate({}, alpha)
