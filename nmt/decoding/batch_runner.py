"""Batches are done side by side, and those that do not fit into memory in parts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import torch

from nmt.decoding.workers import side_by_side
from nmt.errors import DataError, lacks_memory

Made = TypeVar("Made")


class TooLargeError(DataError):
    """A text alone does not fit into memory.

    Attributes:
        place: among those given. reason: what is wrong with it, and what to do.
    """

    def __init__(self, place: int, advice: str) -> None:
        self.place, self.reason = place, f"does not fit into memory, even alone; {advice}"
        super().__init__(f"text {place + 1} {self.reason}")


def in_batches(
    make: Callable[[Sequence[int]], list[Made]], plan: Iterable[Sequence[int]], advice: str, device: torch.device
) -> Iterator[tuple[int, Made]]:
    """Each place of the batches of `plan`, the shortest first, with what is made of it.

    Raises:
        TooLargeError: memory does not hold one alone.
    """
    batches = [*plan][::-1]  # what takes longest first: nobody ends much later than the others
    all_made = side_by_side(lambda places: in_parts(make, places, advice), batches, device)
    for places, made in zip(batches, all_made, strict=True):
        yield from zip(places, made, strict=True)


def in_parts(make: Callable[[Sequence[int]], list[Made]], places: Sequence[int], advice: str) -> list[Made]:
    """What is made of each of `places`: of all at once, or of half of them at a time, where memory does not hold them together.

    Raises:
        TooLargeError: it does not hold one alone.
    """
    try:
        return make(places)
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
    # Not before here, where the error is gone, is what it held on to free again.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if len(places) == 1:
        raise TooLargeError(places[0], advice)
    half = len(places) // 2
    return [*in_parts(make, places[:half], advice), *in_parts(make, places[half:], advice)]
