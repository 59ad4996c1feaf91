"""Prepares the next batch while the GPU computes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")


def prefetch(items: Iterator[T], device: torch.device) -> Iterator[T]:
    """The same items. For a GPU, a thread makes each item while the caller uses the previous one; its errors are raised here.

    The thread's copies to the GPU queue behind the running computation. They take microseconds, so they need no separate stream.
    """
    if device.type != "cuda":
        yield from items
        return
    with ThreadPoolExecutor(1, "prefetch", torch.cuda.set_device, (device,)) as thread:
        upcoming = thread.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = thread.submit(next, items, None)
            yield item
