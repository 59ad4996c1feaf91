"""The record of a training: journal, validations and checkpoints in its run folder; and the events
that its listeners get.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

import torch

from nmt.config.parts import DeviceName
from nmt.errors import NmtError, StopTraining
from nmt.evaluation.scores import bleu_remarks, perplexity
from nmt.plugins import hooks
from nmt.run.checkpoint import step_of
from nmt.run.folder import JOURNAL_FILE, open_checkpoints
from nmt.run.journal import write_event
from nmt.run.progress import Outcome, Progress, Rank, Update
from nmt.run.weights import save_training
from nmt.training.calibrate import calibrate_after_training
from nmt.training.loop import Record, Training
from nmt.training.validation import Validation, Validator


@dataclass(frozen=True)
class BeginEvent:
    """The training begins, or continues.

    Attributes:
        folder: the run folder.
        n_parameters: of the model. n_pairs: in the training data.
        device: where it computes, such as cpu or cuda:0. precision: float32 or bfloat16.
        n_threads: of the CPU, in each process.
        n_processes: 1 without torchrun.
        step: updates so far.
        rates: target tokens per second of forward and backward passes of one process in each
            precision, where they were measured.
    """

    folder: Path
    n_parameters: int
    n_pairs: int
    device: str
    precision: str
    n_threads: int
    n_processes: int
    step: int
    rates: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class MessageEvent:
    """A line of text for the user."""

    text: str
    is_warning: bool = False


@dataclass(frozen=True)
class StepEvent:
    """An update of the weights.

    Attributes:
        step, epoch, batch: all counted from 1. A large epoch is planned in parts: batch and
            n_batches are those of the part.
        ends_epoch: whether it is the last update of its epoch.
        fraction: the finished part of the training, 0 to 1. Early stopping is not foreseen.
        loss: nats per target token since the last training line of the journal, with label
            smoothing.
        perplexity: over the same tokens, without label smoothing. tokens_per_second: target tokens,
            over the same time.
        learning_rate, forcing_ratio, gradient_norm: of this update.
    """

    step: int
    epoch: int
    batch: int
    n_batches: int
    ends_epoch: bool
    fraction: float
    loss: float
    perplexity: float
    tokens_per_second: float
    learning_rate: float
    forcing_ratio: float
    gradient_norm: float

    @property
    def figures(self) -> dict[str, float]:
        return {
            "loss": self.loss,
            "perplexity": self.perplexity,
            "tokens_per_second": self.tokens_per_second,
            "learning_rate": self.learning_rate,
            "forcing_ratio": self.forcing_ratio,
            "gradient_norm": self.gradient_norm,
        }


@dataclass(frozen=True)
class ValidationEvent:
    """A validation after update `step`, which took `seconds`."""

    step: int
    seconds: float
    result: Validation


@dataclass(frozen=True)
class CheckpointEvent:
    """A checkpoint was saved.

    Attributes:
        path: its folder.
        is_best: whether it is the best so far.
    """

    step: int
    path: Path
    is_best: bool


@dataclass(frozen=True)
class EndEvent:
    """The training is over. It is the last event; an error takes its place.

    Attributes:
        folder: the run folder.
        progress: that of the last checkpoint. Its `finished` is the reason.
    """

    folder: Path
    progress: Progress


Event = BeginEvent | MessageEvent | StepEvent | ValidationEvent | CheckpointEvent | EndEvent
Listener = Callable[[Event], None]


class RunRecord(Record):
    """Records a training in its run folder, and tells the listeners. Only the first process has
    one.

    The time of the listeners is no training time. A listener that fails is left out from then on;
    the training continues.

    Args:
        listeners: beside those of extras.
    """

    def __init__(self, training: Training, folder: Path, listeners: Sequence[Listener]) -> None:
        self.training, self.config = training, training.config
        self.folder = folder
        self.listeners = list(listeners)
        self.journal = folder / JOURNAL_FILE
        self.checkpoints = open_checkpoints(folder, training.config)
        seconds = training.progress.seconds
        self._saved_seconds = seconds
        self._start_time = time.monotonic() - seconds
        # Since the last line of the journal, without validations.
        self._n_tokens = 0
        self._interval_start = seconds

    def begin(self) -> None:
        training = self.training
        opened = [
            open_one(self.folder, self.config, training.progress.step)
            for open_one in hooks("listener")
        ]
        self.listeners += [listener for listener in opened if listener is not None]
        self._validator = Validator(self.training.model, self.config, self.folder)
        self._tell(
            BeginEvent(
                folder=self.folder,
                n_parameters=sum(parameter.numel() for parameter in training.model.parameters()),
                n_pairs=len(training.corpus),
                device=str(training.device),
                precision=self.config.training.precision,
                n_threads=torch.get_num_threads(),
                n_processes=training.world.size,
                step=training.progress.step,
                rates=training.rates,
            )
        )
        for remark in bleu_remarks([self._validator.references], self.config.data.tgt_language):
            self._warn(remark)
        for note in training.notes:
            self._tell(MessageEvent(note))
        self._start_time = time.monotonic() - training.progress.seconds

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start_time

    def update(self, update: Update, outcome: Outcome, progress: Progress) -> None:
        if not outcome.is_finite:
            line = describe_skipped(update, outcome)
            write_event(self.journal, "warning", update.step, text=line)
            self._warn(line)
        self._n_tokens += outcome.n_tokens
        interval = progress.interval.plus(outcome)
        n_tokens = max(1, interval.n_tokens)  # 0 if all updates of the interval were skipped
        here = Progress(update.step, *update.next_position, seconds=self.seconds)
        event = StepEvent(
            step=update.step,
            epoch=update.epoch + 1,
            batch=update.batch + 1,
            n_batches=update.n_batches,
            ends_epoch=update.ends_epoch,
            fraction=here.fraction(self.config.training, update.n_parts, update.n_batches),
            loss=interval.objective / n_tokens,
            perplexity=perplexity(interval.likelihood / n_tokens),
            tokens_per_second=self._n_tokens / max(1e-9, self.seconds - self._interval_start),
            learning_rate=outcome.learning_rate,
            forcing_ratio=outcome.forcing_ratio,
            gradient_norm=outcome.gradient_norm,
        )
        if update.step % self.config.training.log_every == 0:
            write_event(self.journal, "train", update.step, **event.figures)
            self._n_tokens = 0
            self._interval_start = self.seconds
        self._tell(event)

    def validate(self, step: int) -> Rank:
        start = self.seconds
        self.training.model.eval()
        result = self._validator.validate()
        self.training.model.train()
        seconds = self.seconds - start
        samples = [asdict(sample) for sample in result.samples]
        write_event(
            self.journal, "validation", step, **result.figures, seconds=seconds, samples=samples
        )
        self._tell(ValidationEvent(step, seconds, result))
        self._interval_start += self.seconds - start
        return result.rank(self.config.training.metric)

    def is_old(self, progress: Progress) -> bool:
        minutes = self.config.training.checkpoint_minutes
        return minutes is not None and progress.seconds - self._saved_seconds >= 60 * minutes

    def save(self, progress: Progress, rank: Rank | None) -> None:
        self._saved_seconds = progress.seconds
        write = partial(save_training, self.training.model, self.training.optimizer)
        self.checkpoints.save(progress, write, rank=rank)
        path, best = self.checkpoints.find("last"), self.checkpoints.find("best")
        assert path is not None
        self._tell(CheckpointEvent(progress.step, path, path == best))

    def end(self, progress: Progress, choice: str | None) -> None:
        if choice is not None:
            self._tell(MessageEvent(choice))
        start, best = self.config.training.start_from, self.checkpoints.find("best")
        if start is not None and best is not None and step_of(best.name) == 0:
            self._warn(
                f"no update made the model better than its start, {start}, which stays in use"
            )
        self._tell(EndEvent(self.folder, progress))
        if self.training.progress.finished is not None:  # by an earlier call
            return
        device = cast(DeviceName, self.training.device.type)
        try:
            calibrate_after_training(self.folder, self.config.prepared_folder, device)
        except NmtError as error:
            self._warn(f"{error}; the run has no confidence")

    def _tell(self, event: Event) -> None:
        start = time.monotonic()
        failures: list[str] = []
        for listener in [*self.listeners]:
            try:
                listener(event)
            except StopTraining:
                self.is_stopped = True
            except Exception as error:  # noqa: BLE001
                self.listeners.remove(listener)
                text = str(error) if isinstance(error, NmtError) else f"{listener}: {error!r}"
                failures.append(f"{text}; the training continues without it")
        self._start_time += time.monotonic() - start
        for text in failures:
            self._warn(text)

    def _warn(self, text: str) -> None:
        self._tell(MessageEvent(text, is_warning=True))


def describe_skipped(update: Update, outcome: Outcome) -> str:
    """Why an update was skipped, and which pairs it had."""
    return (
        f"step {update.step}: the loss ({outcome.objective:g}) or its gradient "
        f"({outcome.gradient_norm:g}) is not finite; update skipped (epoch {update.epoch + 1}, "
        f"batch {update.batch + 1}: {len(update.pairs)} pairs, first "
        f"{', '.join(map(str, update.pairs[:5]))})"
    )
