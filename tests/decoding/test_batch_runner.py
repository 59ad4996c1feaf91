"""Batches in threads; and out of memory: halves of batches that fit."""

from collections.abc import Sequence
from threading import Barrier, current_thread, main_thread
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


def test_two_run_at_a_time_and_results_come_in_order() -> None:
    both = Barrier(2)

    def run(batch: int) -> tuple[int, bool]:
        both.wait(timeout=20)  # one thread alone would wait
        sleep(0.01 * (batch == 0))
        return batch, current_thread() is main_thread()

    assert [*map_in_threads(run, range(6), 2)] == [(batch, False) for batch in range(6)]


def test_there_are_not_more_threads_than_their_limit() -> None:
    def run(_: int) -> str:
        sleep(0.01)
        return current_thread().name

    assert 1 < len({*map_in_threads(run, range(40), 40)}) <= MAX_THREADS


@pytest.mark.parametrize(("n_threads", "n_batches"), [(1, 3), (2, 1), (2, 0)])
def test_the_caller_alone_works(n_threads: int, n_batches: int) -> None:
    results = [*map_in_threads(lambda _: current_thread(), range(n_batches), n_threads)]
    assert results == [current_thread()] * n_batches


def test_after_an_error_no_batch_starts() -> None:
    started: list[int] = []

    def run(batch: int) -> int:
        started.append(batch)
        sleep(0.01)
        if batch == 3:
            raise MemoryError
        return batch

    results = map_in_threads(run, range(1000), 2)
    assert [next(results), next(results), next(results)] == [0, 1, 2]
    with pytest.raises(MemoryError):
        next(results)
    assert len(started) < 50
