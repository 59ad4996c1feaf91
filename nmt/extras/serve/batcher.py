"""A queue and one thread that translates: requests that wait together are answered together."""

import logging
from collections.abc import Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from nmt.errors import NmtError

logger = logging.getLogger(__name__)


class QueueFullError(NmtError):
    """The queue has no room for a request."""


class Task(Hashable, Protocol):
    """Answers several requests at once: one result for each.

    The requests of equal tasks may be answered together.
    """

    def __call__(self, requests: Sequence[Any], /) -> Sequence[Any]: ...


@dataclass(frozen=True, eq=False)
class _Job:
    task: Task
    request: Any
    n_texts: int
    future: "Future[Any]" = field(default_factory=Future)


class Batcher:
    """Answers requests in a thread of its own, in order, those with equal tasks together.

    Args:
        capacity: texts that may wait; this bounds the memory of all requests.
        max_batch: texts that are translated together.
    """

    def __init__(self, capacity: int, max_batch: int) -> None:
        self.capacity, self.max_batch = capacity, max_batch
        self._jobs: list[_Job] = []
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(1, "translate")

    @property
    def n_waiting(self) -> int:
        """Texts in the queue, without those of cancelled requests."""
        return sum(job.n_texts for job in self._jobs if not job.future.cancelled())

    def stop(self) -> None:
        """Answer the requests that wait, and return. No other may come afterwards."""
        self._thread.shutdown()

    def submit(self, task: Task, request: Any, n_texts: int) -> "Future[Any]":
        """Put a request into the queue. Cancelling its future takes it out again, in time.

        Raises:
            QueueFullError: there is no room for `n_texts` more texts.
        """
        job = _Job(task, request, n_texts)
        with self._lock:
            self._jobs = [job for job in self._jobs if not job.future.cancelled()]
            if self.n_waiting + n_texts > self.capacity:
                waiting = f"{self.n_waiting} of at most {self.capacity} texts wait"
                raise QueueFullError(f"the queue is full: {waiting}; try again later")
            self._jobs.append(job)
            self._thread.submit(self._answer_next)
        return job.future

    def _answer_next(self) -> None:
        """Answer the first job, and all that can be answered with it.

        There may be none: an earlier call has answered more than one.
        """
        taken: list[_Job] = []
        n_texts = 0
        with self._lock:
            for job in self._jobs:
                fits = n_texts + job.n_texts <= self.max_batch
                if not taken or (job.task == taken[0].task and fits):
                    taken.append(job)
                    n_texts += job.n_texts
            self._jobs = [job for job in self._jobs if job not in taken]
        _answer([job for job in taken if job.future.set_running_or_notify_cancel()])


def _answer(jobs: Sequence[_Job]) -> None:
    """Answer jobs together; if that fails, each alone: a bad request has no effect on others."""
    if not jobs:
        return
    try:
        results = jobs[0].task([job.request for job in jobs])
    except Exception as error:  # whatever it is, the thread continues with other requests
        if len(jobs) > 1:
            for job in jobs:
                _answer([job])
        elif isinstance(error, NmtError):
            jobs[0].future.set_exception(error)
        else:
            logger.exception("a request failed")
            text = "an error inside the server; its log has the details"
            jobs[0].future.set_exception(NmtError(text))
        return
    for job, result in zip(jobs, results, strict=True):
        job.future.set_result(result)
