"""`nmt train --dry-run`: sizes, schedules, and an estimate of time and memory from a few updates
that are thrown away.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.optim import Optimizer

from nmt.config.parts import DeviceName
from nmt.config.schema import Config
from nmt.data.batches import divide_epoch, plan_batches, read_batches, shard
from nmt.data.corpus import Corpus, load_training_corpus
from nmt.data.workers import peak_memory
from nmt.device import choose_precision, set_up_device
from nmt.errors import TrainingError
from nmt.extras.vectors.vectors import load_configured_vectors
from nmt.model.seq2seq import Seq2Seq, parameters_by_part
from nmt.report.sparkline import sparkline
from nmt.run.folder import build_model, check_prepared
from nmt.training.loop import forward_backward, train_step
from nmt.training.objective import Objective
from nmt.training.optimization import Moment, build_optimizer, forcing_ratio, learning_rate

N_TIMED_BATCHES = 16
SPARKLINE_WIDTH = 48  # characters
SIZE_STEPS = 8  # the search ends when the largest batch size is known to one eighth


def describe(config: Config, folder: Path | None = None, device: DeviceName = "auto") -> str:
    """The lines that `nmt train --dry-run` prints: parameters, schedules, and time and memory on
    this machine.

    Raises: as `nmt.commands.train.run`.
    """
    check_prepared(config)
    corpus, training = load_training_corpus(config), config.training
    n_pairs, corpus = (
        len(corpus),
        next(divide_epoch(len(corpus), seed=config.seed, epoch=0)).select(corpus),
    )
    if training.threads:
        torch.set_num_threads(training.threads)
    torch_device = set_up_device(device)
    training = training.model_copy(
        update={"precision": choose_precision(training.precision, torch_device)}
    )
    config = config.model_copy(update={"training": training})
    model = build_model(config.prepared_folder, config).to(torch_device)
    batch_size_lines: list[str] = []
    if torch_device.type == "cuda":
        batch_size_lines.append(str(find_batch_size(model, corpus, config)))
        model = build_model(config.prepared_folder, config).to(torch_device)
        torch.cuda.reset_peak_memory_stats(torch_device)
    lengths, n_shards = (corpus.src.lengths, corpus.tgt.lengths), training.accumulate
    plan = plan_batches(*lengths, training.batch, key=(config.seed, 0), n_shards=n_shards)
    n_positions = np.array(
        [len(pairs) * sum(int(side[pairs].max()) + 1 for side in lengths) for pairs in plan]
    )
    n_batches = round(len(plan) * n_pairs / len(corpus))
    seconds = (
        estimate_epoch(n_positions, _BatchTimer(model, corpus, plan, config))
        * n_pairs
        / len(corpus)
    )
    peak = (
        torch.cuda.max_memory_allocated(torch_device)
        if torch_device.type == "cuda"
        else peak_memory()
    )
    memory = "" if peak is None else f"; peak memory about {peak / 1e6:,.0f} MB"
    n_updates = _count_updates(config, n_batches, seconds / n_batches)
    times = (
        f"{_duration(seconds)} on this machine, all {n_updates:,} updates "
        f"{_duration(n_updates * seconds / n_batches)}"
    )
    return "\n".join(
        [
            *_list_parameters(model),
            *batch_size_lines,
            *(
                f"{side} vectors: {vectors.coverage}"
                for side, vectors in load_configured_vectors(config).items()
            ),
            *_draw_schedules(config, n_updates),
            (
                f"{n_pairs:,} pairs, {n_batches:,} batches per epoch; the run folder would be "
                f"{folder or config.run_folder}"
            ),
            f"an epoch takes about {times}, without validation{memory}",
        ]
    )


def estimate_epoch(n_positions: NDArray[np.int64], time_batch: Callable[[int], float]) -> float:
    """Estimate the seconds of an epoch: time a few batches, from the smallest to the largest, and
    interpolate the others.

    Args:
        n_positions: of each batch, with padding. time_batch: trains on the batch with this index;
            returns the seconds.
    """
    order = np.argsort(n_positions)
    timed_batches = order[
        np.unique(np.linspace(0, len(order) - 1, N_TIMED_BATCHES).round().astype(int))
    ].tolist()
    for index in (timed_batches[-1], timed_batches[0]):  # warm-up
        time_batch(index)
    seconds = [min(time_batch(index) for _ in range(2)) for index in timed_batches]
    return float(np.interp(n_positions, n_positions[timed_batches], seconds).sum())


class _BatchTimer:
    """Times real updates with batches of `plan`, reading included. They change the model."""

    def __init__(
        self, model: Seq2Seq, corpus: Corpus, plan: Sequence[NDArray[np.int64]], config: Config
    ) -> None:
        model.train()
        self.corpus, self.plan, self.config, self.step = corpus, plan, config, 0
        self.objective, self.optimizer = (
            Objective(model, config.training),
            build_optimizer(model, config.training),
        )

    def __call__(self, index: int) -> float:
        start_time = time.perf_counter()
        self.step += 1
        training = self.config.training
        shards = [pairs for pairs in shard(self.plan[index], training.accumulate) if len(pairs)]
        micro_batches = list(read_batches(self.corpus, shards))
        train_step(
            self.objective,
            self.optimizer,
            micro_batches,
            self.step,
            self.config,
            training.learning_rate.peak,
        )
        return time.perf_counter() - start_time


@dataclass(frozen=True)
class BatchSize:
    """The largest batch whose update fits into the GPU's memory.

    Attributes:
        size: for `training.batch.size`, in target tokens. fitting: the largest size that fit.
    """

    size: int
    fitting: int

    def __str__(self) -> str:
        return (
            f"memory for training.batch.unit=tokens training.batch.size={self.size} "
            f"({self.fitting:,} fit; a tenth stays free)"
        )


def find_batch_size(model: Seq2Seq, corpus: Corpus, config: Config) -> BatchSize:
    """The largest batch size whose every update fits into the GPU's memory, found with real
    updates that change the model, less a tenth: allocations leave gaps, which differ from update
    to update.

    The size doubles until the memory overflows, or one batch holds all pairs; then bisection.

    Raises:
        TrainingError: not even the longest sentence alone fits.
    """
    model.train()
    objective, optimizer = (
        Objective(model, config.training),
        build_optimizer(model, config.training),
    )
    lengths = corpus.src.lengths, corpus.tgt.lengths
    smallest = int(corpus.tgt.lengths.max()) + 1
    size, fitting, overflowing = smallest, 0, 0
    while not overflowing or overflowing - fitting > fitting // SIZE_STEPS:
        batch_config = config.training.batch.model_copy(update={"unit": "tokens", "size": size})
        plan = plan_batches(*lengths, batch_config, key=(config.seed, 0))
        if _fits(objective, optimizer, corpus, _largest_batches(corpus, plan), config):
            fitting = size
        elif size == smallest:
            raise TrainingError(
                f"out of memory with batches of {smallest} target tokens, which the longest "
                "sentence needs alone; lower data.cleaning.max_characters, or the model's sizes"
            )
        else:
            overflowing = size
        if fitting and len(plan) == 1:
            break
        size = (fitting + overflowing) // 2 if overflowing else 2 * fitting
    return BatchSize(max(smallest, fitting - fitting // 10), fitting)


def _largest_batches(corpus: Corpus, plan: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """The batch of an epoch with the most positions, and that with the most (source, target)
    position pairs, for attention.
    """
    sides = corpus.src.lengths, corpus.tgt.lengths
    shapes = [(len(pairs), *(int(side[pairs].max()) + 1 for side in sides)) for pairs in plan]
    pairs, src, tgt = np.array(shapes).T
    largest = {int((pairs * (src + tgt)).argmax()), int((pairs * src * tgt).argmax())}
    return [plan[index] for index in sorted(largest)]


def _fits(
    objective: Objective,
    optimizer: Optimizer,
    corpus: Corpus,
    batches: Sequence[NDArray[np.int64]],
    config: Config,
) -> bool:
    """Whether an update with each batch fits into the memory."""
    fits = True
    try:
        for batch in read_batches(corpus, batches):
            forward_backward(objective, optimizer, [batch], 1, config)
            optimizer.step()
    except torch.OutOfMemoryError:
        fits = False
    optimizer.zero_grad()
    # After the handler: within it, the failed pass still holds its tensors.
    torch.cuda.empty_cache()
    return fits


def _list_parameters(model: Seq2Seq) -> list[str]:
    counts, total = parameters_by_part(model)
    tied = " (tied ones counted once)" if total < sum(counts.values()) else ""
    lines = [f"{name:<16}{count:>12,} parameters" for name, count in counts.items()]
    return [*lines, f"{'total':<16}{total:>12,} parameters{tied}"]


def _count_updates(config: Config, n_batches: int, seconds: float) -> int:
    """The updates of the whole training, which take `seconds` each."""
    training = config.training
    count = training.epochs * n_batches
    if training.max_steps is not None:
        count = min(count, training.max_steps)
    if training.max_minutes is not None:
        count = max(1, min(count, round(60 * training.max_minutes / seconds)))
    return count


def _draw_schedules(config: Config, last: int) -> list[str]:
    """Sparklines of learning rate and teacher forcing over the whole training, until the update
    `last`.
    """
    training = config.training

    def rate(step: int) -> float:
        return learning_rate(Moment(step, fraction=(step - 1) / last), training.learning_rate)

    steps = np.unique(np.linspace(1, last, SPARKLINE_WIDTH).round().astype(int)).tolist()
    rates = [rate(step) for step in steps]
    ratios = [forcing_ratio(step, training.teacher_forcing) for step in steps]
    peak = rate(min(last, max(1, training.learning_rate.warmup_steps)))
    plateau = (
        ", lowered at plateaus of validation"
        if training.learning_rate.schedule == "plateau"
        else ""
    )
    return [
        (
            f"learning rate   {sparkline(rates)}  {max(*rates, peak):.2g} at most, "
            f"{rates[-1]:.2g} at "
            f"step {last}{plateau}"
        ),
        (
            f"forcing ratio   {sparkline(ratios)}  {ratios[0]:.2g} at step 1, {ratios[-1]:.2g} at "
            f"step {last}"
        ),
    ]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
