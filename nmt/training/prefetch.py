"""What a GPU will need next, made ready while it computes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")


def prefetch(items: Iterator[T], device: torch.device) -> Iterator[T]:
    """The same items; for a GPU each is made by a thread while the one before it is in use, its errors raised in its place.

    Copies that the thread asks for queue behind what is computed already: they take microseconds, and need no stream of their own.
    """
    if device.type != "cuda":
        yield from items
        return
    with ThreadPoolExecutor(1, "prefetch", torch.cuda.set_device, (device,)) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item
