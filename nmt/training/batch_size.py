"""`training.batch.size: auto`: the largest batch size that fits into the GPU's memory, found with
real updates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.optim import Optimizer

from nmt.config.schema import Config
from nmt.data.batches import plan_batches, read_batches
from nmt.data.corpus import Corpus
from nmt.errors import ConfigError, TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.training.loop import forward_backward
from nmt.training.objective import Objective

# one tenth of the size stays free: allocations leave gaps, which differ from update to update
MARGIN_DIVISOR = 10
TOLERANCE_DIVISOR = 8  # the search ends when the largest size is known to one eighth


@dataclass(frozen=True)
class BatchSizeResult:
    """The result of the search.

    Attributes:
        size: for `training.batch.size`, in target tokens.
        fitting: the largest size that fit.
        tried: its largest batches, each as (pairs, longest source, longest target), lengths in
            tokens.
    """

    size: int
    fitting: int
    tried: tuple[tuple[int, int, int], ...]

    def __str__(self) -> str:
        batches = " and ".join(
            f"{pairs:,} pairs of {src} and {tgt}" for pairs, src, tgt in self.tried
        )
        return (
            f"training.batch.size: auto is {self.size:,} target tokens; {self.fitting:,} fit into "
            "the memory, "
            f"tried with {batches} source and target tokens"
        )


def check_device(device: torch.device) -> None:
    """Raises: ConfigError: the device is not a GPU."""
    if device.type != "cuda":
        raise ConfigError(
            "training.batch.size: auto measures the memory of a GPU, but this training runs on "
            f"{device.type}; "
            "set a number, such as 2000"
        )


def with_batch_size(config: Config, size: int) -> Config:
    """The configuration with `training.batch.size` set to `size`."""
    batch = config.training.batch.model_copy(update={"size": size})
    return config.model_copy(
        update={"training": config.training.model_copy(update={"batch": batch})}
    )


def find_batch_size(
    model: Seq2Seq, optimizer: Optimizer, corpus: Corpus, config: Config
) -> BatchSizeResult:
    """The largest batch size whose every update fits into the GPU's memory, less a margin. The
    updates change the model.

    The size doubles until the memory overflows, or one batch holds all pairs; then bisection.

    Raises:
        TrainingError: not even the longest sentence alone fits.
    """
    model.train()
    smallest = int(corpus.tgt.lengths.max()) + 1
    size, fitting, overflowing = smallest, 0, 0
    tried: tuple[tuple[int, int, int], ...] = ()
    while not overflowing or overflowing - fitting > fitting // TOLERANCE_DIVISOR:
        batch_config = with_batch_size(config, size).training.batch
        plan = plan_batches(
            corpus.src.lengths, corpus.tgt.lengths, batch_config, key=(config.seed, 0)
        )
        largest = _largest_batches(corpus, plan)
        if _fits(model, optimizer, corpus, largest, config):
            fitting, tried = size, tuple(_shape(corpus, pairs) for pairs in largest)
        elif size == smallest:
            raise TrainingError(
                f"out of memory with batches of {smallest} target tokens, which the longest "
                "sentence needs alone; "
                "lower data.cleaning.max_characters, or the model's sizes"
            )
        else:
            overflowing = size
        if fitting and len(plan) == 1:
            break
        size = (fitting + overflowing) // 2 if overflowing else 2 * fitting
    return BatchSizeResult(max(smallest, fitting - fitting // MARGIN_DIVISOR), fitting, tried)


def _largest_batches(corpus: Corpus, plan: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """The batch of an epoch with the most positions, and that with the most (source, target)
    position pairs, for attention.

    Batches of other epochs hold other pairs, but of the same lengths.
    """
    pairs, src, tgt = np.array([_shape(corpus, batch) for batch in plan]).T
    return [
        plan[index]
        for index in np.unique([(pairs * (src + tgt)).argmax(), (pairs * src * tgt).argmax()])
    ]


def _shape(corpus: Corpus, pairs: NDArray[np.int64]) -> tuple[int, int, int]:
    """Number of pairs, longest source, longest target; lengths in tokens with <eos>."""
    return (
        len(pairs),
        int(corpus.src.lengths[pairs].max()) + 1,
        int(corpus.tgt.lengths[pairs].max()) + 1,
    )


def _fits(
    model: Seq2Seq,
    optimizer: Optimizer,
    corpus: Corpus,
    batches: Sequence[NDArray[np.int64]],
    config: Config,
) -> bool:
    """Whether an update with each batch fits into the memory."""
    fits, objective = True, Objective(model, config.training)
    try:
        for batch in read_batches(corpus, batches):
            forward_backward(objective, optimizer, [batch], 1, config)
            optimizer.step()
    except torch.OutOfMemoryError:
        fits = False
    optimizer.zero_grad()
    # after the handler: within it, the failed pass still holds its tensors
    torch.cuda.empty_cache()
    return fits
