"""A gate for continuous integration: what scores must reach, and by how much they do not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nmt.errors import ConfigError
from nmt.metrics.scores import METRICS, MetricScore
from nmt.metrics.significance import Difference


@dataclass(frozen=True)
class Gate:
    """What is asked for.

    Attributes:
        limits: metric -> the least it may be; for a metric of which less is better, the most.
        alpha: the level at which a system counts as worse than another in the first metric; None if there is no other.
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    alpha: float | None = None

    def __post_init__(self) -> None:
        """Raises: ConfigError if nothing could be worse at that level, or all would be."""
        if self.alpha is not None and not 0 < self.alpha < 1:
            raise ConfigError(f"--alpha {self.alpha:g}: give a probability between 0 and 1")

    def faults(self, scores: Sequence[MetricScore], differences: Sequence[Difference] = ()) -> list[str]:
        """What is not met, and by how much: a phrase each."""
        values = {score.name: score.value for score in scores}
        found = [fault for metric, limit in self.limits.items() if (fault := _fault(metric, values[metric], limit))]
        if self.alpha is not None:
            found += [_worse(one, self.alpha) for one in differences[:1] if one.is_worse(self.alpha)]
        return found


def _fault(metric: str, value: float, limit: float) -> str | None:
    if METRICS[metric].less_is_better:
        return None if value <= limit else f"{metric} {value:.2f} is above {limit:g}, by {value - limit:.2f}"
    return None if value >= limit else f"{metric} {value:.2f} is below {limit:g}, by {limit - value:.2f}"


def _worse(one: Difference, alpha: float) -> str:
    change = f"{one.metric} {one.value:.2f} is worse than {one.other:.2f}, by {abs(one.difference):.2f}"
    return f"{change} (p = {one.p_randomisation:.4f} < {alpha:g})"
