"""Ctrl-C, SIGTERM and a closed terminal during training."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

NOTICE = "stopping and saving after this step; press Ctrl-C again to stop at once without saving"


def write_notice() -> None:
    """Say on stderr what happens next. It does not wait for locks, so a signal handler may call
    it.
    """
    os.write(2, f"\n{NOTICE}\n".encode())


@contextmanager
def stop_on_signal(notify: Callable[[], None] = write_notice) -> Iterator[Callable[[], bool]]:
    """Inside the block, Ctrl-C, SIGTERM and SIGHUP only make the yielded function return True; a
    second Ctrl-C interrupts at once.

    The system sends SIGHUP when the terminal or the connection is closed. `nohup` makes a program
    ignore it, and so it stays then. Python allows signal handlers in the main thread only; in
    another thread the function always returns False.

    Args:
        notify: called by each signal; it must not print through Python's streams, which a signal
            may have interrupted.
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
            notify()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    previous = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield lambda: stop_requested
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
