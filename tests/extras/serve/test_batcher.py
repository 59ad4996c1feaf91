"""The queue: order, batches, its limit, errors, cancelled requests, the end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event

import pytest

from nmt.errors import DataError, NmtError
from nmt.extras.serve.answers import Batcher, QueueFullError

SECONDS = 20  # an answer never takes that long


@dataclass(frozen=True)
class Double:
    """Doubles numbers; waits for `gate`; 13 is an error, and 14 a defect."""

    name: str = ""
    gate: Event = field(default_factory=Event, compare=False)
    batches: list[list[int]] = field(default_factory=list, compare=False)

    def __call__(self, requests: Sequence[int]) -> list[int]:
        assert self.gate.wait(SECONDS)
        self.batches.append([*requests])
        if 13 in requests:
            raise DataError("13 is unlucky")
        if 14 in requests:
            raise ZeroDivisionError
        return [2 * number for number in requests]


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    batcher = Batcher(10, 4)
    yield batcher
    batcher.stop()


def hold(batcher: Batcher) -> Double:
    """A task whose first request is being answered until its gate opens."""
    task = Double("held")
    batcher.submit(task, 0, 1)
    while batcher.n_waiting:
        pass
    return task


def test_waiting_requests_of_equal_tasks_are_answered_together(batcher: Batcher) -> None:
    held = hold(batcher)
    doubles = [
        Double(name, held.gate, held.batches) for name in ("a", "b", "a", "a", "b", "a", "a")
    ]
    futures = [batcher.submit(task, number, 1) for number, task in enumerate(doubles, 1)]
    held.gate.set()
    assert [future.result(SECONDS) for future in futures] == [2, 4, 6, 8, 10, 12, 14]
    assert held.batches == [[0], [1, 3, 4, 6], [2, 5], [7]]  # at most 4 together


def test_texts_are_counted_not_requests(batcher: Batcher) -> None:
    held = hold(batcher)
    futures = [
        batcher.submit(held, number, n_texts)
        for number, n_texts in ((1, 3), (2, 2), (3, 1), (4, 4))
    ]
    with pytest.raises(
        QueueFullError, match=r"^the queue is full: 10 of at most 10 texts wait; try again later$"
    ):
        batcher.submit(held, 5, 1)
    held.gate.set()
    assert [future.result(SECONDS) for future in futures] == [2, 4, 6, 8]
    assert held.batches == [[0], [1, 3], [2], [4]]


def test_a_cancelled_request_leaves_its_place_and_is_not_answered(batcher: Batcher) -> None:
    held = hold(batcher)
    cancelled = batcher.submit(held, 1, 9)
    with pytest.raises(QueueFullError):
        batcher.submit(held, 2, 2)
    assert cancelled.cancel()
    future = batcher.submit(held, 2, 2)
    held.gate.set()
    assert future.result(SECONDS) == 4
    assert held.batches == [[0], [2]]


def test_an_error_concerns_only_its_request(
    batcher: Batcher, caplog: pytest.LogCaptureFixture
) -> None:
    held = hold(batcher)
    futures = [batcher.submit(held, number, 1) for number in (1, 13, 14, 2)]
    held.gate.set()
    assert [futures[i].result(SECONDS) for i in (0, 3)] == [2, 4]
    with pytest.raises(DataError, match=r"^13 is unlucky$"):
        futures[1].result(SECONDS)
    with pytest.raises(NmtError, match=r"^an error inside the server; its log has the details$"):
        futures[2].result(SECONDS)
    assert "ZeroDivisionError" in caplog.text
    assert batcher.submit(held, 5, 1).result(SECONDS) == 10


def test_the_end_answers_what_was_accepted() -> None:
    batcher, task = Batcher(10, 4), Double()
    futures = [batcher.submit(task, number, 1) for number in range(10)]
    task.gate.set()
    batcher.stop()
    assert [future.result(0) for future in futures] == [2 * number for number in range(10)]
