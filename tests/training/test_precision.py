"""`training.precision: auto`. What it measures is given, or read from a clock that a test moves."""

import warnings
from dataclasses import dataclass, replace
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from nmt.data.batches import read_batches
from nmt.errors import ConfigError, NmtWarning
from nmt.training import precision as measured
from nmt.training.loop import Training, World
from nmt.training.precision import choose_precision, measure_rates
from tests.training.test_loop import make_config, make_training, update_once

FASTER, SLOWER, EQUAL = (100.0, 160.0), (163.0, 85.0), (100.0, 101.0)


def start(precision: str, world: World | None = None) -> Training:
    training = make_training(make_config(training={"precision": precision, "batch": {"size": 10}}))
    return replace(training, world=world) if world else training


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> Any:
    def give(*values: float) -> dict[str, float]:
        given = dict(zip(measured.PRECISIONS, values, strict=True))
        monkeypatch.setattr(measured, "measure_rates", lambda _: given)
        monkeypatch.setattr(measured, "supports_mixed_precision", lambda _: bool(values[1]))
        return given

    return give


@pytest.mark.parametrize(
    ("values", "chosen"), [(FASTER, "bfloat16"), (SLOWER, "float32"), (EQUAL, "float32")]
)
def test_auto_is_the_faster_one(rates: Any, values: tuple[float, float], chosen: str) -> None:
    given = rates(*values)
    training = choose_precision(start("auto"))
    assert training.config.training.precision == chosen
    assert training.rates == given


def test_a_set_precision_stays_with_a_warning_where_it_is_slower(rates: Any) -> None:
    rates(*SLOWER)
    text = "bfloat16 is slower here: 85 tokens/s, float32 163; a new training with auto takes"
    with pytest.warns(NmtWarning, match=text):
        assert choose_precision(start("bfloat16")).config.training.precision == "bfloat16"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rates(*FASTER)
        assert choose_precision(start("bfloat16")).config.training.precision == "bfloat16"
        slow = choose_precision(start("float32"))
    assert slow.config.training.precision == "float32"
    assert slow.rates == {}  # nothing to choose, nothing to measure


def test_where_bfloat16_does_not_work(rates: Any) -> None:
    rates(100.0, 0.0)
    training = choose_precision(start("auto"))
    assert (training.config.training.precision, training.rates) == ("float32", {})
    with pytest.raises(ConfigError, match="bfloat16 needs an NVIDIA GPU, or a processor with"):
        choose_precision(start("bfloat16"))


def test_all_processes_choose_what_the_first_one_measures(rates: Any) -> None:
    @dataclass(frozen=True)
    class Second(World):
        def broadcast(self, value: Any) -> Any:
            return {"float32": 163.0, "bfloat16": 85.0}

    for values in (FASTER, (100.0, 0.0)):
        rates(*values)
        training = choose_precision(start("auto", Second(1, 2)))
        assert training.config.training.precision == "float32"
        assert training.rates == {"float32": 163.0, "bfloat16": 85.0}


@pytest.mark.parametrize(
    ("seconds", "n_updates"), [({"float32": 0.07, "bfloat16": 0.05}, 2), ({}, 5)]
)
def test_the_shortest_times_of_each_update_count(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float], n_updates: int
) -> None:
    """It ends after one second if the choice is clear, else after five."""
    now, others, seen = 0.0, cycle([0.0, 0.0, 0.05, 0.3]), dict[int, int]()

    def pass_time(_loss: Any, trial: Training, update: Any, _ratio: float) -> torch.Tensor:
        nonlocal now
        now += seconds.get(trial.config.training.precision, 0.1) + next(others)
        seen[update.step] = sum(batch.n_tokens for batch in update.micro_batches)
        return torch.zeros(3)

    monkeypatch.setattr(measured, "add_gradients", pass_time)
    monkeypatch.setattr(measured, "time", SimpleNamespace(perf_counter=lambda: now))
    rates = measure_rates(start("auto"))
    mean = sum(seen.values()) / n_updates
    assert rates == pytest.approx(
        {name: mean / seconds.get(name, 0.1) for name in measured.PRECISIONS}
    )
    assert len(seen) == n_updates


def test_measuring_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "MAX_SECONDS", 0.0)
    monkeypatch.setattr(measured, "CLEAR_SECONDS", 0.0)
    weights = []
    for is_measured in (False, True):
        training = start("float32")
        if is_measured:
            assert all(rate > 0 for rate in measure_rates(training).values())
            assert all(parameter.grad is None for parameter in training.model.parameters())
        update_once(training, [*read_batches(training.corpus, [np.arange(10)])])
        weights.append(torch.cat([p.detach().flatten() for p in training.model.parameters()]))
    assert torch.equal(*weights)
