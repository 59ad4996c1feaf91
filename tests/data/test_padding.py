"""Which sentences go into a batch."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nmt.data.padding import cut_batches


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 9), st.integers(1, 100))
def test_each_batch_is_as_large_as_its_limits_allow(
    costs: list[int], max_items: int, max_padded: int
) -> None:
    def fits(items: list[int]) -> bool:
        return len(items) == 1 or (
            len(items) <= max_items and len(items) * max(items) <= max_padded
        )

    slices = cut_batches(costs, max_items=max_items, max_padded=max_padded)
    batches = [costs[part] for part in slices]
    assert [cost for batch in batches for cost in batch] == costs
    assert all(batch and fits(batch) for batch in batches)
    assert not any(fits([*batch, following[0]]) for batch, following in pairwise(batches))
