"""The training loop: batches, updates, validations, checkpoints. What it does with files and the screen, its callers hand in."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel

from nmt.config.schema import Config, LearningRateConfig
from nmt.data.batching import Batch, plan_batches, read_batches, shard
from nmt.data.corpus import Corpus
from nmt.errors import TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.run.progress import Interval, Progress
from nmt.training.distributed import SINGLE_PROCESS, World
from nmt.training.loss import batch_loss, draw_forcing_mask
from nmt.training.prefetch import prefetch
from nmt.training.schedules import forcing_ratio, learning_rate


@dataclass(frozen=True)
class Outcome:
    """What came of one update, over all processes.

    Attributes:
        objective: sum over the target tokens, in nats. likelihood: the same of the plain negative log-likelihood.
        n_tokens: target tokens.
        gradient_norm: of the mean over tokens, before clipping.
    """

    objective: float
    likelihood: float
    n_tokens: int
    gradient_norm: float

    @property
    def is_finite(self) -> bool:
        """Whether the weights were changed: by a loss or gradient that is not finite they are not."""
        return bool(np.isfinite([self.objective, self.gradient_norm]).all())


@dataclass(frozen=True)
class Update:
    """One update of the loop.

    Attributes:
        step: counted from 1.
        epoch: from 0. batch: its place in the epoch, from 0.
        n_batches: in the epoch.
        learning_rate, forcing_ratio: used for it.
    """

    step: int
    epoch: int
    batch: int
    n_batches: int
    learning_rate: float
    forcing_ratio: float
    outcome: Outcome


@dataclass(frozen=True)
class Hooks:
    """What the loop calls, in the first process.

    Attributes:
        log: after each update, with the sums since the last line of the journal.
        warn: what the user should know.
        validate: the score of the model as it is, higher being better, at a step.
        save: write a checkpoint, with the score of its validation if there was one.
        stop: asked after each update; True ends training at once, after a checkpoint.
    """

    log: Callable[[Update, Interval], None]
    warn: Callable[[int, str], None]
    validate: Callable[[int], float]
    save: Callable[[Progress, float | None], None]
    stop: Callable[[], bool]


def train_step(
    model: Seq2Seq,
    optimizer: Optimizer,
    micro_batches: Sequence[Batch],
    step: int,
    config: Config,
    rate: float,
    world: World = SINGLE_PROCESS,
) -> Outcome:
    """One update with learning rate `rate`, from this process's shares of a batch, one after the other.

    The gradient is that of the mean over the target tokens of all shares of all processes: how many there are does not matter.
    A loss or a gradient that is not finite changes nothing.

    Raises:
        TrainingError: one sentence alone does not fit into the GPU's memory, or another process has failed.
    """
    sums = _accumulate_gradients(model, optimizer, micro_batches, step, config, world)
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    objective, likelihood, n_tokens, total = torch.cat([sums, norm.to(sums).view(1)]).tolist()  # all that is waited for, at once
    outcome = Outcome(objective, likelihood, int(n_tokens), total / n_tokens)
    if outcome.is_finite:
        scale = min(1.0, config.training.clip_norm / (outcome.gradient_norm + 1e-6)) / n_tokens
        for gradient in gradients:
            gradient.mul_(scale)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    return outcome


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
) -> Progress:
    """Train from `progress` until an end is reached, or `hooks.stop` asks to stop.

    All that is random follows from (seed, step) and (seed, epoch), so that going on from a checkpoint equals never having stopped.

    Args:
        averaged: a moving average of the model, which is kept up, and validated in its place.

    Returns:
        the last progress, which is also the last checkpoint's; `finished` says why training ended, None if it was stopped.

    Raises:
        TrainingError: too many losses in a row were not finite.
    """
    training = config.training
    begun = time.monotonic() - progress.seconds
    model.train()
    for planned in prefetch(planned_updates(corpus, config, progress, world, model.device), model.device):
        update = _update(model, optimizer, planned, config, progress, world)
        if update.outcome.is_finite and averaged is not None:
            averaged.update_parameters(model)
        progress = _count(progress, update, training.max_skipped)
        if world.is_first:
            if not update.outcome.is_finite:
                hooks.warn(update.step, _describe_skipped(update, planned.pairs))
            hooks.log(update, progress.interval)
        if update.step % training.log_every == 0:
            progress = replace(progress, interval=Interval())
        epoch, batch = (planned.epoch + 1, 0) if planned.is_last else (planned.epoch, planned.batch + 1)
        seconds, stop = world.broadcast((time.monotonic() - begun, hooks.stop()))  # by one clock
        progress = replace(progress, step=planned.step, epoch=epoch, batch=batch, seconds=seconds)
        end = _end(progress, config)
        due = planned.is_last if training.validate_every is None else planned.step % training.validate_every == 0
        score = None
        if due or end:
            score = _validate(model if averaged is None else averaged, progress.step, hooks, world)
            progress = after_validation(progress, score, training.learning_rate)
            end = end or ("no better validation for a while" if progress.stale >= training.patience else None)
            progress = replace(progress, seconds=world.broadcast(time.monotonic() - begun), finished=end)
        if (due or end or stop) and world.is_first:
            hooks.save(progress, score)
        if end or stop:
            return progress
    return progress


def reseed(seed: int, step: int, share: int = 0) -> torch.Generator:
    """Dropout follows from (seed, step, share) alone; so does what is drawn with the returned generator (on the CPU)."""
    entropy = [seed, step, share] if share else [seed, step]
    value = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> np.uint64(1))
    torch.manual_seed(value)
    return torch.Generator().manual_seed(value + 1)


def _accumulate_gradients(
    model: Seq2Seq, optimizer: Optimizer, micro_batches: Sequence[Batch], step: int, config: Config, world: World
) -> Tensor:
    """The gradient of the objective's sum over the tokens of all processes; [3] objective, likelihood and number of tokens."""
    while True:
        try:
            sums = forward_backward(model, optimizer, micro_batches, step, config, world.rank * config.training.accumulate)
            break
        except torch.OutOfMemoryError:
            micro_batches = _halve(micro_batches)
        torch.cuda.empty_cache()  # here, for within the handler the failed pass still holds its tensors
    world.sum_gradients(model)
    world.sum([sums])
    return sums


def forward_backward(
    model: Seq2Seq, optimizer: Optimizer, micro_batches: Sequence[Batch], step: int, config: Config, first: int
) -> Tensor:
    """Forward and backward over each share, numbered from `first`; [3] sums of objective, likelihood and tokens, not waited for."""
    training, forcing = config.training, config.training.teacher_forcing
    optimizer.zero_grad()
    sums = torch.zeros(3, dtype=torch.float32 if model.device.type == "mps" else torch.float64, device=model.device)
    for index, batch in enumerate(micro_batches, first):
        generator = reseed(config.seed, step, index)
        forcing_mask = draw_forcing_mask(batch, forcing_ratio(step, forcing), forcing.per, generator)
        with torch.autocast(model.device.type, torch.bfloat16, enabled=training.precision == "bfloat16"):
            loss = batch_loss(
                model,
                batch.to(model.device),
                label_smoothing=training.label_smoothing,
                coverage_weight=training.coverage_loss,
                forcing_mask=forcing_mask,
            )
        loss.objective.backward()
        sums += torch.stack([loss.objective.detach(), loss.likelihood, loss.likelihood.new_full((), loss.n_tokens)])
    return sums


def _halve(micro_batches: Sequence[Batch]) -> list[Batch]:
    """Each share in two, for a memory that did not hold it. Raises: TrainingError if they are single sentences."""
    if all(len(batch) == 1 for batch in micro_batches):
        longest = max(micro_batches, key=lambda batch: batch.src.shape[1] + batch.tgt_in.shape[1])
        sizes = f"{longest.src.shape[1]} source and {longest.tgt_in.shape[1]} target tokens"
        raise TrainingError(
            f"out of memory with a single pair of {sizes}; lower data.cleaning.max_characters, or the model's sizes"
        )
    return [half for batch in micro_batches for half in batch.split_in_half()]


@dataclass(frozen=True)
class _PlannedUpdate:
    """What an update is made from: step, epoch and batch as in `Update`, the pairs of all processes, and this one's shares."""

    step: int
    epoch: int
    batch: int
    n_batches: int
    pairs: NDArray[np.int64]
    micro_batches: list[Batch]

    @property
    def is_last(self) -> bool:
        """Of its epoch."""
        return self.batch + 1 == self.n_batches


def planned_updates(
    corpus: Corpus, config: Config, progress: Progress, world: World, device: torch.device
) -> Iterator[_PlannedUpdate]:
    """Update after update, epoch after epoch, from where `progress` stands."""
    training, step, first = config.training, progress.step, progress.batch
    n_micro_batches, mine = world.size * training.accumulate, world.rank * training.accumulate
    lengths = corpus.src.lengths, corpus.tgt.lengths
    for epoch in range(progress.epoch, training.epochs):
        plan = plan_batches(*lengths, training.batch, seed=config.seed, epoch=epoch, n_shards=n_micro_batches)
        for batch in range(first, len(plan)):
            step += 1
            shards = [pairs for pairs in shard(plan[batch], n_micro_batches)[mine : mine + training.accumulate] if len(pairs)]
            micro_batches = [batch.to(device) for batch in read_batches(corpus, shards)]
            yield _PlannedUpdate(step, epoch, batch, len(plan), plan[batch], micro_batches)
        first = 0


def _update(
    model: Seq2Seq, optimizer: Optimizer, planned: _PlannedUpdate, config: Config, progress: Progress, world: World
) -> Update:
    rate = learning_rate(planned.step, config.training.learning_rate, progress.reductions)
    ratio = forcing_ratio(planned.step, config.training.teacher_forcing)
    outcome = train_step(model, optimizer, planned.micro_batches, planned.step, config, rate, world)
    return Update(planned.step, planned.epoch, planned.batch, planned.n_batches, rate, ratio, outcome)


def _describe_skipped(update: Update, pairs: NDArray[np.int64]) -> str:
    named = ", ".join(str(pair) for pair in pairs[:5]) + (", ..." if len(pairs) > 5 else "")
    where = f"epoch {update.epoch + 1}, batch {update.batch + 1}: {len(pairs)} pairs, {named}"
    figures = f"the loss ({update.outcome.objective:g}) or its gradient ({update.outcome.gradient_norm:g}) is not finite"
    return f"step {update.step}: {figures}; update skipped ({where})"


def _count(progress: Progress, update: Update, most: int) -> Progress:
    """Progress with an update's sums; skipped ones are counted apart. Raises: TrainingError after `most` skipped in a row."""
    outcome = update.outcome
    if outcome.is_finite:
        interval = progress.interval.plus(outcome.objective, outcome.likelihood, outcome.n_tokens)
        return replace(progress, interval=interval, skipped_in_row=0)
    progress = replace(progress, skipped=progress.skipped + 1, skipped_in_row=progress.skipped_in_row + 1)
    if progress.skipped_in_row >= most:
        raise TrainingError(
            f"step {update.step}: {most} updates in a row had a loss or a gradient that is not finite; "
            "the last checkpoint is intact; lower training.learning_rate.peak or training.clip_norm"
        )
    return progress


def _end(progress: Progress, config: Config) -> str | None:
    training = config.training
    if progress.epoch >= training.epochs:
        return f"{training.epochs} epochs done"
    if training.max_steps is not None and progress.step >= training.max_steps:
        return f"{training.max_steps} steps done"
    if training.max_minutes is not None and progress.seconds >= 60 * training.max_minutes:
        return f"{training.max_minutes:g} minutes over"
    return None


def _validate(model: nn.Module, step: int, hooks: Hooks, world: World) -> float:
    model.eval()
    score = world.broadcast(hooks.validate(step) if world.is_first else 0.0)
    model.train()
    return score


def after_validation(progress: Progress, score: float, config: LearningRateConfig) -> Progress:
    """Progress after a validation: better, or another stale one, which may lower the learning rate."""
    if progress.best is None or score > progress.best:
        return replace(progress, best=score, stale=0)
    stale = progress.stale + 1
    lowered = config.schedule == "plateau" and stale % config.patience == 0
    return replace(progress, stale=stale, reductions=progress.reductions + lowered)
