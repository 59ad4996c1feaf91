"""Ctrl-C, SIGTERM and a closed terminal during training."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

NOTICE = "stopping and saving after this step; press Ctrl-C again to stop at once without saving"


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Inside the block, Ctrl-C, SIGTERM and SIGHUP only make the yielded function return True; a
    second Ctrl-C interrupts at once.

    The system sends SIGHUP when the terminal or the connection is closed. A program started with
    `nohup` ignores it; this function does not change that. Python allows signal handlers in the
    main thread only; in another thread the function always returns False.
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
        with suppress(OSError):  # the terminal may be closed
            # Python's streams have locks, which the code that the signal interrupts may hold.
            os.write(2, f"\n{NOTICE}\n".encode())

    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    previous = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield lambda: stop_requested
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
