"""How the progress of a training changes with an update and with a validation."""

from typing import Any

import pytest

from nmt.config.schema import TrainingConfig
from nmt.run.progress import Interval, Progress


def after_update(progress: Progress, applied: bool = True, seconds: float = 1.0, **config: Any) -> Progress:
    training = TrainingConfig(**config)
    return progress.after_update(epoch=0, batch=1, applied=applied, interval=Interval(), seconds=seconds, config=training)


def test_skipped_updates_are_counted_and_those_in_a_row() -> None:
    progress = Progress()
    for applied in (False, False, True, False):
        progress = after_update(progress, applied)
    assert (progress.step, progress.skipped, progress.skipped_in_row) == (4, 3, 1)


@pytest.mark.parametrize(
    ("progress", "limits", "reason"),
    [
        (Progress(epoch=2), {"epochs": 2}, "training.epochs=2 is reached"),
        (Progress(step=5), {"max_steps": 5}, "training.max_steps=5 is reached"),
        (Progress(seconds=90), {"max_minutes": 1.5}, "training.max_minutes=1.5 is reached"),
        (Progress(stale=3), {"patience": 3}, "no improvement in training.patience=3 validations"),
        (Progress(step=4, epoch=1, seconds=89, stale=2), {"epochs": 2, "max_steps": 5, "max_minutes": 1.5, "patience": 3}, None),
    ],
)
def test_each_limit_ends_a_training(progress: Progress, limits: dict[str, Any], reason: str | None) -> None:
    assert progress.reason_to_finish(TrainingConfig(**limits)) == reason


def test_an_update_that_reaches_a_limit_finishes_the_training() -> None:
    assert after_update(Progress(step=1), max_steps=3).finished is None
    assert after_update(Progress(step=2), max_steps=3).finished == "training.max_steps=3 is reached"


def test_the_time_of_a_validation_does_not_finish_the_training() -> None:
    progress = after_update(Progress(), seconds=59, max_minutes=1).after_validation(1.0, 61, TrainingConfig(max_minutes=1))
    assert (progress.finished, progress.seconds) == (None, 61)


def test_validations_without_improvement_lower_the_rate_and_end_the_training() -> None:
    config = TrainingConfig(learning_rate={"schedule": "plateau", "patience": 2, "factor": 0.5}, patience=3)
    progress, seen = Progress(), []
    for score in (1.0, 3.0, 3.0, 2.0, 1.0):
        progress = progress.after_validation(score, 1.0, config)
        seen.append((progress.best, progress.stale, progress.reductions))
    assert seen == [(1.0, 0, 0), (3.0, 0, 0), (3.0, 1, 0), (3.0, 2, 1), (3.0, 3, 1)]
    assert progress.finished == "no improvement in training.patience=3 validations"
