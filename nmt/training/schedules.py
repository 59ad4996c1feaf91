"""Learning rate and teacher forcing ratio as pure functions of the step, so that resuming needs no state of a scheduler."""

from collections.abc import Callable
from math import cos, exp, log, pi, sqrt

from nmt.config.schema import ForcingSchedule, LearningRateConfig, LearningRateSchedule, TeacherForcingConfig

# The rate after warm-up, from the step (at least 1), the number of reductions at plateaus, and the configuration.
LEARNING_RATES: dict[LearningRateSchedule, Callable[[int, int, LearningRateConfig], float]] = {
    "constant": lambda _step, _reductions, config: config.peak,
    "inverse_sqrt": lambda step, _reductions, config: config.peak * sqrt(max(1, config.warmup_steps) / step),
    "linear": lambda step, _reductions, config: _between(1 - _fraction(step, config), config),
    "cosine": lambda step, _reductions, config: _between((1 + cos(pi * _fraction(step, config))) / 2, config),
    "step": lambda step, _reductions, config: _reduced((step - config.warmup_steps - 1) // config.steps, config),
    "plateau": lambda _step, reductions, config: _reduced(reductions, config),
}


def learning_rate(step: int, config: LearningRateConfig, reductions: int = 0) -> float:
    """The rate of update `step`, counted from 1: a linear rise to the peak over the warm-up, then the schedule.

    Args:
        reductions: how often validations without improvement have lowered it; only for plateau.
    """
    if step <= config.warmup_steps:
        return config.peak * step / config.warmup_steps
    return LEARNING_RATES[config.schedule](step, reductions, config)


def _between(share: float, config: LearningRateConfig) -> float:
    return config.floor + (config.peak - config.floor) * share


def _reduced(times: int, config: LearningRateConfig) -> float:
    return max(config.floor, config.peak * config.factor**times)


def _fraction(step: int, config: LearningRateConfig) -> float:
    """How far `step` is between the end of warm-up (0) and `steps` (1)."""
    return min(1.0, max(0, step - config.warmup_steps) / max(1, config.steps - config.warmup_steps))


# How far from `start` (0) to `end` (1) the ratio has come, from x = step / steps in [0, 1] (Bengio 2015, 2.4).
FORCING: dict[ForcingSchedule, Callable[[float], float]] = {
    "constant": lambda _: 0.0,
    "linear": lambda x: x,
    "exponential": lambda x: 1 - exp(-log(100) * x) if x < 1 else 1.0,
    "inverse_sigmoid": lambda x: _sigmoid(12 * (x - 0.5)) if x < 1 else 1.0,
}


def forcing_ratio(step: int, config: TeacherForcingConfig) -> float:
    """The probability of feeding the reference at update `step`, counted from 1."""
    passed = FORCING[config.schedule](min(1.0, (step - 1) / config.steps))
    return config.start + (config.end - config.start) * passed


def _sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))
