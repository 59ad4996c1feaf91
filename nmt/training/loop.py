"""The training loop: `fit` makes one update after another with `train_step`, and validates and
saves when it is time.

All random numbers follow from (seed, step) and (seed, epoch), and the learning rate from the
progress, so a resumed training equals an uninterrupted one. But a learning rate that follows
`max_minutes` depends on the clock: a resumed training continues from the recorded seconds, and two
trainings are equal only if their updates and validations take equal times.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nmt.config.schema import Config
from nmt.data.batches import divide_epochs, plan_batches, read_batches, shard
from nmt.data.corpus import Corpus
from nmt.errors import TrainingError
from nmt.model.seq2seq import Seq2Seq
from nmt.run.progress import Outcome, Progress, Rank, Update
from nmt.training.loss import Loss, draw_forcing_mask
from nmt.training.optimization import (
    OPTIMIZERS,
    Moment,
    forcing_ratio,
    learning_rate,
)

T = TypeVar("T")


def fit(training: "Training", record: "Record", stop: Callable[[], bool]) -> Progress:
    """Train until a limit of the configuration is reached, or `stop()` is true after an update.

    Returns:
        the progress that the last checkpoint holds; its `finished` is None after a stop.
    """
    config = training.config.training
    world = training.world
    loss = world.parallel(Loss(training.model.train(), config))
    progress = validate_start(training, record)
    for update in prefetch(updates(training), training.device):
        fraction = progress.fraction(config, update.n_parts, update.n_batches)
        moment = Moment(update.step, progress.reductions, fraction)
        rate = learning_rate(moment, config.learning_rate)
        outcome = train_step(loss, training, update, rate)
        record.update(update, outcome, progress)
        # The first process decides for all.
        seconds, stopped = world.broadcast((record.seconds, stop() or record.is_stopped))
        progress = progress.after_update(update, outcome, seconds, config)
        due = progress.needs_validation(update, fraction, config)
        rank = None
        if due or progress.finished:
            rank = world.broadcast(record.validate(update.step))
            seconds = world.broadcast(record.seconds)
            progress = progress.after_validation(rank, seconds, config, due=due)
        if due or progress.finished or stopped or record.is_old(progress):
            record.save(progress, rank)
        if progress.finished or stopped:
            break
    return progress


def validate_start(training: "Training", record: "Record") -> Progress:
    """The progress before the first update. A model that starts from a run is good already: its
    score is the one to beat, and it stays the best checkpoint if no update improves it.
    """
    config = training.config.training
    progress = training.progress
    if config.start_from is None or progress.step or progress.best is not None:
        return progress
    rank = training.world.broadcast(record.validate(0))
    progress = progress.after_validation(rank, training.world.broadcast(record.seconds), config)
    record.save(progress, rank)
    return progress


def train_step(loss: nn.Module, training: "Training", update: Update, rate: float) -> Outcome:
    """One update with learning rate `rate`; the model must be in training mode. If its loss or
    gradient is not finite, the weights stay as they are.

    The gradient is the mean over the target tokens of all micro-batches of all processes, however
    these divide the batch.

    Args:
        loss: a `Loss`, as `World.parallel` returns it.
    """
    ratio = forcing_ratio(update.step, training.config.training.teacher_forcing)
    while (sums := add_gradients(loss, training, update, ratio)) is None:
        update = split_in_half(update)
    outcome = training.gather_outcome(sums, rate, ratio)
    training.update_weights(outcome)
    return outcome


def add_gradients(
    loss: nn.Module, training: "Training", update: Update, ratio: float
) -> Tensor | None:
    """Add up the gradients of the micro-batches: the forward and the backward pass. They are sums
    over target tokens. With several processes, each parameter gets the mean of the sums of all.

    Returns:
        [3]: the sums of objective, negative log-likelihood and tokens of this process. None if the
        micro-batches do not fit into the GPU's memory; then see `split_in_half`.
    """
    world = training.world
    dtype = torch.float32 if training.device.type == "mps" else torch.float64
    sums = torch.zeros(3, dtype=dtype, device=training.device)
    training.optimizer.zero_grad()
    with suppress(torch.OutOfMemoryError):
        if not update.micro_batches:  # a small batch leaves some processes none
            world.backward(loss(None)[0], last=True)
        for index, batch in enumerate(update.micro_batches):
            generator = training.reseed(update.step, index)  # dropout, and the mask
            per = training.config.training.teacher_forcing.per
            forcing_mask = draw_forcing_mask(batch, ratio, per, generator)
            is_last = index == len(update.micro_batches) - 1
            with world.exchange(loss, last=is_last):
                with training.autocast():
                    objective, nll = loss(batch, forcing_mask)
                world.backward(objective, last=is_last)
            sums += torch.stack([objective.detach(), nll, nll.new_full((), batch.n_tokens)])
        return sums
    return None


def split_in_half(update: Update) -> Update:
    """The update with each micro-batch in two, after `add_gradients` found no memory for them. Only
    now that it has returned, the failed pass holds no tensors any more.

    Raises:
        TrainingError: all micro-batches are single sentences.
    """
    torch.cuda.empty_cache()
    if all(len(batch) == 1 for batch in update.micro_batches):
        raise TrainingError(
            "out of memory with a single pair; lower data.cleaning.max_characters, or the model's "
            "sizes"
        )
    halves = [half for batch in update.micro_batches for half in batch.split_in_half()]
    return replace(update, micro_batches=halves)


@dataclass(frozen=True)
class World:
    """The processes of a training. This is a training in a single one, which exchanges nothing;
    `nmt.training.distributed` has that in several.

    Attributes:
        rank: index of this process, from 0. size: number of processes.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process decides and writes files."""
        return self.rank == 0

    def parallel(self, module: nn.Module) -> nn.Module:
        """The module with the weights of the first process, whose backward passes exchange
        gradients; see `exchange`.
        """
        return module

    def exchange(self, module: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """Passes of a module of `parallel` inside the block add to the gradients of this process;
        the last one of an update leaves the mean of all processes. Each process must have a last
        one.
        """
        return nullcontext()

    def backward(self, objective: Tensor, *, last: bool) -> None:
        """The backward pass inside of `exchange`."""
        objective.backward()

    def sum(self, tensor: Tensor) -> None:
        """Replace the tensor by its sum over all processes."""

    def broadcast(self, value: T) -> T:
        """The value of the first process, in all processes."""
        return value


SINGLE_PROCESS = World()


@dataclass
class Training:
    """What is trained, on what, and how far it is.

    Attributes:
        progress: where the training begins. notes: what the user should know of its start.
        rates: tokens per second in each precision, where they were measured.
    """

    config: Config
    corpus: Corpus
    model: Seq2Seq
    optimizer: Optimizer
    world: World = SINGLE_PROCESS
    progress: Progress = field(default_factory=Progress)
    notes: Sequence[str] = ()
    rates: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls, model: Seq2Seq, corpus: Corpus, config: Config, world: World = SINGLE_PROCESS
    ) -> "Training":
        """The training of a model from the start, with what the configuration asks for."""
        optimizer = OPTIMIZERS[config.training.optimizer](model.parameters(), config.training)
        return cls(config, corpus, model, optimizer, world)

    @property
    def device(self) -> torch.device:
        return self.model.device

    def autocast(self) -> torch.autocast:
        """A context in which the forward pass has the precision of the configuration."""
        is_mixed = self.config.training.precision == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=is_mixed)

    def reseed(self, step: int, index: int) -> torch.Generator:
        """Seed torch, and thereby dropout, for a micro-batch of this process; returns a generator
        on the CPU for the rest.
        """
        accumulate = self.config.training.accumulate
        rank = self.world.rank
        # Splitting adds micro-batches beyond `accumulate`; their seeds must differ from those of
        # the next process.
        own = (rank * accumulate + index,) if index < accumulate else (rank, index)
        # The first micro-batch has no index, as in earlier versions: the same seed, same weights.
        entropy = [self.config.seed, step, *own] if any(own) else [self.config.seed, step]
        value = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> np.uint64(1))
        torch.manual_seed(value)
        return torch.Generator().manual_seed(value + 1)

    def gather_outcome(self, sums: Tensor, rate: float, ratio: float) -> Outcome:
        """The result of `add_gradients`, over all processes. Each must call it."""
        self.world.sum(sums)
        norm = torch.nn.utils.get_total_norm(self._gradients())
        # The only time that an update waits for the GPU.
        objective, nll, n_tokens, total_norm = torch.cat([sums, norm.to(sums).view(1)]).tolist()
        # The gradients are the mean of the processes' sums.
        norm_per_token = total_norm * self.world.size / n_tokens
        return Outcome(objective, nll, int(n_tokens), norm_per_token, rate, ratio)

    def update_weights(self, outcome: Outcome) -> None:
        """Change the weights, with clipped gradients, if the outcome is finite."""
        if not outcome.is_finite:
            return
        clipping = min(1.0, self.config.training.clip_norm / (outcome.gradient_norm + 1e-6))
        scale = clipping * self.world.size / outcome.n_tokens
        torch._foreach_mul_(self._gradients(), scale)
        for group in self.optimizer.param_groups:
            group["lr"] = outcome.learning_rate
        self.optimizer.step()

    def _gradients(self) -> list[Tensor]:
        return [each.grad for each in self.model.parameters() if each.grad is not None]


class Record:
    """What `fit` tells of a training. All processes but the first have this one, which does
    nothing; see `nmt.training.record.RunRecord`.

    Attributes:
        is_stopped: whether a listener wants the training to end.
    """

    is_stopped = False

    def begin(self) -> None:
        """Before the first update."""

    @property
    def seconds(self) -> float:
        """The training time so far."""
        return 0.0

    def update(self, update: Update, outcome: Outcome, progress: Progress) -> None:
        """After each update. progress: before it."""

    def validate(self, step: int) -> Rank:
        """The result of the model as it is now."""
        return Rank(0.0, 0.0)

    def is_old(self, progress: Progress) -> bool:
        """Whether the last checkpoint is so old that it is time for another one."""
        return False

    def save(self, progress: Progress, rank: Rank | None) -> None:
        """Write a checkpoint, with the result of its validation or None."""

    def end(self, progress: Progress, choice: str | None) -> None:
        """At the end of a finished training. choice: which checkpoint is used, for the user."""


def updates(training: Training) -> Iterator[Update]:
    """The updates from the progress of the training on, until the last epoch, with the
    micro-batches of this process.
    """
    config = training.config.training
    progress = training.progress
    n_shards = training.world.size * config.accumulate
    first_shard = training.world.rank * config.accumulate
    step = progress.step
    first_batch = progress.batch
    for part in divide_epochs(
        len(training.corpus),
        range(progress.epoch, config.epochs),
        seed=training.config.seed,
        first_part=progress.part,
    ):
        corpus = part.select(training.corpus)
        indices = part.indices()
        plan = plan_batches(
            corpus.src.lengths,
            corpus.tgt.lengths,
            config.batch,
            key=part.key,
            n_shards=n_shards,
            copies=corpus.copies,
        )
        for batch in range(first_batch, len(plan)):
            step += 1
            shards = shard(plan[batch], n_shards)[first_shard : first_shard + config.accumulate]
            shards = [pairs for pairs in shards if len(pairs)]  # a small batch leaves some empty
            micro_batches = [each.to(training.device) for each in read_batches(corpus, shards)]
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
