"""`nmt train --dry-run`: what a training would do and take, found out with a few steps of it that are thrown away."""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.config.names import DeviceName
from nmt.config.schema import Config
from nmt.data.batching import plan_batches, read_batches, shard
from nmt.data.corpus import Corpus
from nmt.data.workers import peak_memory
from nmt.model.device import pick_device
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import build_model, check_prepared
from nmt.training import batch_size
from nmt.training.loop import train_step
from nmt.training.optimizers import build_optimizer
from nmt.training.schedules import forcing_ratio, learning_rate
from nmt.training.word_vectors import load_configured_vectors

N_TIMED = 16  # batches, from the cheapest to the dearest
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 48  # of a drawn schedule, in characters


def describe(config: Config, folder: Path | None = None, device: DeviceName = "auto") -> str:
    """Sizes by part, word vectors, schedules, and the time and memory that an epoch takes here.

    Raises: as `nmt.commands.train.run`.
    """
    check_prepared(config)
    corpus = Corpus.load(config.prepared_folder, "train")
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    torch_device, found = pick_device(device), list[str]()
    if config.training.batch.size == "auto":
        size = _try_sizes(config, corpus, torch_device)
        config, found = batch_size.with_batch_size(config, size.size), [str(size)]
    model = build_model(config.prepared_folder, config).to(torch_device)
    plan = plan_batches(
        corpus.src.lengths,
        corpus.tgt.lengths,
        config.training.batch,
        seed=config.seed,
        epoch=0,
        n_shards=config.training.accumulate,
    )
    seconds, peak = measure(model, corpus, plan, config)
    memory = "" if peak is None else f"; peak memory about {peak / 1e6:,.0f} MB"
    return "\n".join(
        [
            *_sizes(model),
            *found,
            *(f"{side} vectors: {vectors.coverage}" for side, vectors in load_configured_vectors(config).items()),
            *_schedules(config, len(plan)),
            f"{len(corpus):,} pairs, {len(plan):,} batches an epoch; the run would be {folder or config.run_folder}",
            f"an epoch takes about {_duration(seconds)} here, validation apart{memory}",
        ]
    )


def _try_sizes(config: Config, corpus: Corpus, device: torch.device) -> batch_size.BatchSizeResult:
    """With a model of its own, whose memory does not count."""
    batch_size.check_device(device)
    model = build_model(config.prepared_folder, config).to(device)
    found = batch_size.find_batch_size(model, build_optimizer(model, config.training), corpus, config)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    return found


def measure(model: Seq2Seq, corpus: Corpus, plan: Sequence[NDArray[np.int64]], config: Config) -> tuple[float, int | None]:
    """Seconds of an epoch, and bytes at the peak if known, from real updates with some batches; the model is of no use afterwards.

    The time of a batch is read off between those of the next cheaper and the next dearer one that were timed.
    """
    model.train()
    optimizer = build_optimizer(model, config.training)
    costs = np.array([_cost(corpus, pairs) for pairs in plan])
    order = np.argsort(costs)
    timed = order[np.unique(np.linspace(0, len(order) - 1, N_TIMED).round().astype(int))]
    train = _Stepper(model, optimizer, corpus, config)
    for index in (timed[-1], timed[0]):  # what only the first steps take is over then
        train.step(plan[index])
    seconds = [min(train.step(plan[index]) for _ in range(2)) for index in timed]
    peak = torch.cuda.max_memory_allocated(model.device) if model.device.type == "cuda" else peak_memory()
    return float(np.interp(costs, costs[timed], seconds).sum()), peak


class _Stepper:
    """Updates with given pairs, as the training loop makes them."""

    def __init__(self, model: Seq2Seq, optimizer: torch.optim.Optimizer, corpus: Corpus, config: Config) -> None:
        self.model, self.optimizer, self.corpus, self.config, self.n_steps = model, optimizer, corpus, config, 0

    def step(self, pairs: NDArray[np.int64]) -> float:
        """The seconds that it took, reading included."""
        begun = time.perf_counter()
        self.n_steps += 1
        shares = [share for share in shard(pairs, self.config.training.accumulate) if len(share)]
        batches = list(read_batches(self.corpus, shares))
        train_step(self.model, self.optimizer, batches, self.n_steps, self.config, self.config.training.learning_rate.peak)
        return time.perf_counter() - begun


def _cost(corpus: Corpus, pairs: NDArray[np.int64]) -> int:
    """Positions with padding."""
    return len(pairs) * int(corpus.src.lengths[pairs].max() + corpus.tgt.lengths[pairs].max() + 2)


def _sizes(model: Seq2Seq) -> list[str]:
    counts = {name: sum(parameter.numel() for parameter in part.parameters()) for name, part in model.named_children()}
    total = sum(parameter.numel() for parameter in model.parameters())
    shared = " (shared ones counted once)" if total < sum(counts.values()) else ""
    lines = [f"{name:<16}{count:>12,} parameters" for name, count in counts.items() if count]
    return [*lines, f"{'in all':<16}{total:>12,} parameters{shared}"]


def _schedules(config: Config, n_batches: int) -> list[str]:
    """Learning rate and teacher forcing over the whole training, drawn."""
    training = config.training
    last = min(training.epochs * n_batches, training.max_steps or training.epochs * n_batches)
    steps = np.unique(np.linspace(1, last, WIDTH).round().astype(int)).tolist()
    rates = [learning_rate(step, training.learning_rate) for step in steps]
    ratios = [forcing_ratio(step, training.teacher_forcing) for step in steps]
    peak = learning_rate(min(last, max(1, training.learning_rate.warmup_steps)), training.learning_rate)
    until = ", until validations show a plateau" if training.learning_rate.schedule == "plateau" else ""
    return [
        f"learning rate   {sparkline(rates)}  {max(*rates, peak):.2g} at most, {rates[-1]:.2g} at step {last}{until}",
        f"forcing ratio   {sparkline(ratios)}  {ratios[0]:.2g} at step 1, {ratios[-1]:.2g} at step {last}",
    ]


def sparkline(values: Sequence[float]) -> str:
    """A bar for each value, from 0 to the largest."""
    top = max(values) or 1.0
    return "".join(BARS[round(value / top * (len(BARS) - 1))] for value in values)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} minutes"
