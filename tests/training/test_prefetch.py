"""Prefetching, with a simulated GPU."""

import threading
from collections.abc import Iterator

import pytest
import torch

from nmt.training import loop
from nmt.training.loop import prefetch
from tests.training.test_loop import assert_equal, make_config, make_training, never

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.fixture
def current(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, torch.device]]:
    """The calls of `torch.cuda.set_device`: thread and GPU."""
    calls: list[tuple[str, torch.device]] = []
    monkeypatch.setattr(
        torch.cuda,
        "set_device",
        lambda device: calls.append((threading.current_thread().name, device)),
    )
    return calls


def test_the_next_item_is_made_while_the_caller_uses_one(
    current: list[tuple[str, torch.device]],
) -> None:
    started = [threading.Event() for _ in range(4)]

    def make() -> Iterator[int]:
        for number, event in enumerate(started):
            event.set()
            yield number

    for number in prefetch(make(), GPU):
        assert all(event.wait(10) for event in started[: number + 2])
        assert not any(event.is_set() for event in started[number + 2 :])
    assert number == 3
    assert current == [("prefetch_0", GPU)]


def test_an_error_of_the_thread_is_raised_in_place_of_its_item(
    current: list[tuple[str, torch.device]],
) -> None:
    def make() -> Iterator[int]:
        yield 1
        raise OSError("the disk is gone")

    items = prefetch(make(), GPU)
    assert next(items) == 1
    with pytest.raises(OSError, match="the disk is gone"):
        next(items)
    assert list(items) == []


def test_stopping_early_leaves_no_thread(current: list[tuple[str, torch.device]]) -> None:
    before = threading.active_count()
    items = prefetch(iter(range(100)), GPU)
    assert next(items) == 0
    assert threading.active_count() == before + 1
    items.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


@pytest.mark.parametrize("ratio", [1.0, 0.6])
def test_prefetching_does_not_change_a_training(
    ratio: float, current: list[tuple[str, torch.device]], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(
        training={
            "epochs": 2,
            "batch": {"size": 16},
            "accumulate": 2,
            "teacher_forcing": {"start": ratio},
        }
    )
    trained = []
    for pretended in (CPU, GPU):
        monkeypatch.setattr(
            loop, "prefetch", lambda tasks, _, device=pretended: prefetch(tasks, device)
        )
        training = make_training(config, seed=5)
        assert loop.fit(training, loop.Record(), never).step == 8
        trained.append(training.model)
    assert len(current) == 1
    assert_equal(*trained)
