"""`training.precision: auto`: the faster precision, measured with this model, data and machine.

Flags of a processor do not tell: of two with the same instructions for bfloat16, one trains 1.6
times as fast with it, the other 1.6 times as slow.
"""

import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from math import inf

import torch

from nmt.config.schema import Config
from nmt.device import supports_mixed_precision
from nmt.errors import ConfigError, NmtWarning
from nmt.run.progress import Update
from nmt.training.loop import Training, add_gradients, split_in_half, updates
from nmt.training.loss import Loss
from nmt.training.optimization import forcing_ratio

PRECISIONS = ("float32", "bfloat16")
MIN_GAIN = 1.02  # bfloat16 must be faster by this factor: float32 is more exact
N_ROUNDS = 3  # of each update; the shortest counts: the first warms up, and others use the machine
# The measurement ends after one second if one precision is faster by this factor, else after five:
# on a busy machine, rates of one second differ by up to a quarter.
CLEAR_GAIN, CLEAR_SECONDS, MAX_SECONDS = 1.3, 1.0, 5.0


def check_precision(config: Config, device: torch.device) -> None:
    """Raises: ConfigError: bfloat16 is set, but cannot be used here."""
    if config.training.precision == "bfloat16" and not supports_mixed_precision(device):
        raise ConfigError(
            "training.precision: bfloat16 needs an NVIDIA GPU, or a processor with AVX-512 or "
            "ARM's BF16; train in float32"
        )


def choose_precision(training: Training) -> Training:
    """The training in float32 or bfloat16, with the rates of both, unless it is float32 anyway.
    All processes choose what the first one measures. Warns if bfloat16 is set but slower.

    Raises: as `check_precision`.
    """
    config = training.config
    check_precision(config, training.device)
    precision = config.training.precision
    if precision == "float32":
        return training
    rates = training.world.broadcast(
        measure_rates(training) if supports_mixed_precision(training.device) else {}
    )
    if precision == "auto":
        is_faster = bool(rates) and rates["bfloat16"] > MIN_GAIN * rates["float32"]
        precision = "bfloat16" if is_faster else "float32"
    elif rates["bfloat16"] < rates["float32"]:
        warnings.warn(
            f"training.precision: bfloat16 is slower here: {rates['bfloat16']:,.0f} tokens/s, "
            f"float32 {rates['float32']:,.0f}; a new training with auto takes the faster one",
            NmtWarning,
            stacklevel=2,
        )
    return replace(training, config=with_precision(config, precision), rates=rates)


def measure_rates(training: Training) -> dict[str, float]:
    """Target tokens per second of this process in forward and backward passes of the first
    updates, in each precision. The weights stay as they are.
    """
    config = training.config
    trials = {name: replace(training, config=with_precision(config, name)) for name in PRECISIONS}
    loss = Loss(training.model.train(), config.training)
    start = time.perf_counter()
    seconds = dict.fromkeys(PRECISIONS, 0.0)
    n_tokens = 0
    for update in updates(training):
        shortest = dict.fromkeys(PRECISIONS, inf)
        for _ in range(N_ROUNDS):
            for name in PRECISIONS:
                shortest[name] = min(shortest[name], time_pass(loss, trials[name], update))
            if time.perf_counter() - start > MAX_SECONDS:  # an update may take long
                break
        for name in PRECISIONS:
            seconds[name] += shortest[name]
        n_tokens += sum(batch.n_tokens for batch in update.micro_batches)
        is_clear = max(seconds.values()) > CLEAR_GAIN * min(seconds.values())
        if time.perf_counter() - start > (CLEAR_SECONDS if is_clear else MAX_SECONDS):
            break
    training.optimizer.zero_grad()
    return {name: n_tokens / seconds[name] for name in PRECISIONS}


def time_pass(loss: Loss, training: Training, update: Update) -> float:
    """The seconds of a forward and backward pass."""
    start = time.perf_counter()
    ratio = forcing_ratio(update.step, training.config.training.teacher_forcing)
    while (sums := add_gradients(loss, training, update, ratio)) is None:
        update = split_in_half(update)
    sums.tolist()  # waits for a GPU
    return time.perf_counter() - start


def describe_precision(precision: str, rates: Mapping[str, float]) -> str:
    """The precision for the user, with its measured rate, and that of the other one."""
    if not rates:
        return precision
    other = "float32" if precision == "bfloat16" else "bfloat16"
    return (
        f"{precision} ({rates[precision]:,.0f} tokens/s without updates; "
        f"{other}: {rates[other]:,.0f})"
    )


def with_precision(config: Config, precision: str) -> Config:
    """The same configuration with another `training.precision`."""
    training = config.training.model_copy(update={"precision": precision})
    return config.model_copy(update={"training": training})
