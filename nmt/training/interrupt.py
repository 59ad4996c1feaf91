"""Ctrl-C and SIGTERM during training."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Inside the block, Ctrl-C and SIGTERM only make the yielded function return True; a second Ctrl-C interrupts at once.

    Python allows signal handlers in the main thread only; in another thread the function always returns False.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    stop_requested = False

    def handle(number: int, _: object) -> None:
        nonlocal stop_requested
        if stop_requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop_requested = True
        os.write(2, b"\nstopping and saving after this step; press Ctrl-C again to stop at once without saving\n")

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: stop_requested
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
