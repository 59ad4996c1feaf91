"""The output layer, its loss and the terms of it against the equations in NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nmt.data.batches import SoftTargets
from nmt.model import output
from nmt.model.lexical_bias import Additions
from nmt.model.output import Distillation, Output, linear_cross_entropy

R, V = 7, 11


def test_softmax_follows_its_equation() -> None:
    torch.manual_seed(1)
    layer, vectors = Output(R, V).double(), torch.randn(5, R, dtype=torch.float64)
    weight, bias = (part.detach().numpy() for part in (layer.logits.weight, layer.logits.bias))
    logits = vectors.numpy() @ weight.T + bias
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    np.testing.assert_allclose(layer.log_probs(vectors).detach(), log_probs, atol=1e-10)
    assert torch.equal(layer.best(vectors), torch.from_numpy(log_probs.argmax(-1)))


def test_a_tied_matrix_gets_the_gradients_of_both_uses() -> None:
    embedding = torch.nn.Embedding(V, R).double()
    layer, targets = Output(R, V, embedding).double(), torch.tensor([1, 2])
    vectors = embedding(torch.tensor([3, 4]))
    layer.loss(vectors, targets)[0].backward()
    gradient = embedding.weight.grad
    embedding.weight.grad = None
    torch.nn.functional.cross_entropy(
        layer(embedding(torch.tensor([3, 4]))), targets, reduction="sum"
    ).backward()
    torch.testing.assert_close(gradient, embedding.weight.grad)


# The loss of a softmax and its terms


def make(n: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Vectors of n rows, weight, bias, targets."""
    torch.manual_seed(n)
    tensors = (
        torch.randn(n, R, dtype=dtype),
        torch.randn(V, R, dtype=dtype),
        torch.randn(V, dtype=dtype),
    )
    vectors, weight, bias = (tensor.requires_grad_() for tensor in tensors)
    return vectors, weight, bias, torch.randint(V, (n,))


def literal(
    vectors: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float
) -> Tensor:
    logits = vectors @ weight.t() + bias
    return torch.nn.functional.cross_entropy(
        logits, targets, label_smoothing=smoothing, reduction="sum"
    )


def make_distillation(n: int, n_words: int, weight: float) -> tuple[Distillation, np.ndarray]:
    """Soft targets, and their distributions [n, V]."""
    random = np.random.default_rng(n)
    ids = random.random((n, V)).argsort(1)[:, :n_words]
    probabilities = random.dirichlet(np.ones(n_words + 1), n)[:, :n_words]
    distributions = np.zeros((n, V))
    for row in range(n):
        distributions[row, ids[row]] = probabilities[row]
        distributions[row] += (1 - probabilities[row].sum()) / V
    targets = SoftTargets(torch.from_numpy(ids), torch.from_numpy(probabilities))
    return Distillation(targets, weight), distributions


@pytest.mark.parametrize("soft_weight", [None, 0.3])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("n", [3, 300])
def test_the_loss_is_that_of_the_equations(
    n: int, smoothing: float, soft_weight: float | None
) -> None:
    vectors, weight, bias, targets = make(n)
    logits = vectors.detach().numpy() @ weight.detach().numpy().T + bias.detach().numpy()
    log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    reference = log_probs[range(n), targets.numpy()]
    expected = -((1 - smoothing) * reference + smoothing * log_probs.mean(1)).sum()
    distillation = None
    if soft_weight is not None:
        distillation, distributions = make_distillation(n, 3, soft_weight)
        soft = -(distributions * log_probs).sum()
        expected = (1 - soft_weight) * expected + soft_weight * soft
    loss, nll = linear_cross_entropy(
        vectors, weight, bias, targets, smoothing, distillation=distillation
    )
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    assert nll.item() == pytest.approx(-reference.sum(), rel=1e-12)
    assert not nll.requires_grad


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 12),
    st.integers(1, V),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([None, 0.2, 1.0]),
    st.booleans(),
)
def test_loss_and_gradients_of_all_terms_in_blocks_of_any_size(
    n: int,
    rows: int,
    words: int,
    n_words: int,
    smoothing: float,
    soft_weight: float | None,
    with_additions: bool,
) -> None:
    vectors, weight, bias, targets = make(n)
    ids = torch.stack([torch.randperm(V)[:5] for _ in range(n)])
    values = (4 * torch.rand(ids.shape, dtype=torch.double)).requires_grad_()
    dense = torch.zeros(n, V, dtype=torch.double)
    if with_additions:
        dense = dense.scatter_add(1, ids, values)
    # logits = [x; dense] [W, I]^T + b
    both = torch.cat([vectors, dense], 1), torch.cat([weight, torch.eye(V, dtype=torch.double)], 1)
    expected, distillation = literal(*both, bias, targets, smoothing), None
    if soft_weight is not None:
        distillation, distributions = make_distillation(n, n_words, soft_weight)
        log_probs = (vectors @ weight.t() + bias + dense).log_softmax(1)
        soft = (torch.from_numpy(distributions) * log_probs).sum()
        expected = (1 - soft_weight) * expected - soft_weight * soft
    inputs = (vectors, weight, bias, values) if with_additions else (vectors, weight, bias)
    gradients = torch.autograd.grad(expected, inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "MAX_ROWS", rows)
        patch.setattr(output, "MAX_WORDS", words)
        additions = Additions(ids, values) if with_additions else None
        loss, _ = linear_cross_entropy(
            vectors, weight, bias, targets, smoothing, additions, distillation
        )
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, inputs), gradients)


def test_a_batch_without_tokens_has_no_loss() -> None:
    vectors, weight, bias, targets = make(0)
    loss, nll = linear_cross_entropy(vectors, weight, bias, targets, 0.1)
    assert loss.item() == nll.item() == 0


def test_mixed_precision_rounds_only_the_factors_of_products() -> None:
    """Loss and gradients stay in float32, near those without rounding. A model in mixed precision
    gives vectors that are rounded already.
    """
    vectors, weight, bias, targets = make(80, torch.float32)
    inputs = vectors, weight, bias
    additions = Additions(torch.rand(80, V).argsort(1)[:, :3], torch.rand(80, 3))
    exact, _ = linear_cross_entropy(*inputs, targets, 0.1, additions)
    gradients = torch.autograd.grad(exact, inputs)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = vectors.bfloat16()
        mixed, nll = linear_cross_entropy(rounded, weight, bias, targets, 0.1, additions)
    assert mixed.dtype == nll.dtype == torch.float32
    assert mixed.item() != exact.item()
    assert mixed.item() == pytest.approx(exact.item(), rel=2e-3)
    for gradient, expected in zip(torch.autograd.grad(mixed, inputs), gradients, strict=True):
        assert gradient.dtype == torch.float32
        assert (gradient - expected).norm() < 0.02 * expected.norm()


@pytest.mark.parametrize("biases", [(-300, -300), (-75, -75), (75, 75), (300, 300), (-300, 300)])
def test_the_loss_is_exact_for_logits_of_any_size(
    biases: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "MAX_WORDS", 2)
    vectors, weight, _, targets = make(6, torch.float32)
    bias = torch.linspace(*biases, V, requires_grad=True)
    doubles = [part.detach().double().requires_grad_() for part in (vectors, weight, bias)]
    expected = literal(doubles[0], doubles[1], doubles[2], targets, 0.1)
    loss, _ = linear_cross_entropy(vectors, weight, bias, targets, 0.1)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    for ours, theirs in zip(
        torch.autograd.grad(loss, (vectors, weight, bias)),
        torch.autograd.grad(expected, doubles),
        strict=True,
    ):
        torch.testing.assert_close(ours.double(), theirs, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_no_gradient_is_computed_without_grad_mode(
    mode: type[torch.no_grad] | type[torch.inference_mode],
) -> None:
    vectors, weight, bias, targets = make(5)
    expected = linear_cross_entropy(vectors, weight, bias, targets, 0.1)
    with mode(), torch.profiler.profile() as profile:
        loss = linear_cross_entropy(vectors, weight, bias, targets, 0.1)
    names = {event.name for event in profile.events() or []}
    assert "aten::addmm" in names
    assert "aten::addmm_" not in names
    torch.testing.assert_close(loss, expected)
