"""Runs a function over batches: on a CPU several at a time in threads, and in halves where memory
does not hold a whole batch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from nmt.errors import DataError, lacks_memory

MAX_THREADS = 4  # batches at a time: each needs memory, and all share one Python interpreter

BatchT = TypeVar("BatchT")
ResultT = TypeVar("ResultT")


class TextError(DataError):
    """One of several texts is unusable.

    Attributes:
        index: of the text, from 0. reason: what is wrong with it, and what to do.
    """

    def __init__(self, index: int, reason: str) -> None:
        self.index, self.reason = index, reason
        super().__init__(f"text {index + 1} {reason}")


class TooLargeError(TextError):
    """A single text does not fit into memory."""

    def __init__(self, index: int, advice: str) -> None:
        super().__init__(index, f"does not fit into memory, even alone; {advice}")


def run_batches(
    fn: Callable[[Sequence[int]], list[ResultT]],
    batches: Iterable[Sequence[int]],
    advice: str,
    device: torch.device,
) -> Iterator[tuple[int, ResultT]]:
    """Each index of the batches with its result.

    Args:
        fn: takes indices, returns a result for each.
        batches: of indices, shortest sentences first.
        advice: what the user can do about a text that does not fit into memory.

    Raises:
        TooLargeError: a single text does not fit into memory.
    """
    longest_first = [*batches][::-1]  # so that all threads finish at about the same time
    all_results = map_in_threads(
        lambda indices: run_or_split_on_oom(fn, indices, advice), longest_first, device
    )
    for indices, results in zip(longest_first, all_results, strict=True):
        yield from zip(indices, results, strict=True)


def run_or_split_on_oom(
    fn: Callable[[Sequence[int]], list[ResultT]], indices: Sequence[int], advice: str
) -> list[ResultT]:
    """`fn(indices)`; if that runs out of memory, `fn` of each half.

    Raises:
        TooLargeError: a single index does not fit into memory.
    """
    try:
        return fn(indices)
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
    # Outside of `except`: the error holds the tensors of the failed attempt until here.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if len(indices) == 1:
        raise TooLargeError(indices[0], advice)
    half = len(indices) // 2
    return [
        *run_or_split_on_oom(fn, indices[:half], advice),
        *run_or_split_on_oom(fn, indices[half:], advice),
    ]


def map_in_threads(
    fn: Callable[[BatchT], ResultT], batches: Sequence[BatchT], device: torch.device
) -> Iterator[ResultT]:
    """`fn` of each batch, in order; on a CPU in threads, each with its part of torch's threads.

    A step of search is many small operations, so two batches with one thread each finish sooner
    than one after the other with two threads each. torch releases the interpreter lock while it
    computes. A GPU gains nothing from threads.

    Raises:
        Exception: the first that `fn` raised; batches that have not started are dropped.
    """
    n_threads = torch.get_num_threads()
    n_workers = min(n_threads, len(batches), MAX_THREADS)
    if n_workers < 2 or device.type != "cpu":
        yield from map(fn, batches)
        return
    try:
        with ThreadPoolExecutor(
            n_workers, "batch", torch.set_num_threads, (n_threads // n_workers,)
        ) as pool:
            yield from pool.map(fn, batches)
    finally:
        # A worker's setting is also the default for threads that start later.
        torch.set_num_threads(n_threads)
