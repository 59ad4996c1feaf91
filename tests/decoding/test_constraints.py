"""What may not come next, against a loop over everything that was said."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.decoding.constraints import banned_ids, repeating

EOS = 3
rows = st.integers(0, 12).flatmap(lambda t: st.lists(st.lists(st.integers(4, 6), min_size=t, max_size=t), min_size=1, max_size=4))


@given(rows, st.integers(1, 4))
def test_repeating_finds_each_ngram_that_would_come_again(said: list[list[int]], n: int) -> None:
    found = repeating(torch.tensor(said, dtype=torch.long).view(len(said), -1), n, filler=0)
    for ids, banned in zip(said, found.tolist(), strict=True):
        been = {tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)}
        again = {token for token in range(4, 7) if (*ids[len(ids) - n + 1 :], token) in been and len(ids) >= n}
        assert set(banned) - {0} == again


def test_what_is_too_short_may_not_end() -> None:
    said = torch.empty(2, 0, dtype=torch.long)
    banned = banned_ids(said, torch.tensor([True, False]), (0, 2), eos=EOS, ngram=None)
    assert [set(row) for row in banned.tolist()] == [{0, 2, EOS}, {0, 2}]
