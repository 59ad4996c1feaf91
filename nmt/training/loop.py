"""The training loop. `fit` makes one update after another with `train_step`, and validates and
saves when it is time.

All random numbers follow from (seed, step) and (seed, epoch), and the learning rate from the
progress, so a resumed training equals an uninterrupted one. But a learning rate that follows
`max_minutes` depends on the clock: a resumed training continues from the recorded seconds, and two
trainings are equal only if their updates and validations take equal times.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel

from nmt.config.schema import Config
from nmt.data.batches import Batch, divide_epochs, plan_batches, read_batches, shard
from nmt.data.corpus import Corpus
from nmt.errors import TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.run.progress import Interval, Progress
from nmt.training.distributed import SINGLE_PROCESS, World
from nmt.training.loss import draw_forcing_mask
from nmt.training.objective import Objective
from nmt.training.optimization import Moment, forcing_ratio, learning_rate
from nmt.training.stopwatch import Stopwatch

T = TypeVar("T")


@dataclass(frozen=True)
class Update:
    """An update to make.

    Attributes:
        step: counted from 1.
        epoch: from 0. part: of the epoch, from 0, as in `nmt.data.batches`. batch: its index in the
            part, from 0.
        n_parts: in the epoch. n_batches: in the part.
        pairs: the batch of all processes together, as indices into the corpus.
        micro_batches: the part of this process, on its device.
    """

    step: int
    epoch: int
    part: int
    batch: int
    n_parts: int
    n_batches: int
    pairs: NDArray[np.int64]
    micro_batches: list[Batch]

    @property
    def ends_epoch(self) -> bool:
        """Whether it is the last update of its epoch."""
        return self.batch + 1 == self.n_batches and self.part + 1 == self.n_parts

    @property
    def next_position(self) -> tuple[int, int, int]:
        """Epoch, part and batch of the update after it."""
        if self.batch + 1 < self.n_batches:
            return self.epoch, self.part, self.batch + 1
        return (self.epoch + 1, 0, 0) if self.ends_epoch else (self.epoch, self.part + 1, 0)


@dataclass(frozen=True)
class Outcome:
    """The result of an update, over all processes.

    Attributes:
        objective: sum over the target tokens, in nats. nll: the same for the plain negative
            log-likelihood.
        n_tokens: number of target tokens.
        gradient_norm: of the mean gradient per token, before clipping.
        learning_rate, forcing_ratio: of this update.
    """

    objective: float
    nll: float
    n_tokens: int
    gradient_norm: float
    learning_rate: float
    forcing_ratio: float

    @property
    def is_finite(self) -> bool:
        """Whether the update was applied: a loss or gradient that is not finite leaves the weights
        unchanged.
        """
        return bool(np.isfinite([self.objective, self.gradient_norm]).all())


@dataclass(frozen=True)
class Hooks:
    """Functions that the loop calls. Processes other than the first have only `stop`.

    Attributes:
        log: after each update, with the sums of the current interval.
        validate: at a step; returns the score of the current model, higher is better.
        save: write a checkpoint, with the score of its validation or None.
        stop: after each update; True ends the training at once, after a checkpoint.
    """

    log: Callable[[Update, Outcome, Interval], None] = lambda *_: None
    validate: Callable[[int], float] = lambda _: 0.0
    save: Callable[[Progress, float | None], None] = lambda *_: None
    stop: Callable[[], bool] = lambda: False


def fit(
    model: Seq2Seq,
    optimizer: Optimizer,
    corpus: Corpus,
    config: Config,
    progress: Progress,
    hooks: Hooks,
    *,
    averaged: AveragedModel | None = None,
    world: World = SINGLE_PROCESS,
) -> Generator[None, None, Progress]:
    """Train from `progress` until a limit of the configuration is reached, or `hooks.stop` returns
    True.

    Args:
        averaged: a moving average of the model; the loop updates it, and validates it in place of
            the model.

    Yields:
        after each update, before its validation and checkpoint. The time until the caller continues
        does not count as training time. If the caller closes the generator, the training ends as if
        `hooks.stop` had returned True.

    Returns:
        the progress that the last checkpoint holds; `finished` is None if `hooks.stop` ended the
        training.

    Raises:
        TrainingError: too many updates in a row were not finite.
    """
    training, clock, saved_seconds = config.training, Stopwatch(progress.seconds), progress.seconds
    objective = Objective(model, training, world)
    closed = False
    model.train()
    for update in prefetch(
        planned_updates(corpus, config, progress, world, model.device), model.device
    ):
        outcome, interval = _make_update(update, progress, objective, optimizer, averaged, config)
        hooks.log(update, outcome, interval)
        with clock.paused():
            try:
                yield
            except GeneratorExit:
                closed = True
        # The first process decides for all.
        seconds, stop = world.broadcast((clock.seconds, hooks.stop() or closed))
        progress = progress.after_update(
            update.next_position,
            applied=outcome.is_finite,
            interval=Interval() if update.step % training.log_every == 0 else interval,
            seconds=seconds,
            config=training,
        )
        due = (
            update.ends_epoch
            if training.validate_every is None
            else update.step % training.validate_every == 0
        )
        score = None
        if due or progress.finished:
            score = world.broadcast(
                _validate(model if averaged is None else averaged, update.step, hooks)
            )
            progress = progress.after_validation(
                score, world.broadcast(clock.seconds), training, due=due
            )
        is_old = (
            training.checkpoint_minutes is not None
            and progress.seconds - saved_seconds >= 60 * training.checkpoint_minutes
        )
        if due or progress.finished or stop or is_old:
            saved_seconds = progress.seconds
            hooks.save(progress, score)
        if progress.finished or stop:
            return progress
    return progress


def _make_update(
    update: Update,
    progress: Progress,
    objective: Objective,
    optimizer: Optimizer,
    averaged: AveragedModel | None,
    config: Config,
) -> tuple[Outcome, Interval]:
    """Change the weights and their moving average; returns the outcome, and the sums of the
    interval with it.

    Raises:
        TrainingError: too many updates in a row were not finite.
    """
    training = config.training
    moment = Moment(
        update.step,
        progress.reductions,
        progress.fraction(training, update.n_parts, update.n_batches),
    )
    rate = learning_rate(moment, training.learning_rate)
    outcome = train_step(objective, optimizer, update.micro_batches, update.step, config, rate)
    if outcome.is_finite:
        if averaged is not None:
            averaged.update_parameters(objective.model)
        return outcome, progress.interval.plus(outcome.objective, outcome.nll, outcome.n_tokens)
    if progress.skipped_in_row + 1 >= training.max_skipped:
        raise TrainingError(
            f"step {update.step}: loss or gradient was not finite in {training.max_skipped} "
            "updates in a row; "
            "the last checkpoint is intact; lower training.learning_rate.peak or training.clip_norm"
        )
    return outcome, progress.interval


def _validate(model: Seq2Seq | AveragedModel, step: int, hooks: Hooks) -> float:
    """The score of the model, in evaluation mode."""
    model.eval()
    score = hooks.validate(step)
    model.train()
    return score


def train_step(
    objective: Objective,
    optimizer: Optimizer,
    micro_batches: Sequence[Batch],
    step: int,
    config: Config,
    rate: float,
) -> Outcome:
    """One update with learning rate `rate`. The model must be in training mode.

    Its gradient is the mean over the target tokens of all micro-batches of all processes, however
    these divide the batch. A loss or gradient that is not finite changes nothing. Micro-batches
    that do not fit into the GPU's memory are split in half.

    Args:
        micro_batches: those of this process. step: counted from 1.

    Raises:
        TrainingError: a single sentence does not fit into the GPU's memory, or another process
            failed.
    """
    world = objective.world
    while True:
        try:
            sums = forward_backward(objective, optimizer, micro_batches, step, config)
            break
        except torch.OutOfMemoryError:
            micro_batches = _split_in_half(micro_batches)
        # after the handler: within it, the failed pass still holds its tensors
        torch.cuda.empty_cache()
    world.sum(sums)
    gradients = [
        parameter.grad for parameter in objective.model.parameters() if parameter.grad is not None
    ]
    norm = torch.nn.utils.get_total_norm(gradients)
    # The only time that an update waits for the GPU.
    objective_sum, nll, n_tokens, total_norm = torch.cat([sums, norm.to(sums).view(1)]).tolist()
    ratio = forcing_ratio(step, config.training.teacher_forcing)
    # The gradients are the mean of the processes' sums.
    outcome = Outcome(
        objective_sum, nll, int(n_tokens), total_norm * world.size / n_tokens, rate, ratio
    )
    if outcome.is_finite:
        scale = (
            min(1.0, config.training.clip_norm / (outcome.gradient_norm + 1e-6))
            * world.size
            / n_tokens
        )
        for gradient in gradients:
            gradient.mul_(scale)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    return outcome


def forward_backward(
    objective: Objective,
    optimizer: Optimizer,
    micro_batches: Sequence[Batch],
    step: int,
    config: Config,
) -> Tensor:
    """The gradient of the objective, summed over the tokens of the micro-batches; with several
    processes, the mean of their sums.

    Returns:
        [3], on the model's device: objective, nll, number of target tokens of this process.
    """
    training, device, rank = config.training, objective.device, objective.world.rank
    optimizer.zero_grad()
    sums = torch.zeros(
        3, dtype=torch.float32 if device.type == "mps" else torch.float64, device=device
    )
    if not micro_batches:
        objective.backward(None, None, is_last=True)
    for index, batch in enumerate(micro_batches):
        # Splitting adds micro-batches beyond `accumulate`; their seeds must differ from those of
        # the next process.
        is_planned = index < training.accumulate
        generator = reseed(
            config.seed,
            step,
            *((rank * training.accumulate + index,) if is_planned else (rank, index)),
        )
        ratio = forcing_ratio(step, training.teacher_forcing)
        forcing_mask = draw_forcing_mask(batch, ratio, training.teacher_forcing.per, generator)
        is_last = index + 1 == len(micro_batches)
        losses = objective.backward(batch.to(device), forcing_mask, is_last=is_last)
        sums += torch.cat([losses, losses.new_full((1,), batch.n_tokens)])
    return sums


def reseed(seed: int, step: int, *micro_batch: int) -> torch.Generator:
    """Seed torch, and thereby dropout, by (seed, step, micro_batch); returns a generator on the
    CPU, seeded by the same.
    """
    entropy = [seed, step, *micro_batch] if any(micro_batch) else [seed, step]
    value = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> np.uint64(1))
    torch.manual_seed(value)
    return torch.Generator().manual_seed(value + 1)


def planned_updates(
    corpus: Corpus, config: Config, progress: Progress, world: World, device: torch.device
) -> Iterator[Update]:
    """The updates from `progress` on, until the last epoch, with the micro-batches of this
    process.
    """
    training, step, first_batch = config.training, progress.step, progress.batch
    n_shards, first_shard = world.size * training.accumulate, world.rank * training.accumulate
    epochs = range(progress.epoch, training.epochs)
    for part in divide_epochs(len(corpus), epochs, seed=config.seed, first_part=progress.part):
        indices, sentences = part.indices(), part.select(corpus)
        plan = plan_batches(
            sentences.src.lengths,
            sentences.tgt.lengths,
            training.batch,
            key=part.key(config.seed),
            n_shards=n_shards,
        )
        for batch in range(first_batch, len(plan)):
            step += 1
            own_shards = shard(plan[batch], n_shards)[
                first_shard : first_shard + training.accumulate
            ]
            shards = [
                pairs for pairs in own_shards if len(pairs)
            ]  # a small batch leaves some empty
            micro_batches = [
                micro_batch.to(device) for micro_batch in read_batches(sentences, shards)
            ]
            pairs = indices[plan[batch]]
            yield Update(
                step, part.epoch, part.index, batch, part.n_parts, len(plan), pairs, micro_batches
            )
        first_batch = 0


def prefetch(items: Iterator[T], device: torch.device) -> Iterator[T]:
    """The same items. For a GPU, a thread makes each item while the caller uses the previous one;
    its errors are raised here.

    The thread's copies to the GPU queue behind the running computation. They take microseconds, so
    they need no separate stream.
    """
    if device.type != "cuda":
        yield from items
        return
    with ThreadPoolExecutor(1, "prefetch", torch.cuda.set_device, (device,)) as thread:
        upcoming = thread.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = thread.submit(next, items, None)
            yield item


def _split_in_half(micro_batches: Sequence[Batch]) -> list[Batch]:
    """Each micro-batch in two. Raises: TrainingError: all are single sentences."""
    if all(len(batch) == 1 for batch in micro_batches):
        longest = max(micro_batches, key=lambda batch: batch.src.shape[1] + batch.tgt_in.shape[1])
        sizes = f"{longest.src.shape[1]} source and {longest.tgt_in.shape[1]} target tokens"
        raise TrainingError(
            f"out of memory with a single pair of {sizes}; lower "
            "data.cleaning.max_characters, or "
            "the model's sizes"
        )
    return [half for batch in micro_batches for half in batch.split_in_half()]
