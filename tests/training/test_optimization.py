"""Schedules of learning rate and teacher forcing."""

from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import (
    ForcingSchedule,
    LearningRateConfig,
    LearningRateSchedule,
    TeacherForcingConfig,
)
from nmt.data.batches import build_batch
from nmt.training.loss import draw_forcing_mask
from nmt.training.optimization import (
    FORCING_SCHEDULES,
    LEARNING_RATE_SCHEDULES,
    Moment,
    forcing_ratio,
    learning_rate,
)


def test_every_schedule_name_has_a_function() -> None:
    assert set(get_args(LearningRateSchedule)) == set(LEARNING_RATE_SCHEDULES)
    assert set(get_args(ForcingSchedule)) == set(FORCING_SCHEDULES)


@pytest.mark.parametrize("schedule", LEARNING_RATE_SCHEDULES)
def test_warm_up_rises_to_the_peak(schedule: LearningRateSchedule) -> None:
    config = LearningRateConfig(peak=2.0, schedule=schedule, warmup_steps=4, steps=100)
    assert [learning_rate(Moment(step), config) for step in (1, 2, 3, 4)] == [0.5, 1.0, 1.5, 2.0]


def test_first_and_last_learning_rates() -> None:
    config = LearningRateConfig(peak=2.0, warmup_steps=10, steps=110, floor=0.5)
    assert learning_rate(Moment(10_000), config) == 2.0
    assert learning_rate(
        Moment(40), config.model_copy(update={"schedule": "inverse_sqrt"})
    ) == pytest.approx(1.0)
    for schedule in ("linear", "cosine"):
        falling = config.model_copy(update={"schedule": schedule})
        assert learning_rate(Moment(60), falling) == pytest.approx(1.25)
        assert (
            learning_rate(Moment(110), falling)
            == learning_rate(Moment(5000), falling)
            == pytest.approx(0.5)
        )


def test_the_step_schedule_falls_to_the_floor() -> None:
    config = LearningRateConfig(
        peak=1.0, schedule="step", warmup_steps=5, steps=10, factor=0.5, floor=0.2
    )
    assert [
        learning_rate(Moment(step), config) for step in (5, 6, 15, 16, 25, 26, 35, 36, 1000)
    ] == [
        1,
        1,
        1,
        0.5,
        0.5,
        0.25,
        0.25,
        0.2,
        0.2,
    ]


def test_the_plateau_schedule_follows_its_reductions() -> None:
    config = LearningRateConfig(
        peak=1.0, schedule="plateau", warmup_steps=5, factor=0.1, floor=0.05
    )
    assert [learning_rate(Moment(10, reductions), config) for reductions in (0, 1, 2)] == [
        1.0,
        0.1,
        0.05,
    ]
    assert learning_rate(Moment(1, 2), config) == 0.2


@pytest.mark.parametrize(
    ("schedule", "middle"),
    [("linear", 0.5 + 1.5 * 0.75), ("cosine", 0.5 + 1.5 * (2 + np.sqrt(2)) / 4)],
)
def test_without_steps_the_rate_falls_with_the_training(
    schedule: LearningRateSchedule, middle: float
) -> None:
    config = LearningRateConfig(peak=2.0, schedule=schedule, warmup_steps=10, steps=None, floor=0.5)
    assert learning_rate(Moment(5, fraction=0.0), config) == 1.0
    assert [
        learning_rate(Moment(11, fraction=fraction), config) for fraction in (0.0, 0.25, 1.0)
    ] == pytest.approx([2.0, middle, 0.5])
    # On a slow machine the training may end during the warm-up.
    assert learning_rate(Moment(9, fraction=0.999), config) == pytest.approx(0.5, abs=0.01)


@given(st.sampled_from(list(FORCING_SCHEDULES)), st.integers(1, 500))
def test_the_forcing_ratio_goes_monotonically_from_start_to_end(
    schedule: ForcingSchedule, step: int
) -> None:
    config = TeacherForcingConfig(start=0.9, end=0.2, schedule=schedule, steps=200)
    here, later = forcing_ratio(step, config), forcing_ratio(step + 1, config)
    if schedule == "constant":
        assert here == 0.9
    else:
        assert 0.2 <= later <= here <= 0.9 + 1e-12
        assert forcing_ratio(201, config) == pytest.approx(0.2)
        assert forcing_ratio(1, config) == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("ratio", [0.0, 0.3])
@pytest.mark.parametrize("per", ["sentence", "token"])
def test_the_share_of_forced_words_is_the_ratio(per: str, ratio: float) -> None:
    batch = build_batch([[5]] * 500, [[5] * 19] * 500)
    forcing_mask = draw_forcing_mask(batch, ratio, per, torch.Generator().manual_seed(1))
    assert forcing_mask is not None
    draws = 500 if per == "sentence" else 500 * 20
    limit = 4 * np.sqrt(ratio * (1 - ratio) / draws)
    assert abs(forcing_mask.double().mean().item() - ratio) <= limit
    assert (forcing_mask == forcing_mask[:, :1]).all() == (per == "sentence" or ratio == 0)
    assert draw_forcing_mask(batch, 1.0, per, torch.Generator()) is None
