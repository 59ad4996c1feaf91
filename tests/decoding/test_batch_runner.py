"""nmt.decoding.batch_runner: parts that fit, whatever the memory says when it does not hold the whole."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.decoding.batch_runner import TooLargeError, in_parts
from nmt.errors import DataError, lacks_memory


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 40))
def test_parts_as_large_as_fit_in_their_order(places: list[int], room: int) -> None:
    held: list[int] = []

    def double(some: Sequence[int]) -> list[int]:
        if len(some) > room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
        held.append(len(some))
        return [2 * place for place in some]

    assert in_parts(double, places, "") == [2 * place for place in places]
    assert len(held) <= max(1, 4 * len(places) / room)


def test_one_alone_that_does_not_fit_is_named() -> None:
    def refuse_seven(some: Sequence[int]) -> list[int]:
        if 7 in some:
            raise MemoryError
        return [*some]

    with pytest.raises(TooLargeError, match=r"^text 8 does not fit into memory, even alone; lower it") as caught:
        in_parts(refuse_seven, [1, 7, 3, 4], "lower it")
    assert caught.value.place == 7
    assert isinstance(caught.value, DataError)


def test_other_faults_are_none_of_the_memory() -> None:
    def fail(_: Sequence[int]) -> list[int]:
        raise RuntimeError("shape '[3]' is invalid for input of size 4")

    with pytest.raises(RuntimeError, match="is invalid"):
        in_parts(fail, [1, 2], "")


def test_the_allocators_own_words() -> None:
    with pytest.raises((MemoryError, RuntimeError)) as torch_says:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert lacks_memory(torch_says.value)
    assert lacks_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"))
    assert not lacks_memory(ValueError("out of memory"))
