"""The most probable words of each row of logits, against sorting them all."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import NonFiniteError
from nmt.model.topk import CHUNK_SIZE, MIN_FAST_SIZE, fast_topk, log_norm, topk_log_probs

seeds = st.integers(0, 10_000)


def make_scores(seed: int, rows: int, size: int, *, ties: bool = False) -> torch.Tensor:
    random = np.random.default_rng(seed)
    scores = (
        random.integers(0, 50, (rows, size)).astype(float)
        if ties
        else random.normal(size=(rows, size)) * 3
    )
    return torch.from_numpy(scores)


@settings(max_examples=40)
@given(
    seeds,
    st.integers(1, 12),
    st.sampled_from([5, CHUNK_SIZE, 30 * CHUNK_SIZE, MIN_FAST_SIZE, MIN_FAST_SIZE + 77]),
    st.booleans(),
)
def test_fast_topk_is_topk(seed: int, k: int, size: int, ties: bool) -> None:
    scores, k = make_scores(seed, 1 if size > MIN_FAST_SIZE else 3, size, ties=ties), min(k, size)
    largest, ids = fast_topk(scores, k)
    assert torch.equal(largest, scores.topk(k).values)
    assert torch.equal(scores.gather(1, ids), largest)
    assert all(len(set(row)) == k for row in ids.tolist())


@pytest.mark.parametrize("offset", [-1000, -75, 0, 75, 1000])
@pytest.mark.parametrize("rows", [1, 60])
def test_the_norm_is_exact_for_logits_of_any_size(rows: int, offset: float) -> None:
    scores = make_scores(1, rows, 9000) + offset
    np.testing.assert_allclose(
        log_norm(scores.float()), scores.logsumexp(1, keepdim=True), rtol=1e-6
    )


@given(seeds, st.integers(1, 12))
def test_the_log_probs_are_those_of_the_softmax(seed: int, k: int) -> None:
    scores = make_scores(seed, 3, 9)
    before = scores.clone()
    ids, log_probs = topk_log_probs(scores, k)
    assert torch.equal(scores, before)  # what comes in is left as it is
    expected = scores.log_softmax(1).sort(1, descending=True)
    assert torch.equal(ids, expected.indices[:, :k])
    torch.testing.assert_close(log_probs, expected.values[:, :k])


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_are_an_error(wrong: float) -> None:
    with pytest.raises(NonFiniteError, match="the model's logits are not finite"):
        topk_log_probs(torch.tensor([[1.0, wrong, 2.0]]), 1)
