"""Batches side by side: who works on what, on how many threads, and what is left behind."""

from collections.abc import Iterator
from threading import Barrier, Thread, current_thread, main_thread
from time import sleep

import pytest
import torch

from nmt.decoding.workers import MOST, side_by_side

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def threads_of_a_new_thread() -> int:
    found: list[int] = []
    thread = Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


def test_two_are_made_at_a_time_and_come_in_order() -> None:
    both = Barrier(2)

    def make(batch: int) -> tuple[int, int, bool]:
        both.wait(timeout=20)  # nobody passes it alone
        sleep(0.01 * (batch == 0))
        return batch, torch.get_num_threads(), current_thread() is main_thread()

    assert [*side_by_side(make, range(6), CPU)] == [(batch, 1, False) for batch in range(6)]


def test_threads_are_shared_out() -> None:
    torch.set_num_threads(2 * MOST + 1)
    assert [*side_by_side(lambda _: torch.get_num_threads(), range(2 * MOST), CPU)] == [2] * 2 * MOST
    assert [*side_by_side(lambda _: torch.get_num_threads(), range(2), CPU)] == [MOST] * 2
    assert torch.get_num_threads() == 2 * MOST + 1


@pytest.mark.parametrize(
    ("n_threads", "n_batches", "device"), [(1, 3, CPU), (2, 1, CPU), (2, 0, CPU), (2, 3, torch.device("meta"))], ids=str
)
def test_alone_who_calls_does_the_work_with_all_threads(n_threads: int, n_batches: int, device: torch.device) -> None:
    torch.set_num_threads(n_threads)
    made = [*side_by_side(lambda _: (current_thread(), torch.get_num_threads()), range(n_batches), device)]
    assert made == [(current_thread(), n_threads)] * n_batches


def test_the_number_of_threads_is_afterwards_as_before() -> None:
    assert [*side_by_side(abs, range(4), CPU)] == [0, 1, 2, 3]
    assert torch.get_num_threads() == threads_of_a_new_thread() == 2
    with pytest.raises(ZeroDivisionError):
        [*side_by_side(lambda batch: 1 // batch, range(4), CPU)]
    assert torch.get_num_threads() == threads_of_a_new_thread() == 2
    next(made := side_by_side(abs, range(4), CPU))
    made.close()  # type: ignore[attr-defined]
    assert torch.get_num_threads() == threads_of_a_new_thread() == 2


def test_after_an_error_no_batch_is_begun() -> None:
    begun: list[int] = []

    def make(batch: int) -> int:
        begun.append(batch)
        sleep(0.01)
        if batch == 3:
            raise MemoryError
        return batch

    made = side_by_side(make, range(1000), CPU)
    assert [next(made), next(made), next(made)] == [0, 1, 2]
    with pytest.raises(MemoryError):
        next(made)
    assert len(begun) < 50
