"""A clock that can be stopped for a while."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Measures a time from now on.

    Args:
        seconds: the time so far.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._start_time = time.monotonic() - seconds

    @property
    def seconds(self) -> float:
        """The time so far, without the pauses."""
        return time.monotonic() - self._start_time

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The time inside the block does not count."""
        pause_start = time.monotonic()
        yield
        self._start_time += time.monotonic() - pause_start
