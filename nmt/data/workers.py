"""Worker processes that are fed chunk by chunk, so that never more than a few chunks are in memory."""

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
from multiprocessing.connection import wait
from typing import Any, TypeVar

from nmt.errors import DataError

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_WORKERS = 8  # more would wait for the process that reads and writes
CHUNKS_PER_WORKER = 2


def worker_count(asked: int | None) -> int:
    """One per core that this process may use, unless `asked` says how many."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return asked or min(cores, MOST_WORKERS)


class Workers:
    """Processes that run functions; made by `start_workers`."""

    def __init__(self, executor: ProcessPoolExecutor, count: int) -> None:
        self._executor = executor
        self._count = count

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        return self._executor.submit(function, *arguments)

    def map(self, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]) -> Iterator[Result]:
        """`function(*call)` for each call, in order; calls are drawn no faster than results are taken."""
        remaining = iter(calls)
        running: deque[Future[Result]] = deque()
        while True:
            free = self._count * CHUNKS_PER_WORKER - len(running)
            running.extend(self.submit(function, *call) for call in islice(remaining, free))
            if not running:
                return
            yield running.popleft().result()


@contextmanager
def start_workers(count: int) -> Iterator[Workers]:
    """Worker processes for the length of a `with` block. When it ends by an error or Ctrl-C, they are stopped at once.

    Raises:
        DataError: a worker died, as when the system kills it for want of memory.
    """
    # Forked workers need no `if __name__ == "__main__"` in the user's script; elsewhere than on Linux forking is not safe.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    earlier = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=_start)
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of forking beside other threads; these workers take none of the locks that those may hold.
            warnings.simplefilter("ignore", DeprecationWarning)
            executor.submit(int).result()
        yield Workers(executor, count)
    except BrokenProcessPool:
        raise DataError("a worker process died, perhaps for want of memory; fewer need less: data.workers=1") from None
    except BaseException:
        for process in set(multiprocessing.active_children()) - earlier:
            process.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def peak_memory(n_workers: int = 0) -> int | None:
    """Bytes, an upper bound: the peaks of this process and of its workers added up, shared memory counted in each.

    None on Windows, which does not tell.
    """
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    own, worker = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (own + n_workers * worker) * unit


def chunked(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` items; the last may be shorter."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


def _start() -> None:
    # Ctrl-C reaches every process of the terminal; the main one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # spaCy would load torch if it found it: 180 MB and two seconds for each worker, and no use for a tokenizer.
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
