"""The optimizers, and the schedules of the learning rate and of teacher forcing.

Schedules are pure functions of the step, so that resuming needs no state of a scheduler.
"""

from collections.abc import Callable, Iterable
from math import cos, exp, log, pi, sqrt

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
from nmt.model.seq2seq import Seq2Seq

OPTIMIZERS: dict[OptimizerName, Callable[[Iterable[Parameter], TrainingConfig], Optimizer]] = {
    # Decoupled weight decay (Loshchilov & Hutter 2019); plain Adam (Kingma & Ba 2015) where it is 0.
    "adamw": lambda parameters, config: AdamW(parameters, config.learning_rate.peak, weight_decay=config.weight_decay, fused=True),
    # Weight decay in the gradient.
    "adam": lambda parameters, config: Adam(parameters, config.learning_rate.peak, weight_decay=config.weight_decay, fused=True),
    "sgd": lambda parameters, config: SGD(
        parameters, config.learning_rate.peak, momentum=config.momentum, weight_decay=config.weight_decay, fused=True
    ),
    # Second moments by row and column only, to save memory (Shazeer & Stern 2018).
    "adafactor": lambda parameters, config: Adafactor(parameters, config.learning_rate.peak, weight_decay=config.weight_decay),
}


def build_optimizer(model: Seq2Seq, config: TrainingConfig) -> Optimizer:
    """The optimizer that the configuration names; the loop sets its learning rate at each update."""
    return OPTIMIZERS[config.optimizer](model.parameters(), config)


# The rate after warm-up, from the step (at least 1), the number of reductions at plateaus, and the configuration.
LEARNING_RATE_SCHEDULES: dict[LearningRateSchedule, Callable[[int, int, LearningRateConfig], float]] = {
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
    return LEARNING_RATE_SCHEDULES[config.schedule](step, reductions, config)


def _between(share: float, config: LearningRateConfig) -> float:
    return config.floor + (config.peak - config.floor) * share


def _reduced(times: int, config: LearningRateConfig) -> float:
    return max(config.floor, config.peak * config.factor**times)


def _fraction(step: int, config: LearningRateConfig) -> float:
    """How far `step` is between the end of warm-up (0) and `steps` (1)."""
    return min(1.0, max(0, step - config.warmup_steps) / max(1, config.steps - config.warmup_steps))


# How far from `start` (0) to `end` (1) the ratio has come, from x = step / steps in [0, 1] (Bengio 2015, 2.4).
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
