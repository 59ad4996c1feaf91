"""The training loop: batches, updates, validations, checkpoints. What it does with files and the screen, its callers hand in."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.optim import AdamW, Optimizer

from nmt.config import Config
from nmt.errors import TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.text.batching import Batch, plan_batches, read_batches
from nmt.text.corpus import Corpus
from nmt.training.checkpoint import Progress
from nmt.training.objective import batch_loss, draw_gold
from nmt.training.schedules import forcing_ratio, learning_rate


@dataclass(frozen=True)
class Update:
    """What one update did.

    Attributes:
        step: counted from 1.
        epoch: from 0. batch: its place in the epoch, from 0.
        n_batches: in the epoch.
        loss: mean objective per target token, in nats. likelihood: the same without label smoothing.
        gradient_norm: before clipping.
        learning_rate, forcing_ratio: used for it.
        n_tokens: target tokens.
    """

    step: int
    epoch: int
    batch: int
    n_batches: int
    loss: float
    likelihood: float
    gradient_norm: float
    learning_rate: float
    forcing_ratio: float
    n_tokens: int


@dataclass(frozen=True)
class Hooks:
    """What the loop calls.

    Attributes:
        log: after each update.
        validate: the score of the model as it is, higher being better, at a step.
        save: write a checkpoint; True if it is the best so far.
        stop: asked after each update; True ends training at once, after a checkpoint.
    """

    log: Callable[[Update], None]
    validate: Callable[[int], float]
    save: Callable[[Progress, bool], None]
    stop: Callable[[], bool]


def build_optimizer(model: Seq2Seq, config: Config) -> Optimizer:
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019); plain Adam where the decay is 0."""
    return AdamW(model.parameters(), lr=config.training.learning_rate.peak, weight_decay=config.training.weight_decay, fused=True)


def train_step(model: Seq2Seq, optimizer: Optimizer, batch: Batch, step: int, config: Config) -> tuple[float, float, float]:
    """One update. Returns mean objective and likelihood per token, and the gradient's norm.

    Raises:
        TrainingError: the loss or the gradient is not finite; the weights are as before.
    """
    training = config.training
    generator = reseed(config.seed, step)
    gold = draw_gold(batch, forcing_ratio(step, training.teacher_forcing), training.teacher_forcing.per, generator)
    batch = batch.to(model.device)
    optimizer.zero_grad()
    loss = batch_loss(model, batch, label_smoothing=training.label_smoothing, coverage_weight=training.coverage_loss, gold=gold)
    (loss.objective / loss.n_tokens).backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm)
    objective, likelihood, gradient_norm = torch.stack([loss.objective.detach(), loss.likelihood, norm]).tolist()
    if not np.isfinite([objective, gradient_norm]).all():
        raise TrainingError(
            f"step {step}: the loss ({objective:g}) or its gradient ({gradient_norm:g}) is not finite; lower the learning rate"
        )
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step, training.learning_rate)
    optimizer.step()
    return objective / loss.n_tokens, likelihood / loss.n_tokens, gradient_norm


def fit(model: Seq2Seq, optimizer: Optimizer, corpus: Corpus, config: Config, progress: Progress, hooks: Hooks) -> Progress:
    """Train from `progress` until an end is reached, or `hooks.stop` asks to stop.

    All that is random follows from (seed, step) and (seed, epoch), so that going on from a checkpoint equals never having stopped.

    Returns:
        the last progress, which is also the last checkpoint's; `finished` says why training ended, None if it was stopped.
    """
    training = config.training
    begun = time.monotonic() - progress.seconds
    model.train()
    for update, end_of_epoch in _updates(model, optimizer, corpus, config, progress):
        hooks.log(update)
        epoch, first = (update.epoch + 1, 0) if end_of_epoch else (update.epoch, update.batch + 1)
        progress = replace(progress, step=update.step, epoch=epoch, batch=first, seconds=time.monotonic() - begun)
        out_of_time = training.max_minutes is not None and progress.seconds >= 60 * training.max_minutes
        end = _end(progress, config, out_of_time)
        due = end_of_epoch if training.validate_every is None else update.step % training.validate_every == 0
        if due or end:
            progress = _validate(model, progress, hooks)
            end = end or ("no better validation for a while" if progress.stale >= training.patience else None)
            progress = replace(progress, seconds=time.monotonic() - begun, finished=end)
            hooks.save(progress, progress.stale == 0)
        if end:
            return progress
        if hooks.stop():
            if not due:
                hooks.save(progress, False)
            return progress
    return progress


def reseed(seed: int, step: int) -> torch.Generator:
    """Dropout at `step` follows from (seed, step) alone; so does what is drawn with the returned generator (on the CPU)."""
    value = int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0] >> np.uint64(1))
    torch.manual_seed(value)
    return torch.Generator().manual_seed(value + 1)


def _updates(
    model: Seq2Seq, optimizer: Optimizer, corpus: Corpus, config: Config, progress: Progress
) -> Iterator[tuple[Update, bool]]:
    """Update after update, epoch after epoch, from where `progress` stands; True with the last one of an epoch."""
    step, first = progress.step, progress.batch
    for epoch in range(progress.epoch, config.training.epochs):
        plan = plan_batches(corpus.src.lengths, corpus.tgt.lengths, config.training.batch, seed=config.seed, epoch=epoch)
        for index, batch in enumerate(read_batches(corpus, plan[first:]), first):
            step += 1
            loss, likelihood, norm = train_step(model, optimizer, batch, step, config)
            rate = learning_rate(step, config.training.learning_rate)
            ratio = forcing_ratio(step, config.training.teacher_forcing)
            update = Update(step, epoch, index, len(plan), loss, likelihood, norm, rate, ratio, batch.n_tokens)
            yield update, index + 1 == len(plan)
        first = 0


def _end(progress: Progress, config: Config, out_of_time: bool) -> str | None:
    if progress.epoch >= config.training.epochs:
        return f"{config.training.epochs} epochs done"
    if config.training.max_steps is not None and progress.step >= config.training.max_steps:
        return f"{config.training.max_steps} steps done"
    return f"{config.training.max_minutes:g} minutes over" if out_of_time else None


def _validate(model: Seq2Seq, progress: Progress, hooks: Hooks) -> Progress:
    model.eval()
    score = hooks.validate(progress.step)
    model.train()
    if progress.best is None or score > progress.best:
        return replace(progress, best=score, stale=0)
    return replace(progress, stale=progress.stale + 1)
