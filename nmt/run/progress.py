"""How far a training has come: data and pure transitions, so that a checkpoint restores it
exactly.
"""

from dataclasses import dataclass, replace

from pydantic import ConfigDict

from nmt.config.schema import TrainingConfig


@dataclass(frozen=True)
class Interval:
    """Sums since the last training line of the journal, over `n_tokens` target tokens, in nats.

    Attributes:
        objective: the sum that training minimizes. likelihood: the negative log-likelihood;
            checkpoints use this name.
    """

    objective: float = 0.0
    likelihood: float = 0.0
    n_tokens: int = 0

    __pydantic_config__ = ConfigDict(extra="forbid")

    def plus(self, objective: float, nll: float, n_tokens: int) -> "Interval":
        """With one more update."""
        return Interval(self.objective + objective, self.likelihood + nll, self.n_tokens + n_tokens)


@dataclass(frozen=True)
class Progress:
    """How far a training has come. With seed and configuration it determines batch order, schedules
    and dropout.

    Attributes:
        step: updates so far.
        epoch: of the next batch, from 0. part: of this epoch, from 0, as in `nmt.data.batches`.
        batch: index of the next batch in its part, from 0.
        best: the best validation score so far, higher is better; None before the first validation.
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
        self,
        next_position: tuple[int, int, int],
        *,
        applied: bool,
        interval: Interval,
        seconds: float,
        config: TrainingConfig,
    ) -> "Progress":
        """After one more update.

        Args:
            next_position: epoch, part and batch of the next update.
            applied: whether the weights changed; False for a skipped update.
        """
        epoch, part, batch = next_position
        progress = replace(
            self,
            step=self.step + 1,
            epoch=epoch,
            part=part,
            batch=batch,
            skipped=self.skipped + (not applied),
            skipped_in_row=0 if applied else self.skipped_in_row + 1,
            interval=interval,
            seconds=seconds,
        )
        return replace(progress, finished=progress.reason_to_finish(config))

    def after_validation(
        self, score: float, seconds: float, config: TrainingConfig, *, due: bool = True
    ) -> "Progress":
        """After a validation with this score, higher is better, which ended at `seconds`.

        Args:
            due: False for one that is made only because the training ends. It affects neither the
                learning rate nor early stopping: a training that is continued later would not have
                    made it.
        """
        if not due:
            progress = self
        elif self.best is None or score > self.best:
            progress = replace(self, best=score, stale=0)
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
