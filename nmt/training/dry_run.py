"""`nmt train --dry-run`: sizes, and an estimate of time and memory from a few updates that are
thrown away.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.config.parts import DeviceName
from nmt.config.schema import Config
from nmt.data.batches import divide_epoch, plan_batches, read_batches, shard
from nmt.data.training_corpus import load_training_corpus
from nmt.data.workers import peak_memory
from nmt.device import keep_freed_memory, set_up_device
from nmt.model.seq2seq import parameters_by_part
from nmt.run.folder import check_prepared
from nmt.run.progress import Update
from nmt.run.weights import build_model
from nmt.training.loop import Training, train_step
from nmt.training.loss import Loss
from nmt.training.precision import choose_precision, describe_precision
from nmt.training.start import first_weights

N_TIMED_BATCHES = 16


def describe(config: Config, folder: Path | None = None, device: DeviceName = "auto") -> str:
    """The lines that `nmt train --dry-run` prints: parameters, and time and memory on this
    machine.
    """
    check_prepared(config)
    torch_device = set_up_device(device)
    keep_freed_memory()
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    corpus = load_training_corpus(config)
    part = next(divide_epoch(len(corpus), seed=config.seed, epoch=0)).select(corpus)
    n_parts = len(corpus) / len(part)
    model = build_model(config.prepared_folder, config).to(torch_device)
    trial = choose_precision(Training.of(model, part, config))
    config = trial.config
    notes = [origin.text for origin in first_weights(trial.model, config)]
    n_part_batches, part_seconds = time_part(trial)
    seconds = part_seconds * n_parts
    n_batches = round(n_part_batches * n_parts)
    peak = (
        torch.cuda.max_memory_allocated(torch_device)
        if torch_device.type == "cuda"
        else peak_memory()
    )
    memory = "" if peak is None else f"; peak memory about {peak / 1e6:,.0f} MB"
    n_updates = count_updates(config, n_batches, seconds / n_batches)
    counts, total = parameters_by_part(trial.model)
    return "\n".join(
        [
            *(f"{name:<16}{count:>12,} parameters" for name, count in counts.items()),
            f"{'total':<16}{total:>12,} parameters",
            f"precision       {describe_precision(config.training.precision, trial.rates)}",
            *notes,
            f"{len(corpus):,} pairs, {n_batches:,} batches per epoch; the run folder would be "
            f"{folder or config.run_folder}",
            f"an epoch takes about {duration(seconds)} on this machine, all {n_updates:,} updates "
            f"{duration(n_updates * seconds / n_batches)}, without validation{memory}",
        ]
    )


def time_part(trial: Training) -> tuple[int, float]:
    """How many batches the pairs of a training have, and the estimated seconds of one pass."""
    config = trial.config.training
    lengths = trial.corpus.src.lengths, trial.corpus.tgt.lengths
    plan = plan_batches(
        *lengths, config.batch, key=(trial.config.seed, 0), n_shards=config.accumulate
    )
    n_positions = np.array(
        [len(pairs) * sum(int(side[pairs].max()) + 1 for side in lengths) for pairs in plan]
    )
    loss = Loss(trial.model.train(), config)

    def time_batch(index: int) -> float:
        start_time = time.perf_counter()
        shards = [pairs for pairs in shard(plan[index], config.accumulate) if len(pairs)]
        batches = [batch.to(trial.device) for batch in read_batches(trial.corpus, shards)]
        update = Update(1, 0, 0, 0, 1, 1, np.concatenate(shards), batches)
        train_step(loss, trial, update, config.learning_rate.peak)
        return time.perf_counter() - start_time

    return len(plan), estimate_epoch(n_positions, time_batch)


def estimate_epoch(n_positions: NDArray[np.int64], time_batch: Callable[[int], float]) -> float:
    """Estimate the seconds of an epoch: time a few batches, from the smallest to the largest, and
    interpolate the others.

    Args:
        n_positions: of each batch, with padding. time_batch: trains on the batch with this index;
            returns the seconds.
    """
    places = np.unique(np.linspace(0, len(n_positions) - 1, N_TIMED_BATCHES).round().astype(int))
    timed_batches = np.argsort(n_positions)[places].tolist()
    for index in (timed_batches[-1], timed_batches[0]):  # warm-up
        time_batch(index)
    seconds = [min(time_batch(index) for _ in range(2)) for index in timed_batches]
    return float(np.interp(n_positions, n_positions[timed_batches], seconds).sum())


def count_updates(config: Config, n_batches: int, seconds: float) -> int:
    """The updates of the whole training, which take `seconds` each."""
    training = config.training
    limits = [training.epochs * n_batches]
    if training.max_steps is not None:
        limits.append(training.max_steps)
    if training.max_minutes is not None:
        limits.append(max(1, round(60 * training.max_minutes / seconds)))
    return min(limits)


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
