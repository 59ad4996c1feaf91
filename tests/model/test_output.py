"""Output layers against the equations in NumPy, and the most probable words against sorting all."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import ConfigError, NonFiniteError
from nmt.model.output import (
    CHUNK_SIZE,
    MIN_FAST_SIZE,
    Adaptive,
    Softmax,
    Vectors,
    fast_topk,
    log_norm,
    topk_log_probs,
)

R, V = 7, 11


def test_softmax_follows_its_equation() -> None:
    torch.manual_seed(1)
    output, vectors = Softmax(R, V).double(), torch.randn(5, R, dtype=torch.float64)
    weight, bias = (part.detach().numpy() for part in (output.logits.weight, output.logits.bias))
    logits = vectors.numpy() @ weight.T + bias
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    np.testing.assert_allclose(output.log_probs(vectors).detach(), log_probs, atol=1e-10)
    assert torch.equal(output.best(vectors), torch.from_numpy(log_probs.argmax(-1)))


def test_a_tied_matrix_gets_the_gradients_of_both_uses() -> None:
    embedding = torch.nn.Embedding(V, R).double()
    output, targets = Softmax(R, V, embedding).double(), torch.tensor([1, 2])
    vectors = embedding(torch.tensor([3, 4]))
    output.loss(vectors, targets)[0].backward()
    gradient = embedding.weight.grad
    embedding.weight.grad = None
    torch.nn.functional.cross_entropy(
        output(embedding(torch.tensor([3, 4]))), targets, reduction="sum"
    ).backward()
    torch.testing.assert_close(gradient, embedding.weight.grad)


def test_adaptive_is_a_distribution_whose_loss_is_that_of_its_log_probs() -> None:
    torch.manual_seed(1)
    output, vectors, targets = (
        Adaptive(8, 30, cutoffs=[5, 12]).double(),
        torch.randn(6, 8, dtype=torch.float64),
        torch.arange(0, 30, 5),
    )
    log_probs = output.log_probs(vectors)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(6, dtype=torch.float64))
    objective, nll = output.loss(vectors, targets)
    torch.testing.assert_close(nll, -log_probs[torch.arange(6), targets].sum())
    assert objective.item() == nll.item()
    assert torch.equal(output.best(vectors), log_probs.argmax(-1))
    assert output.log_probs(vectors.view(2, 3, 8)).shape == (2, 3, 30)
    assert torch.autograd.gradcheck(lambda x: output.loss(x, targets)[0], vectors.requires_grad_())


def test_the_equation_of_a_word_in_a_cluster() -> None:
    """P(w) = P(its cluster | x) P(w | its cluster, x), the latter of the projected vector (Grave
    2017, 3).
    """
    torch.manual_seed(1)
    output, vector = (
        Adaptive(8, 30, cutoffs=[5, 12]).double(),
        torch.randn(1, 8, dtype=torch.float64),
    )
    w = {name: value.detach().numpy() for name, value in output.named_parameters()}
    x = vector.numpy()[0]

    def log_softmax(logits: np.ndarray) -> np.ndarray:
        result: np.ndarray = logits - np.log(np.exp(logits).sum())
        return result

    head = log_softmax(w["softmax.head.weight"] @ x + w["softmax.head.bias"])
    second = log_softmax(w["softmax.tail.1.1.weight"] @ (w["softmax.tail.1.0.weight"] @ x))
    log_probs = output.log_probs(vector)[0].detach().numpy()
    np.testing.assert_allclose(log_probs[:5], head[:5], atol=1e-10)
    np.testing.assert_allclose(log_probs[12:], head[6] + second, atol=1e-10)


def test_cutoffs_fall_back_to_parts_of_the_vocabulary_and_must_fit_it() -> None:
    assert Adaptive(8, 300).softmax.cutoffs == [30, 100, 300]
    with pytest.raises(
        ConfigError, match=r"model.cutoffs: 300 is not below the size of the target vocabulary, 300"
    ):
        Adaptive(8, 300, cutoffs=[10, 300])


@given(
    st.integers(0, 999),
    st.integers(1, 30),
    st.floats(0, 4),
    st.sampled_from([[5, 12], [1], [1, 2, 29], [25]]),
)
@torch.inference_mode()
def test_topk_of_an_adaptive_layer_is_that_of_its_log_probs(
    seed: int, k: int, scale: float, cutoffs: list[int]
) -> None:
    torch.manual_seed(seed)
    output, vectors = (
        Adaptive(8, 30, cutoffs=cutoffs).double(),
        torch.randn(6, 8, dtype=torch.float64) * scale,
    )
    expected, minimum = output.log_probs(vectors), torch.randn(6, dtype=torch.float64) - 4
    calls: list[tuple[torch.Tensor, torch.Tensor]] = []

    def threshold(ids: torch.Tensor, log_probs: torch.Tensor) -> torch.Tensor:
        calls.append((ids, log_probs))
        return minimum

    ids, log_probs = output.topk_log_probs(Vectors(vectors), k, threshold)
    ((best_ids, best_log_probs),) = calls
    torch.testing.assert_close(
        best_log_probs, expected.gather(1, best_ids)
    )  # the threshold gets the true log-probabilities
    for row in range(6):
        finite = log_probs[row].isfinite()
        assert len(set(ids[row][finite].tolist())) == finite.sum()
        torch.testing.assert_close(log_probs[row][finite], expected[row][ids[row][finite]])
        useful = [
            log_prob
            for log_prob in expected[row].sort(descending=True).values[:k].tolist()
            if log_prob >= minimum[row]
        ]
        assert log_probs[row][: len(useful)].tolist() == pytest.approx(useful)


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
