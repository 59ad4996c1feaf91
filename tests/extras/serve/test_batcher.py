"""The queue: order, batches, its limit, errors, cancelled requests."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event

import pytest

from nmt.errors import DataError, NmtError
from nmt.extras.serve.answers import Batcher, QueueFullError

SECONDS = 20  # an answer never takes that long

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


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
async def batcher() -> Batcher:
    """10 texts may wait, 4 are answered together."""
    return Batcher(10, 4)


@pytest.fixture
async def held(batcher: Batcher) -> Double:
    """A task whose first request is being answered until its gate opens."""
    task = Double("held")
    batcher.submit(task, 0, 1)
    while batcher.n_waiting:
        await asyncio.sleep(0)
    return task


async def test_waiting_requests_of_equal_tasks_are_answered_together(
    batcher: Batcher, held: Double
) -> None:
    names = ("a", "b", "a", "a", "b", "a", "a")
    doubles = [Double(name, held.gate, held.batches) for name in names]
    futures = [batcher.submit(task, number, 1) for number, task in enumerate(doubles, 1)]
    held.gate.set()
    assert await asyncio.gather(*futures) == [2, 4, 6, 8, 10, 12, 14]
    assert held.batches == [[0], [1, 3, 4, 6], [2, 5], [7]]  # at most 4 together


async def test_texts_are_counted_not_requests(batcher: Batcher, held: Double) -> None:
    futures = [
        batcher.submit(held, number, n_texts)
        for number, n_texts in ((1, 3), (2, 2), (3, 1), (4, 4))
    ]
    with pytest.raises(
        QueueFullError, match=r"^the queue is full: 10 of at most 10 texts wait; try again later$"
    ):
        batcher.submit(held, 5, 1)
    futures.append(batcher.submit(held, 5, 1, is_new=False))  # the next part of a request
    held.gate.set()
    assert await asyncio.gather(*futures) == [2, 4, 6, 8, 10]
    assert held.batches == [[0], [1, 3], [2, 5], [4]]


async def test_a_cancelled_request_leaves_its_place_and_is_not_answered(
    batcher: Batcher, held: Double
) -> None:
    cancelled = batcher.submit(held, 1, 11)  # an empty queue takes any request
    with pytest.raises(QueueFullError):
        batcher.submit(held, 2, 2)
    assert cancelled.cancel()
    future = batcher.submit(held, 2, 2)
    held.gate.set()
    assert await future == 4
    assert held.batches == [[0], [2]]


async def test_an_error_concerns_only_its_request(
    batcher: Batcher, held: Double, caplog: pytest.LogCaptureFixture
) -> None:
    futures = [batcher.submit(held, number, 1) for number in (1, 13, 14, 2)]
    held.gate.set()
    assert [await futures[i] for i in (0, 3)] == [2, 4]
    with pytest.raises(DataError, match=r"^13 is unlucky$"):
        await futures[1]
    with pytest.raises(NmtError, match=r"^an error inside the server; its log has the details$"):
        await futures[2]
    assert "ZeroDivisionError" in caplog.text
    assert await batcher.submit(held, 5, 1) == 10
