"""The optimizers, and the schedules of the learning rate and of teacher forcing.

Schedules are pure functions of the progress of the training, so that resuming needs no state of a
scheduler.
"""

from collections.abc import Callable, Iterable
from math import cos, exp, log, pi, sqrt
from typing import NamedTuple

from torch.nn import Parameter
from torch.optim import SGD, Adafactor, Adam, AdamW, Optimizer

from nmt.config.schema import (
    ForcingSchedule,
    LearningRateConfig,
    LearningRateSchedule,
    OptimizerName,
    TeacherForcingConfig,
    TrainingConfig,
)

# Each update sets the learning rate.
OPTIMIZERS: dict[OptimizerName, Callable[[Iterable[Parameter], TrainingConfig], Optimizer]] = {
    # Decoupled weight decay (Loshchilov & Hutter 2019); where it is 0, Adam (Kingma & Ba 2015).
    "adamw": lambda parameters, config: AdamW(
        parameters, config.learning_rate.peak, weight_decay=config.weight_decay, fused=True
    ),
    # Weight decay in the gradient.
    "adam": lambda parameters, config: Adam(
        parameters, config.learning_rate.peak, weight_decay=config.weight_decay, fused=True
    ),
    "sgd": lambda parameters, config: SGD(
        parameters,
        config.learning_rate.peak,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        fused=True,
    ),
    # Second moments by row and column only, to save memory (Shazeer & Stern 2018).
    "adafactor": lambda parameters, config: Adafactor(
        parameters, config.learning_rate.peak, weight_decay=config.weight_decay
    ),
}


class Moment(NamedTuple):
    """The progress of a training before an update, as far as schedules depend on it.

    Attributes:
        step: of the update, counted from 1.
        reductions: how often validations without improvement have lowered the learning rate.
        fraction: the finished part of the training, from 0 to 1 (`Progress.fraction`).
    """

    step: int
    reductions: int = 0
    fraction: float = 0.0


# The rate after warm-up.
LEARNING_RATE_SCHEDULES: dict[
    LearningRateSchedule, Callable[[Moment, LearningRateConfig], float]
] = {
    "constant": lambda _, config: config.peak,
    "inverse_sqrt": lambda moment, config: (
        config.peak * sqrt(max(1, config.warmup_steps) / moment.step)
    ),
    "linear": lambda moment, config: _between(1 - _decay_fraction(moment, config), config),
    "cosine": lambda moment, config: _between(
        (1 + cos(pi * _decay_fraction(moment, config))) / 2, config
    ),
    "step": lambda moment, config: _reduced(
        (moment.step - config.warmup_steps - 1) // (config.steps or 1), config
    ),
    "plateau": lambda moment, config: _reduced(moment.reductions, config),
}


def learning_rate(moment: Moment, config: LearningRateConfig) -> float:
    """The rate of an update: a linear rise to the peak over the warm-up, then the schedule.

    A schedule that lasts for the whole training also lowers the rate during the warm-up, so that it
    reaches the floor in any case.
    """
    if moment.step > config.warmup_steps:
        return LEARNING_RATE_SCHEDULES[config.schedule](moment, config)
    rate = config.peak * moment.step / config.warmup_steps
    if lasts_for_training(config):
        rate = min(rate, LEARNING_RATE_SCHEDULES[config.schedule](moment, config))
    return rate


def lasts_for_training(config: LearningRateConfig) -> bool:
    """Whether the schedule spans the whole training, so that the limits of the training change its
    rates.
    """
    return config.steps is None and config.schedule in ("linear", "cosine")


def _between(share: float, config: LearningRateConfig) -> float:
    return config.floor + (config.peak - config.floor) * share


def _reduced(times: int, config: LearningRateConfig) -> float:
    return max(config.floor, config.peak * config.factor**times)


def _decay_fraction(moment: Moment, config: LearningRateConfig) -> float:
    """How far the step is between the end of warm-up (0) and `steps` (1). Without `steps`, the
    finished part of the training.
    """
    if config.steps is None:
        return moment.fraction
    return min(
        1.0, max(0, moment.step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
    )


# How far from `start` (0) to `end` (1) the ratio is, from x = step / steps in [0, 1] (Bengio 2015,
# 2.4).
FORCING_SCHEDULES: dict[ForcingSchedule, Callable[[float], float]] = {
    "constant": lambda _: 0.0,
    "linear": lambda x: x,
    "exponential": lambda x: 1 - exp(-log(100) * x) if x < 1 else 1.0,
    "inverse_sigmoid": lambda x: 1 / (1 + exp(-12 * (x - 0.5))) if x < 1 else 1.0,
}


def forcing_ratio(step: int, config: TeacherForcingConfig) -> float:
    """The probability of feeding the reference at update `step`, counted from 1."""
    passed = FORCING_SCHEDULES[config.schedule](min(1.0, (step - 1) / config.steps))
    return config.start + (config.end - config.start) * passed
