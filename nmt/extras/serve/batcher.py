"""A bounded queue and one thread that translates: requests that wait together are answered
together.
"""

import logging
import time
from collections import deque
from collections.abc import Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any, Protocol

from nmt.errors import NmtError
from nmt.extras.serve.measurements import Measurements

logger = logging.getLogger(__name__)


class QueueFullError(NmtError):
    """The queue has no room for a request."""


class Task(Hashable, Protocol):
    """Answers several requests at once: one result for each. The requests of equal tasks may be
    answered together.
    """

    def __call__(self, requests: Sequence[Any], /) -> Sequence[Any]: ...


@dataclass(frozen=True)
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

    def __init__(self, capacity: int, max_batch: int, measurements: Measurements) -> None:
        self.capacity, self.max_batch, self.measurements = capacity, max_batch, measurements
        self.n_waiting = 0  # texts
        self._jobs: deque[_Job] = deque()
        self._changed = Condition()
        self._stopping = False
        self._thread = Thread(target=self._work, name="translate", daemon=True)

    def start(self) -> None:
        """Start to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Refuse new requests, answer those that wait, and return."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    @property
    def is_working(self) -> bool:
        """Whether requests are accepted and answered."""
        return self._thread.is_alive() and not self._stopping

    def submit(self, task: Task, request: Any, n_texts: int) -> "Future[Any]":
        """Put a request into the queue. Cancelling its future takes it out again, unless it is
        being answered already.

        Raises:
            QueueFullError: there is no room for `n_texts` more texts, or the server stops.
        """
        job = _Job(task, request, n_texts)
        with self._changed:
            if self._stopping:
                raise QueueFullError("the server is shutting down")
            if self.n_waiting + n_texts > self.capacity:
                self._drop_cancelled()
            if self.n_waiting + n_texts > self.capacity:
                raise QueueFullError(
                    f"the queue is full: {self.n_waiting} of at most {self.capacity} texts "
                    "wait; "
                    "try again later"
                )
            self._jobs.append(job)
            self.n_waiting += n_texts
            self._changed.notify()
        return job.future

    def _drop_cancelled(self) -> None:
        self._jobs = deque(job for job in self._jobs if not job.future.cancelled())
        self.n_waiting = sum(job.n_texts for job in self._jobs)

    def _work(self) -> None:
        while jobs := self._take():
            start_time = time.monotonic()
            running = [job for job in jobs if job.future.set_running_or_notify_cancel()]
            if running:
                _answer(running)
                self.measurements.batch_requests.observe(len(running))
                self.measurements.batch_seconds.observe(time.monotonic() - start_time)

    def _take(self) -> list[_Job]:
        """The first job, and all that can be answered with it; none if the batcher has stopped and
        all jobs are done.
        """
        with self._changed:
            while not self._jobs and not self._stopping:
                self._changed.wait()
            taken: list[_Job] = []
            others: deque[_Job] = deque()
            n_texts = 0
            for job in self._jobs:
                if not taken or (
                    job.task == taken[0].task and n_texts + job.n_texts <= self.max_batch
                ):
                    taken.append(job)
                    n_texts += job.n_texts
                else:
                    others.append(job)
            self._jobs = others
            self.n_waiting -= n_texts
            return taken


def _answer(jobs: Sequence[_Job]) -> None:
    """Answer jobs together; if that fails, each alone, so that a bad request has no effect on
    others.
    """
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
            jobs[0].future.set_exception(
                NmtError("an error inside the server; its log has the details")
            )
        return
    for job, result in zip(jobs, results, strict=True):
        job.future.set_result(result)
