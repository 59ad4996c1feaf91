"""How far a training is: data and pure transitions, so that a checkpoint restores it exactly."""

from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from nmt.config.schema import TrainingConfig
from nmt.errors import TrainingError

if TYPE_CHECKING:
    from nmt.data.batches import Batch


ROUNDING = 1e-9  # 0.6 / 0.2 is a little less than 3


@dataclass(frozen=True)
class Update:
    """An update to make.

    Attributes:
        step: counted from 1.
        epoch: from 0. part: of the epoch, from 0, as in `nmt.data.batches`. batch: its index in the
            part, from 0.
        n_parts: in the epoch. n_batches: in the part.
        pairs: the batch of all processes together, as indices into the corpus.
        micro_batches: the part of this process, on its device; none if the batch is too small.
    """

    step: int
    epoch: int
    part: int
    batch: int
    n_parts: int
    n_batches: int
    pairs: NDArray[np.int64]
    micro_batches: "list[Batch]"

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
        """Whether the update was applied: if the loss or gradient is not finite, the weights stay
        as they are.
        """
        return isfinite(self.objective) and isfinite(self.gradient_norm)


@dataclass(frozen=True)
class Interval:
    """Sums over the updates since the last training line of the journal.

    Attributes:
        objective: what training minimizes, in nats.
        likelihood: the negative log-likelihood, in nats. Checkpoints have it under this name.
        n_tokens: target tokens.
    """

    objective: float = 0.0
    likelihood: float = 0.0
    n_tokens: int = 0

    __pydantic_config__ = ConfigDict(extra="forbid")

    def plus(self, outcome: Outcome) -> "Interval":
        """With one more update, if it was applied."""
        if not outcome.is_finite:
            return self
        return Interval(
            self.objective + outcome.objective,
            self.likelihood + outcome.nll,
            self.n_tokens + outcome.n_tokens,
        )


class Rank(NamedTuple):
    """How good a checkpoint was in its validation: the larger one is better.

    Attributes:
        score: in `training.metric`, higher is better. BLEU is often equal: it is 0 until outputs
            share four words in a row with the references, and always for single words.
        negative_loss: of the dev set, to decide between equal scores.
    """

    score: float
    negative_loss: float

    @classmethod
    def of(cls, score: float, loss: float | None) -> "Rank":
        """From the values in files; earlier versions wrote no loss, which counts as infinite."""
        return cls(score, -inf if loss is None else -loss)


@dataclass(frozen=True)
class Progress:
    """How far a training has come. With seed and configuration it determines batch order, schedules
    and dropout.

    Attributes:
        step: updates so far.
        epoch: of the next batch, from 0. part: of this epoch, from 0, as in `nmt.data.batches`.
        batch: index of the next batch in its part, from 0.
        best: the best validation score so far, higher is better; None before the first validation.
            best_loss: the dev loss of the same validation.
        stale: validations since the best one.
        reductions: how often the plateau schedule has lowered the learning rate.
        skipped: updates skipped because loss or gradient was not finite. skipped_in_row: those
            since the last applied update.
        interval: sums for the next training line of the journal.
        seconds: training time, over all resumptions. validation_seconds: duration of the last
            validation.
        finished: why training ended; None if it has not.
    """

    step: int = 0
    epoch: int = 0
    part: int = 0
    batch: int = 0
    best: float | None = None
    best_loss: float | None = None
    stale: int = 0
    reductions: int = 0
    skipped: int = 0
    skipped_in_row: int = 0
    interval: Interval = Interval()
    seconds: float = 0.0
    validation_seconds: float = 0.0
    finished: str | None = None

    __pydantic_config__ = ConfigDict(extra="forbid")

    def after_update(
        self, update: Update, outcome: Outcome, seconds: float, config: TrainingConfig
    ) -> "Progress":
        """After one more update, which ended at `seconds`.

        Raises:
            TrainingError: too many updates in a row were not finite.
        """
        epoch, part, batch = update.next_position
        skipped = not outcome.is_finite
        is_logged = update.step % config.log_every == 0
        progress = replace(
            self,
            step=update.step,
            epoch=epoch,
            part=part,
            batch=batch,
            skipped=self.skipped + skipped,
            skipped_in_row=self.skipped_in_row + 1 if skipped else 0,
            interval=Interval() if is_logged else self.interval.plus(outcome),
            seconds=seconds,
        )
        if progress.skipped_in_row >= config.max_skipped:
            raise TrainingError(
                f"step {update.step}: loss or gradient was not finite in {config.max_skipped} "
                "updates in a row; the last checkpoint is intact; lower "
                "training.learning_rate.peak or training.clip_norm"
            )
        return replace(progress, finished=progress.reason_to_finish(config))

    def needs_validation(self, update: Update, before: float, config: TrainingConfig) -> bool:
        """Whether a validation is due now, after this update. before: the `fraction` before it."""
        every = config.validate_every
        if every is None:
            return update.ends_epoch
        if every < 1:
            after = self.fraction(config, update.n_parts, update.n_batches)
            return int(after / every + ROUNDING) > int(before / every + ROUNDING)
        return self.step % every == 0

    def after_validation(
        self, rank: Rank, seconds: float, config: TrainingConfig, *, due: bool = True
    ) -> "Progress":
        """After a validation with this result, which ended at `seconds`.

        Args:
            due: False for one that is made only because the training ends. It affects neither the
                learning rate nor early stopping: a training that is continued later would not
                have made it.
        """
        if not due:
            progress = self
        elif self.best is None or rank > Rank.of(self.best, self.best_loss):
            progress = replace(self, best=rank.score, best_loss=-rank.negative_loss, stale=0)
        else:
            rate, stale = config.learning_rate, self.stale + 1
            lowered = rate.schedule == "plateau" and stale % rate.patience == 0
            progress = replace(self, stale=stale, reductions=self.reductions + lowered)
        progress = replace(progress, seconds=seconds, validation_seconds=seconds - self.seconds)
        return replace(progress, finished=progress.reason_to_finish(config))

    def fraction(self, config: TrainingConfig, n_parts: int, n_batches: int) -> float:
        """The finished part of the training, from 0 to 1: the largest of step / max_steps, passes /
        epochs, minutes / max_minutes.

        It is 1 if and only if one of these limits is reached. Early stopping cannot be foreseen.

        Args:
            n_parts: in this epoch. n_batches: in this part.
        """
        fractions = [(self.epoch + (self.part + self.batch / n_batches) / n_parts) / config.epochs]
        if config.max_steps is not None:
            fractions.append(self.step / config.max_steps)
        if config.max_minutes is not None:
            fractions.append(self._seconds_to_end() / (60 * config.max_minutes))
        return min(1.0, max(fractions))

    def reason_to_finish(self, config: TrainingConfig) -> str | None:
        """Which limit of the configuration is reached; None if training can continue."""
        if self.epoch >= config.epochs:
            return f"training.epochs={config.epochs} is reached"
        if config.max_steps is not None and self.step >= config.max_steps:
            return f"training.max_steps={config.max_steps} is reached"
        if config.max_minutes is not None and self._seconds_to_end() >= 60 * config.max_minutes:
            return f"training.max_minutes={config.max_minutes:g} is reached"
        if self.stale >= config.patience:
            return f"no improvement in training.patience={config.patience} validations"
        return None

    def _seconds_to_end(self) -> float:
        """The time of the training if it ended now, with a last validation that takes as long as
        the previous one.
        """
        return self.seconds + self.validation_seconds
