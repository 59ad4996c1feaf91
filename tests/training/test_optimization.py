"""Schedules of learning rate and teacher forcing."""

from typing import Any, get_args

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
    Moment,
    forcing_ratio,
    learning_rate,
)


@pytest.mark.parametrize("schedule", get_args(LearningRateSchedule))
def test_warm_up_rises_to_the_peak(schedule: LearningRateSchedule) -> None:
    config = LearningRateConfig(peak=2.0, schedule=schedule, warmup_steps=4, steps=100)
    assert [learning_rate(Moment(step), config) for step in (1, 2, 3, 4)] == [0.5, 1.0, 1.5, 2.0]


FALLING = {"peak": 2.0, "warmup_steps": 10, "floor": 0.5}
COSINE = (2 + np.sqrt(2)) / 4


@pytest.mark.parametrize(
    ("values", "rates"),
    [
        ({"schedule": "constant"}, {Moment(10_000): 2}),
        ({"schedule": "inverse_sqrt"}, {Moment(40): 1}),
        ({"schedule": "linear"}, {Moment(60): 1.25, Moment(110): 0.5, Moment(5000): 0.5}),
        ({"schedule": "cosine"}, {Moment(60): 1.25, Moment(110): 0.5, Moment(5000): 0.5}),
        (
            {"schedule": "step", "peak": 1, "steps": 10, "factor": 0.5, "floor": 0.2},
            {
                Moment(10): 1,
                Moment(11): 1,
                Moment(20): 1,
                Moment(21): 0.5,
                Moment(30): 0.5,
                Moment(31): 0.25,
                Moment(40): 0.25,
                Moment(41): 0.2,
                Moment(1000): 0.2,
            },
        ),
        (
            {"schedule": "plateau", "peak": 1, "factor": 0.1, "floor": 0.05},
            {
                Moment(20, 0): 1,
                Moment(20, 1): 0.1,
                Moment(20, 2): 0.05,
                Moment(2, 2): 0.2,
            },
        ),
    ],
    ids=str,
)
def test_learning_rates(values: dict[str, Any], rates: dict[Moment, float]) -> None:
    config = LearningRateConfig(**{"steps": 110, **FALLING, **values})
    assert {moment: learning_rate(moment, config) for moment in rates} == pytest.approx(rates)


@pytest.mark.parametrize(("schedule", "quarter"), [("linear", 0.75), ("cosine", COSINE)])
def test_without_steps_the_rate_falls_with_the_training(
    schedule: LearningRateSchedule, quarter: float
) -> None:
    config = LearningRateConfig(**FALLING, schedule=schedule, steps=None)
    rates = {0.0: 2.0, 0.25: 0.5 + 1.5 * quarter, 1.0: 0.5}
    assert learning_rate(Moment(5, fraction=0.0), config) == 1.0
    assert {each: learning_rate(Moment(11, fraction=each), config) for each in rates} == (
        pytest.approx(rates)
    )
    # On a slow machine the training may end during the warm-up.
    assert learning_rate(Moment(9, fraction=0.999), config) == pytest.approx(0.5, abs=0.01)


@given(st.sampled_from(get_args(ForcingSchedule)), st.integers(1, 500))
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
