"""How large batches can be: found out on the GPU that will train, with the sentences that it will train on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.optim import Optimizer

from nmt.config.schema import Config
from nmt.data.batching import plan_batches, read_batches
from nmt.data.corpus import Corpus
from nmt.errors import ConfigError, TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.training.loop import forward_backward

MARGIN = 10  # one part in so many is left free: what is allocated and freed again leaves gaps, and the next update others
EXACTNESS = 8  # the search ends when what may still be gained is less than one part in so many


@dataclass(frozen=True)
class BatchSizeResult:
    """What was found.

    Attributes:
        size: for `training.batch.size`, in target tokens.
        fitting: the greatest that was seen to fit.
        tried: the dearest batches it makes, each as pairs, source and target tokens of the longest.
    """

    size: int
    fitting: int
    tried: tuple[tuple[int, int, int], ...]

    def __str__(self) -> str:
        batches = " and ".join(f"{pairs:,} pairs of {src} and {tgt}" for pairs, src, tgt in self.tried)
        return (
            f"training.batch.size: auto is {self.size:,} target tokens; {self.fitting:,} fit into the memory, "
            f"tried with {batches} source and target tokens"
        )


def check_device(device: torch.device) -> None:
    """Raises: ConfigError if there is no memory of its own that could be measured."""
    if device.type != "cuda":
        raise ConfigError(
            f"training.batch.size: auto measures the memory of a GPU, and this trains on {device.type}; set a number, such as 2000"
        )


def with_size(config: Config, size: int) -> Config:
    """The configuration with batches of `size`."""
    batch = config.training.batch.model_copy(update={"size": size})
    return config.model_copy(update={"training": config.training.model_copy(update={"batch": batch})})


def measure(model: Seq2Seq, optimizer: Optimizer, corpus: Corpus, config: Config) -> BatchSizeResult:
    """The greatest size of batches whose every update fits into the GPU's memory, less a margin; the model is of no use afterwards.

    Sizes are doubled until the memory overflows, or one batch holds all pairs; then what lies between is halved.

    Raises:
        TrainingError: not even the longest sentence alone fits.
    """
    model.train()
    least = int(corpus.tgt.lengths.max()) + 1
    size, fitting, overflowing = least, 0, 0
    tried: tuple[tuple[int, int, int], ...] = ()
    while not overflowing or overflowing - fitting > fitting // EXACTNESS:
        plan = plan_batches(
            corpus.src.lengths, corpus.tgt.lengths, with_size(config, size).training.batch, seed=config.seed, epoch=0
        )
        dearest = _dearest(corpus, plan)
        if _fit(model, optimizer, corpus, dearest, config):
            fitting, tried = size, tuple(_shape(corpus, pairs) for pairs in dearest)
        elif size == least:
            raise TrainingError(
                f"out of memory with batches of {least} target tokens, which the longest sentence has alone; "
                "lower data.cleaning.max_characters, or the model's sizes"
            )
        else:
            overflowing = size
        if fitting and len(plan) == 1:
            break
        size = (fitting + overflowing) // 2 if overflowing else 2 * fitting
    return BatchSizeResult(max(least, fitting - fitting // MARGIN), fitting, tried)


def _dearest(corpus: Corpus, plan: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Of the batches of an epoch that with most positions, and that with most pairs of positions, which attention scores.

    Other epochs have other pairs in them, but of the same lengths.
    """
    pairs, src, tgt = np.array([_shape(corpus, batch) for batch in plan]).T
    return [plan[index] for index in np.unique([(pairs * (src + tgt)).argmax(), (pairs * src * tgt).argmax()])]


def _shape(corpus: Corpus, pairs: NDArray[np.int64]) -> tuple[int, int, int]:
    """How many pairs, and the longest source and target, <eos> counted."""
    return len(pairs), int(corpus.src.lengths[pairs].max()) + 1, int(corpus.tgt.lengths[pairs].max()) + 1


def _fit(model: Seq2Seq, optimizer: Optimizer, corpus: Corpus, batches: Sequence[NDArray[np.int64]], config: Config) -> bool:
    """Whether an update with each of `batches` fits into the memory."""
    fits = True
    try:
        for batch in read_batches(corpus, batches):
            forward_backward(model, optimizer, [batch], 1, config, 0)
            optimizer.step()
    except torch.OutOfMemoryError:
        fits = False
    optimizer.zero_grad()
    torch.cuda.empty_cache()  # here, for within the handler the failed pass still holds its tensors
    return fits
