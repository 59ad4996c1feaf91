"""Worker processes that receive data in chunks, so only a few chunks are in memory."""

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from mmap import ACCESS_COPY, mmap
from multiprocessing.connection import wait
from typing import Any, TypeVar

from nmt.cores import usable_cores
from nmt.errors import DataError
from nmt.files import delaying_interrupts

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

MAX_WORKERS = 8  # more would wait for the main process, which reads and writes
CHUNKS_PER_WORKER = 2
# Bytes for two threads, with their stacks and the space that the C library reserves: Python would
# wait forever for the start of a thread that finds no memory.
MIN_MEMORY = 1 << 27
NO_MEMORY = "memory ran out; fewer workers need less: data.workers=1"


def worker_count(configured: int | None) -> int:
    """`configured`, or one worker per core that this process may use."""
    return configured or min(usable_cores(), MAX_WORKERS)


class Workers:
    """Processes that run functions; see `start_workers`."""

    def __init__(self, executor: ProcessPoolExecutor, count: int) -> None:
        self._executor = executor
        self._count = count

    def submit(self, function: Callable[..., ResultT], *arguments: Any) -> Future[ResultT]:
        return self._executor.submit(function, *arguments)

    def map(
        self, function: Callable[..., ResultT], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[ResultT]:
        """Yields `function(*call)` for each call, in order. Takes calls only as fast as the caller
        takes results.
        """
        remaining = iter(calls)
        futures: deque[Future[ResultT]] = deque()
        while True:
            free = self._count * CHUNKS_PER_WORKER - len(futures)
            futures.extend(self.submit(function, *call) for call in islice(remaining, free))
            if not futures:
                return
            yield futures.popleft().result()


@contextmanager
def start_workers(count: int) -> Iterator[Workers]:
    """Worker processes for a `with` block. They stop at once when it ends.

    Raises:
        DataError: memory is too small, or a worker died, for example because the system ran out of
            memory.
    """
    try:
        mmap(-1, MIN_MEMORY, access=ACCESS_COPY).close()  # reserves the memory, and gives it back
    except (OSError, MemoryError):
        raise DataError(NO_MEMORY) from None
    # With fork, the user's script needs no `if __name__ == "__main__"`; fork is safe only on Linux.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    earlier_children = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=start_worker)
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns about a fork in a process with threads; these workers use none of
            # the locks that a thread may hold.
            warnings.simplefilter("ignore", DeprecationWarning)
            # Python ignores a KeyboardInterrupt in the callbacks of a fork, and prints a traceback.
            with delaying_interrupts():
                start = executor.submit(int)
            start.result()
        yield Workers(executor, count)
    except BrokenProcessPool:
        raise DataError(f"a worker process died, perhaps because {NO_MEMORY}") from None
    finally:
        # Also at a normal end: should another program kill a worker then, Python would wait for the
        # others forever.
        for process in set(multiprocessing.active_children()) - earlier_children:
            process.kill()
        executor.shutdown(wait=True, cancel_futures=True)


def peak_memory(n_workers: int = 0) -> int | None:
    """An upper bound in bytes: the sum of the peaks of this process and its workers, with shared
    memory counted in each.

    None on Windows, where Python cannot measure it.
    """
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    this_process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    largest_worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return (this_process + n_workers * largest_worker) * unit


def chunked(items: Iterable[ItemT], size: int) -> Iterator[list[ItemT]]:
    """Lists of `size` items; the last may be shorter."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


def start_worker() -> None:
    """What a worker process does first."""
    # Ctrl-C reaches all processes of the terminal; the main process stops the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # spaCy imports torch if it is installed: 180 MB and two seconds per worker, and a tokenizer
    # does not need it.
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
