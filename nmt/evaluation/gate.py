"""A gate for continuous integration: the conditions that an evaluation must meet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nmt.errors import ConfigError
from nmt.evaluation.scores import METRICS, MetricScore
from nmt.extras.analysis.significance import Difference


@dataclass(frozen=True)
class Gate:
    """The conditions.

    Attributes:
        limits: metric -> its minimum; its maximum for a metric where less is better.
        alpha: the significance level at which the first metric must not be worse than another
            system's; None for no such condition.

    Raises:
        ConfigError: alpha is not between 0 and 1.
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    alpha: float | None = None

    def __post_init__(self) -> None:
        if self.alpha is not None and not 0 < self.alpha < 1:
            raise ConfigError(f"--alpha {self.alpha:g}: give a probability between 0 and 1")

    def failures(
        self, scores: Sequence[MetricScore], differences: Sequence[Difference] = ()
    ) -> list[str]:
        """The conditions that are not met, and by how much."""
        values = {score.name: score.value for score in scores}
        failures = [
            failure
            for metric, limit in self.limits.items()
            if (failure := _check_limit(metric, values[metric], limit))
        ]
        if self.alpha is not None and differences and differences[0].is_worse(self.alpha):
            first = differences[0]
            failures.append(
                f"{first.metric} {first.value:.2f} is worse than {first.other:.2f}, by "
                f"{abs(first.difference):.2f} "
                f"(p = {first.p_randomization:.4f} < {self.alpha:g})"
            )
        return failures


def _check_limit(metric: str, value: float, limit: float) -> str | None:
    if METRICS[metric].less_is_better:
        return (
            None
            if value <= limit
            else f"{metric} {value:.2f} is above {limit:g}, by {value - limit:.2f}"
        )
    return (
        None
        if value >= limit
        else f"{metric} {value:.2f} is below {limit:g}, by {limit - value:.2f}"
    )
