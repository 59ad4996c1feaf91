"""Batches in threads: the division of work and threads; and out of memory: halves of batches that
fit.
"""

from collections.abc import Iterator, Sequence
from threading import Barrier, Thread, current_thread, main_thread
from time import sleep

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.decoding.translator import MAX_THREADS, map_in_threads, run_or_split_on_oom
from nmt.errors import lacks_memory


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 40))
def test_a_batch_is_split_until_its_parts_fit(indices: list[int], capacity: int) -> None:
    sizes: list[int] = []

    def double(indices: Sequence[int]) -> list[int]:
        if len(indices) > capacity:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
        sizes.append(len(indices))
        return [2 * index for index in indices]

    assert run_or_split_on_oom(double, indices, "") == [2 * index for index in indices]
    assert len(sizes) <= max(1, 4 * len(indices) / capacity)


def test_other_errors_are_raised() -> None:
    def fail(_: Sequence[int]) -> list[int]:
        raise RuntimeError("shape '[3]' is invalid for input of size 4")

    with pytest.raises(RuntimeError, match="is invalid"):
        run_or_split_on_oom(fail, [1, 2], "")


def test_messages_of_allocators() -> None:
    with pytest.raises((MemoryError, RuntimeError)) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert lacks_memory(caught.value)


# --- Threads

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def threads_of_a_new_thread() -> int:
    counts: list[int] = []
    thread = Thread(target=lambda: counts.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return counts[0]


def test_two_run_at_a_time_and_results_come_in_order() -> None:
    both = Barrier(2)

    def run(batch: int) -> tuple[int, int, bool]:
        both.wait(timeout=20)  # one thread alone would wait
        sleep(0.01 * (batch == 0))
        return batch, torch.get_num_threads(), current_thread() is main_thread()

    assert [*map_in_threads(run, range(6), CPU)] == [(batch, 1, False) for batch in range(6)]


def test_workers_divide_the_threads() -> None:
    torch.set_num_threads(2 * MAX_THREADS + 1)
    assert [*map_in_threads(lambda _: torch.get_num_threads(), range(2 * MAX_THREADS), CPU)] == [
        2
    ] * 2 * MAX_THREADS
    assert [*map_in_threads(lambda _: torch.get_num_threads(), range(2), CPU)] == [MAX_THREADS] * 2
    assert torch.get_num_threads() == 2 * MAX_THREADS + 1


@pytest.mark.parametrize(
    ("n_threads", "n_batches", "device"),
    [(1, 3, CPU), (2, 1, CPU), (2, 0, CPU), (2, 3, torch.device("meta"))],
    ids=str,
)
def test_the_caller_alone_works_with_all_threads(
    n_threads: int, n_batches: int, device: torch.device
) -> None:
    torch.set_num_threads(n_threads)
    results = [
        *map_in_threads(
            lambda _: (current_thread(), torch.get_num_threads()), range(n_batches), device
        )
    ]
    assert results == [(current_thread(), n_threads)] * n_batches


def test_the_number_of_threads_is_restored() -> None:
    assert [*map_in_threads(abs, range(4), CPU)] == [0, 1, 2, 3]
    assert torch.get_num_threads() == threads_of_a_new_thread() == 2
    with pytest.raises(ZeroDivisionError):
        [*map_in_threads(lambda batch: 1 // batch, range(4), CPU)]
    assert torch.get_num_threads() == threads_of_a_new_thread() == 2
    next(results := map_in_threads(abs, range(4), CPU))
    results.close()  # type: ignore[attr-defined]
    assert torch.get_num_threads() == threads_of_a_new_thread() == 2


def test_after_an_error_no_batch_starts() -> None:
    started: list[int] = []

    def run(batch: int) -> int:
        started.append(batch)
        sleep(0.01)
        if batch == 3:
            raise MemoryError
        return batch

    results = map_in_threads(run, range(1000), CPU)
    assert [next(results), next(results), next(results)] == [0, 1, 2]
    with pytest.raises(MemoryError):
        next(results)
    assert len(started) < 50
