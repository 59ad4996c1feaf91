"""nmt.evaluation.gate: what is not met, and by how much."""

import pytest

from nmt.errors import ConfigError
from nmt.evaluation.gate import Gate
from nmt.metrics.scores import MetricScore
from nmt.metrics.significance import Difference

SCORES = [MetricScore("BLEU", 31.42, ""), MetricScore("chrF", 55.5, ""), MetricScore("TER", 48.25, "")]


def test_what_is_asked_for_and_met() -> None:
    assert Gate().faults(SCORES) == []
    assert Gate({"BLEU": 31.42, "chrF": 55.5, "TER": 48.25}).faults(SCORES) == []


def test_each_fault_is_a_phrase() -> None:
    assert Gate({"BLEU": 32, "chrF": 50, "TER": 47.5}).faults(SCORES) == [
        "BLEU 31.42 is below 32, by 0.58",
        "TER 48.25 is above 47.5, by 0.75",
    ]


@pytest.mark.parametrize("metric", ["BLEU", "TER"])
def test_a_limit_or_a_score_that_is_no_number_is_not_met(metric: str) -> None:
    assert Gate({metric: float("nan")}).faults(SCORES)
    assert Gate({metric: 1}).faults([MetricScore(metric, float("nan"), "")])


def test_worse_than_another_in_the_first_metric() -> None:
    worse = Difference("BLEU", 30, 31.5, 0.01, 0.01, "")
    other = Difference("chrF", 50, 55, 0.0001, 0.0001, "")
    assert Gate(alpha=0.05).faults(SCORES, [worse, other]) == ["BLEU 30.00 is worse than 31.50, by 1.50 (p = 0.0100 < 0.05)"]
    assert Gate(alpha=0.01).faults(SCORES, [worse]) == []
    assert Gate(alpha=None).faults(SCORES, [worse]) == []
    better_ter = Difference("TER", 40, 45, 0.01, 0.01, "")
    assert Gate(alpha=0.05).faults(SCORES, [better_ter]) == []
    worse_ter = Difference("TER", 45, 40, 0.01, 0.01, "")
    assert Gate(alpha=0.05).faults(SCORES, [worse_ter]) == ["TER 45.00 is worse than 40.00, by 5.00 (p = 0.0100 < 0.05)"]


@pytest.mark.parametrize("alpha", [0.0, 1.0, float("nan")])
def test_a_level_that_cannot_decide_is_refused(alpha: float) -> None:
    with pytest.raises(ConfigError, match=f"--alpha {alpha:g}: give a probability between 0 and 1"):
        Gate({}, alpha)
