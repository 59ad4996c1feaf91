"""The records of a training in its run folder and on the screen: journal, curves, TensorBoard files, validations, checkpoints."""

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel

from nmt.config.schema import Config
from nmt.errors import DataError
from nmt.model.seq2seq import Seq2Seq
from nmt.report import curves
from nmt.run.folder import CURVES_FILE, JOURNAL_FILE, open_checkpoints
from nmt.run.journal import Journal
from nmt.run.progress import Interval, Progress
from nmt.training.console import Console
from nmt.training.loop import Hooks, Outcome, Update
from nmt.training.tensorboard import TensorBoardWriter
from nmt.training.validation import VALIDATION_METRICS, Validator


class Recorder:
    """Records a training in its run folder, in the first process; `hooks` is its side towards the training loop.

    Args:
        step: updates so far. Later lines of the journal come from a training that was cut short, and are deleted.
        averaged: the moving average of the model, which is validated and saved to translate with.
    """

    def __init__(
        self,
        folder: Path,
        config: Config,
        step: int,
        model: Seq2Seq,
        optimizer: Optimizer,
        averaged: AveragedModel | None,
        console: Console,
        tensorboard: TensorBoardWriter,
    ) -> None:
        self.folder, self.config, self.model, self.optimizer = folder, config, model, optimizer
        self.console, self.tensorboard = console, tensorboard
        self.averaged: Seq2Seq | None = None
        if averaged is not None:
            assert isinstance(averaged.module, Seq2Seq)
            self.averaged = averaged.module
        self.journal, self.checkpoints = Journal(folder / JOURNAL_FILE), open_checkpoints(folder, config)
        self.validator = Validator(model if self.averaged is None else self.averaged, config, folder)
        self.journal.rewind(step)

    def hooks(self, stop: Callable[[], bool]) -> Hooks:
        """For `fit`. stop: whether the training should end now."""
        return Hooks(self._log, self._validate, self._save, stop)

    def draw_curves(self) -> None:
        """Draw the journal into the run folder. An error is a warning only: the training continues."""
        try:
            title, metric = self.folder.resolve().name, self.config.training.metric
            curves.draw(self.journal.read(), self.folder / CURVES_FILE, title=title, metric=metric)
        except (DataError, OSError) as error:
            self.console.warn(str(error))

    def _log(self, update: Update, outcome: Outcome, interval: Interval) -> None:
        if not outcome.is_finite:
            line = describe_skipped(update, outcome)
            self.console.warn(line)
            self.journal.write("warning", update.step, text=line)
        if figures := self.console.update(update, outcome, interval):
            self.journal.write("train", update.step, **figures)
            self.tensorboard.update(update.step, figures)

    def _validate(self, step: int) -> float:
        with self.console.paused():
            start_time = time.monotonic()
            result = self.validator.validate()
            seconds = time.monotonic() - start_time
            samples = [asdict(sample) for sample in result.samples]
            self.journal.write("validation", step, **result.figures, seconds=seconds, samples=samples)
            self.console.validation(step, result, seconds)
            self.tensorboard.validation(step, result)
            self.draw_curves()
        return VALIDATION_METRICS[self.config.training.metric](result)

    def _save(self, progress: Progress, score: float | None) -> None:
        self.checkpoints.save(progress, self.model, self.optimizer, score=score, averaged=self.averaged)


def describe_skipped(update: Update, outcome: Outcome) -> str:
    """Why an update was skipped, and which pairs it had."""
    pairs = ", ".join(str(pair) for pair in update.pairs[:5]) + (", ..." if len(update.pairs) > 5 else "")
    where = f"epoch {update.epoch + 1}, batch {update.batch + 1}: {len(update.pairs)} pairs, {pairs}"
    values = f"the loss ({outcome.objective:g}) or its gradient ({outcome.gradient_norm:g}) is not finite"
    return f"step {update.step}: {values}; update skipped ({where})"
