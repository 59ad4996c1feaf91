"""How the progress of a training changes with an update and with a validation; its journal."""

import json
import os
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import TrainingConfig
from nmt.errors import TrainingError
from nmt.run.journal import read_events, rewind, write_event
from nmt.run.progress import Interval, Outcome, Progress, Rank, Update


def after_update(
    progress: Progress, loss: float = 1.0, seconds: float = 1.0, **config: Any
) -> Progress:
    update = Update(progress.step + 1, 0, 0, 0, 1, 2, np.arange(0), [])
    outcome = Outcome(loss, 2.0, 3, 1.0, 0.001, 1.0)
    return progress.after_update(update, outcome, seconds, TrainingConfig(**config))


def test_skipped_updates_are_counted_and_those_in_a_row() -> None:
    progress = Progress()
    for loss in (nan, nan, 1.0, inf):
        progress = after_update(progress, loss)
    assert (progress.step, progress.skipped, progress.skipped_in_row) == (4, 3, 1)
    assert progress.interval == Interval(1.0, 2.0, 3)
    with pytest.raises(TrainingError, match="step 5: loss or gradient was not finite in 2 updates"):
        after_update(progress, nan, max_skipped=2)


def test_an_interval_ends_with_a_line_of_the_journal() -> None:
    progress, tokens = Progress(), list[int]()
    for _ in range(4):
        progress = after_update(progress, log_every=3)
        tokens.append(progress.interval.n_tokens)
    assert tokens == [3, 6, 0, 3]


@pytest.mark.parametrize(
    ("progress", "limits", "reason"),
    [
        (Progress(epoch=2), {"epochs": 2}, "training.epochs=2 is reached"),
        (Progress(step=5), {"max_steps": 5}, "training.max_steps=5 is reached"),
        (Progress(seconds=90), {"max_minutes": 1.5}, "training.max_minutes=1.5 is reached"),
        (Progress(stale=3), {"patience": 3}, "no improvement in training.patience=3 validations"),
        (
            Progress(step=4, epoch=1, seconds=89, stale=2),
            {"epochs": 2, "max_steps": 5, "max_minutes": 1.5, "patience": 3},
            None,
        ),
    ],
)
def test_each_limit_ends_a_training(
    progress: Progress, limits: dict[str, Any], reason: str | None
) -> None:
    assert progress.reason_to_finish(TrainingConfig(**limits)) == reason


def test_max_minutes_leaves_time_for_the_last_validation() -> None:
    progress = after_update(Progress(), seconds=20, max_minutes=1).after_validation(
        Rank(1.0, -1.0), 30, TrainingConfig(max_minutes=1)
    )
    assert (progress.seconds, progress.validation_seconds, progress.finished) == (30, 10, None)
    assert after_update(progress, seconds=49, max_minutes=1).finished is None
    assert (
        after_update(progress, seconds=50, max_minutes=1).finished
        == "training.max_minutes=1 is reached"
    )
    # No further update and validation where there is no time for both.
    progress = after_update(progress, seconds=45, max_minutes=1).after_validation(
        Rank(2.0, -1.0), 54, TrainingConfig(max_minutes=1)
    )
    assert progress.finished == "training.max_minutes=1 is reached"


def test_the_fraction_is_that_of_the_nearest_limit() -> None:
    progress = Progress(step=30, epoch=1, batch=5, seconds=100, validation_seconds=20)
    assert progress.fraction(TrainingConfig(epochs=5), 1, 20) == 1.25 / 5
    assert (
        replace(progress, part=3).fraction(TrainingConfig(epochs=5), 4, 20)
        == (1 + (3 + 0.25) / 4) / 5
    )
    assert progress.fraction(TrainingConfig(epochs=5, max_steps=90), 1, 20) == 30 / 90
    assert (
        progress.fraction(TrainingConfig(epochs=5, max_steps=90, max_minutes=4), 1, 20) == 120 / 240
    )
    assert progress.fraction(TrainingConfig(max_minutes=1), 1, 20) == 1


@given(
    progress=st.builds(
        Progress,
        step=st.integers(0, 6),
        epoch=st.integers(0, 3),
        part=st.integers(0, 1),
        batch=st.integers(0, 4),
        seconds=st.floats(0, 90),
        validation_seconds=st.floats(0, 30),
    ),
    epochs=st.integers(1, 3),
    max_steps=st.none() | st.integers(1, 5),
    max_minutes=st.none() | st.floats(0.1, 1.5),
)
def test_the_fraction_is_1_exactly_where_the_training_ends(
    progress: Progress, epochs: int, max_steps: int | None, max_minutes: float | None
) -> None:
    config = TrainingConfig(epochs=epochs, max_steps=max_steps, max_minutes=max_minutes)
    fraction = progress.fraction(config, 2, 5)
    assert 0 <= fraction <= 1
    assert (fraction == 1) == (progress.reason_to_finish(config) is not None)


def test_validations_without_improvement_lower_the_rate_and_end_the_training() -> None:
    config = TrainingConfig(
        learning_rate={"schedule": "plateau", "patience": 2, "factor": 0.5}, patience=3
    )
    progress, seen = Progress(), []
    for score in (1.0, 3.0, 3.0, 2.0, 1.0):
        progress = progress.after_validation(Rank(score, -1.0), 1.0, config)
        seen.append((progress.best, progress.stale, progress.reductions))
    assert seen == [(1.0, 0, 0), (3.0, 0, 0), (3.0, 1, 0), (3.0, 2, 1), (3.0, 3, 1)]
    assert progress.finished == "no improvement in training.patience=3 validations"


def test_with_equal_scores_a_lower_loss_is_an_improvement() -> None:
    """BLEU is 0 in all validations of a model whose targets are single words."""
    progress, seen = Progress(), []
    for loss in (3.0, 2.0, 2.5, 2.0, 1.0):
        progress = progress.after_validation(Rank(0.0, -loss), 1.0, TrainingConfig(patience=3))
        seen.append((progress.best_loss, progress.stale))
    assert seen == [(3.0, 0), (2.0, 0), (2.0, 1), (2.0, 2), (1.0, 0)]


def test_a_validation_because_the_training_ends_is_not_judged() -> None:
    config = TrainingConfig(
        learning_rate={"schedule": "plateau", "patience": 1}, patience=2, max_steps=3
    )
    progress = Progress(step=3, best=2.0, stale=1, reductions=1)
    after = progress.after_validation(Rank(1.0, -1.0), 5.0, config, due=False)
    assert (after.best, after.stale, after.reductions) == (2.0, 1, 1)
    assert (after.seconds, after.validation_seconds, after.finished) == (
        5.0,
        5.0,
        "training.max_steps=3 is reached",
    )


# The journal


def test_rewinding_deletes_later_events_and_a_cut_off_line_is_skipped(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    for step in (1, 2, 3):
        write_event(journal, "train", step, loss=1 / step)
    with journal.open("a", encoding="utf-8") as file:
        file.write('\0\0\0\n[]\n{"event": "tra')  # what a power cut may leave
    assert [line["step"] for line in read_events(journal)] == [1, 2, 3]
    write_event(journal, "train", 4, loss=1.0)
    assert [line["step"] for line in read_events(journal)] == [1, 2, 3, 4]
    rewind(journal, 2)
    assert [json.loads(line)["step"] for line in journal.read_text().splitlines()] == [1, 2]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the names of open files")
def test_an_event_is_on_disk_before_the_next_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synchronized: list[Path] = []
    monkeypatch.setattr(
        os,
        "fsync",
        lambda descriptor: synchronized.append(Path(f"/proc/self/fd/{descriptor}").resolve()),
    )
    write_event(tmp_path / "journal.jsonl", "train", 1, loss=2.0)
    assert synchronized == [tmp_path / "journal.jsonl", tmp_path]
