"""Batches side by side: on a CPU, two that are worked on by a thread each are done sooner than one by both, and then the other.

For a step of search is many small pieces, and while one thread does what cannot be parted the others wait. torch lets go of the
interpreter while it computes, so threads do; a GPU has no use for them.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

MOST = 4  # batches at a time: each needs memory, and all take turns in what is Python

Batch = TypeVar("Batch")
Made = TypeVar("Made")


def side_by_side(make: Callable[[Batch], Made], batches: Sequence[Batch], device: torch.device) -> Iterator[Made]:
    """What `make` makes of each batch, in their order; those who work have torch's threads shared out among them.

    Raises:
        Exception: what `make` raised first; batches that nobody has begun are left alone.
    """
    threads = torch.get_num_threads()
    workers = min(threads, len(batches), MOST)
    if workers < 2 or device.type != "cpu":
        yield from map(make, batches)
        return
    try:
        with ThreadPoolExecutor(workers, "batch", torch.set_num_threads, (threads // workers,)) as pool:
            yield from pool.map(make, batches)
    finally:
        torch.set_num_threads(threads)  # what a worker sets is also what threads begin with that come after it
