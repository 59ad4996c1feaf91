"""The records of a training: journal, curves, TensorBoard files, validations and checkpoints in its
run folder, and its events.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel

from nmt.config.schema import Config
from nmt.errors import DataError
from nmt.evaluation.scores import perplexity
from nmt.extras.tensorboard.listener import TensorBoardWriter
from nmt.model.seq2seq import Seq2Seq
from nmt.report import curves
from nmt.run.folder import CURVES_FILE, JOURNAL_FILE, TENSORBOARD_FOLDER, open_checkpoints
from nmt.run.journal import Journal
from nmt.run.progress import Interval, Progress
from nmt.training.events import CheckpointEvent, Event, MessageEvent, StepEvent, ValidationEvent
from nmt.training.loop import Hooks, Outcome, Update
from nmt.training.stopwatch import Stopwatch
from nmt.training.validation import VALIDATION_METRICS, Validator


class Recorder:
    """Records a training in its run folder, in the first process; `hooks` is its side towards the
    training loop.

    As a context, it draws the curves and closes the TensorBoard files at the end.

    Args:
        progress: so far. Later lines of the journal come from a training that was cut short, and
            are deleted.
        averaged: the moving average of the model, which is validated and saved to translate with.
    """

    def __init__(
        self,
        folder: Path,
        config: Config,
        progress: Progress,
        model: Seq2Seq,
        optimizer: Optimizer,
        averaged: AveragedModel | None,
    ) -> None:
        self.folder, self.config, self.model, self.optimizer = folder, config, model, optimizer
        self._events: list[Event] = []
        self.averaged: Seq2Seq | None = None
        if averaged is not None:
            assert isinstance(averaged.module, Seq2Seq)
            self.averaged = averaged.module
        self.journal, self.checkpoints = (
            Journal(folder / JOURNAL_FILE),
            open_checkpoints(folder, config),
        )
        self.tensorboard = TensorBoardWriter(folder / TENSORBOARD_FOLDER, progress.step, self._warn)
        self.validator = Validator(
            model if self.averaged is None else self.averaged, config, folder
        )
        self.journal.rewind(progress.step)
        self._training_time = Stopwatch(progress.seconds)
        self._interval_time, self._n_tokens = (
            Stopwatch(),
            0,
        )  # since the last line of the journal, or the start

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *_: object) -> None:
        self._draw_curves()
        self.tensorboard.close()

    def hooks(self, stop: Callable[[], bool]) -> Hooks:
        """For the training loop. stop: whether the training should end now."""
        return Hooks(self._log, self._validate, self._save, stop)

    def take_events(self) -> Iterator[Event]:
        """The events since the last call. The time that the caller takes for them does not count in
        the speed.
        """
        with self._interval_time.paused():
            while self._events:
                yield self._events.pop(0)

    def _log(self, update: Update, outcome: Outcome, interval: Interval) -> None:
        if not outcome.is_finite:
            line = describe_skipped(update, outcome)
            self._warn(line)
            self.journal.write("warning", update.step, text=line)
        self._n_tokens += outcome.n_tokens
        n_tokens = max(1, interval.n_tokens)  # 0 if all updates of the interval were skipped
        event = StepEvent(
            step=update.step,
            epoch=update.epoch + 1,
            batch=update.batch + 1,
            n_batches=update.n_batches,
            ends_epoch=update.ends_epoch,
            fraction=self._fraction(update),
            loss=interval.objective / n_tokens,
            perplexity=perplexity(interval.likelihood / n_tokens),
            tokens_per_second=self._n_tokens / max(1e-9, self._interval_time.seconds),
            learning_rate=outcome.learning_rate,
            forcing_ratio=outcome.forcing_ratio,
            gradient_norm=outcome.gradient_norm,
        )
        self._events.append(event)
        if update.step % self.config.training.log_every == 0:
            self.journal.write("train", update.step, **event.figures)
            self.tensorboard.update(update.step, event.figures)
            self._interval_time, self._n_tokens = Stopwatch(), 0

    def _validate(self, step: int) -> float:
        with self._interval_time.paused():
            validation_time = Stopwatch()
            result = self.validator.validate()
            seconds = validation_time.seconds
            samples = [asdict(sample) for sample in result.samples]
            self.journal.write(
                "validation", step, **result.figures, seconds=seconds, samples=samples
            )
            self._events.append(ValidationEvent(step, seconds, result))
            self.tensorboard.validation(step, result)
            self._draw_curves()
        return VALIDATION_METRICS[self.config.training.metric](result)

    def _save(self, progress: Progress, score: float | None) -> None:
        self.checkpoints.save(
            progress, self.model, self.optimizer, score=score, averaged=self.averaged
        )
        path, best = self.checkpoints.find("last"), self.checkpoints.find("best")
        assert path is not None
        self._events.append(CheckpointEvent(progress.step, path, path == best))

    def _warn(self, line: str) -> None:
        self._events.append(MessageEvent(line, is_warning=True))

    def _draw_curves(self) -> None:
        if (problem := draw_curves(self.folder, self.config)) is not None:
            self._warn(problem)

    def _fraction(self, update: Update) -> float:
        epoch, part, batch = update.next_position
        progress = Progress(
            step=update.step,
            epoch=epoch,
            part=part,
            batch=batch,
            seconds=self._training_time.seconds,
        )
        return progress.fraction(self.config.training, update.n_parts, update.n_batches)


def draw_curves(folder: Path, config: Config) -> str | None:
    """Draw the journal of a run into its folder. Returns what is wrong, if it cannot: the training
    continues without.
    """
    try:
        events, title = Journal(folder / JOURNAL_FILE).read(), folder.resolve().name
        curves.draw(events, folder / CURVES_FILE, title=title, metric=config.training.metric)
    except (DataError, OSError) as error:
        return str(error)
    return None


def describe_skipped(update: Update, outcome: Outcome) -> str:
    """Why an update was skipped, and which pairs it had."""
    pairs = ", ".join(str(pair) for pair in update.pairs[:5]) + (
        ", ..." if len(update.pairs) > 5 else ""
    )
    where = (
        f"epoch {update.epoch + 1}, batch {update.batch + 1}: {len(update.pairs)} pairs, {pairs}"
    )
    values = (
        f"the loss ({outcome.objective:g}) or its gradient ({outcome.gradient_norm:g}) is "
        "not finite"
    )
    return f"step {update.step}: {values}; update skipped ({where})"
