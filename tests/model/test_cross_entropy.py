"""The terms of the loss of a softmax, against the equations in NumPy. The plain loss: see
test_output.py.
"""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nmt.data.batches import SoftTargets
from nmt.model import cross_entropy
from nmt.model.cross_entropy import Additions, Distillation, linear_cross_entropy

R, V = 7, 11


def make(n_pairs: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Vectors of 2 n rows, weight, bias, targets."""
    torch.manual_seed(n_pairs)
    tensors = (
        torch.randn(2 * n_pairs, R, dtype=dtype),
        torch.randn(V, R, dtype=dtype),
        torch.randn(V, dtype=dtype),
    )
    vectors, weight, bias = (tensor.requires_grad_() for tensor in tensors)
    return vectors, weight, bias, torch.randint(V, (n_pairs,)).repeat(2)


def literal(
    vectors: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    smoothing: float,
    divergence_weight: float,
) -> Tensor:
    log_probs = (vectors @ weight.t() + bias).log_softmax(1)
    p, q = log_probs.chunk(2)
    divergence = (p.exp() * (p - q)).sum() + (q.exp() * (q - p)).sum()
    loss = torch.nn.functional.cross_entropy(
        log_probs, targets, label_smoothing=smoothing, reduction="sum"
    )
    return loss + divergence_weight * divergence


def test_the_divergence_is_the_sum_of_both_kl_divergences() -> None:
    vectors, weight, bias, targets = make(4)
    logits = vectors.detach().numpy() @ weight.detach().numpy().T + bias.detach().numpy()
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    expected = 0.0
    for p, q in zip(probabilities[:4], probabilities[4:], strict=True):
        expected += (p * np.log(p / q)).sum() + (q * np.log(q / p)).sum()
    with_divergence, nll = linear_cross_entropy(vectors, weight, bias, targets, 0.1, 0.7)
    without, plain_nll = linear_cross_entropy(vectors, weight, bias, targets, 0.1)
    assert (with_divergence - without).item() == pytest.approx(0.7 * expected, rel=1e-10)
    assert nll.item() == pytest.approx(plain_nll.item(), rel=1e-12)
    assert not nll.requires_grad


def test_gradients_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_entropy, "MAX_ROWS", 4)  # several chunks, the last one smaller
    monkeypatch.setattr(cross_entropy, "MAX_WORDS", 3)
    vectors, weight, bias, targets = make(5)

    def loss(vectors: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return linear_cross_entropy(vectors, weight, bias, targets, 0.1, 0.7)[0] * 0.5

    assert torch.autograd.gradcheck(loss, (vectors, weight, bias))


@given(st.integers(0, 9), st.integers(1, 9), st.integers(1, 12), st.floats(0.01, 10))
def test_loss_and_gradients_do_not_depend_on_the_block_size(
    n_pairs: int, rows: int, words: int, divergence_weight: float
) -> None:
    vectors, weight, bias, targets = make(n_pairs)
    expected = literal(vectors, weight, bias, targets, 0.1, divergence_weight)
    gradients = torch.autograd.grad(expected, (vectors, weight, bias))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_entropy, "MAX_ROWS", rows)
        patch.setattr(cross_entropy, "MAX_WORDS", words)
        loss, _ = linear_cross_entropy(vectors, weight, bias, targets, 0.1, divergence_weight)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, (vectors, weight, bias)), gradients)


@pytest.mark.parametrize("divergence_weight", [0.0, 0.7])
def test_mixed_precision_rounds_only_the_factors_of_products(divergence_weight: float) -> None:
    """Loss and gradients stay in float32, near those without rounding; and they are the literal
    ones of rounded factors.
    """
    vectors, weight, bias, targets = make(40, torch.float32)
    inputs = vectors, weight, bias
    ids = torch.rand(len(vectors), V).argsort(1)[:, :3]
    additions = Additions(ids, torch.rand(len(vectors), 3))
    exact, _ = linear_cross_entropy(*inputs, targets, 0.1, divergence_weight, additions)
    gradients = torch.autograd.grad(exact, inputs)
    with torch.autocast("cpu", torch.bfloat16):
        mixed, nll = linear_cross_entropy(*inputs, targets, 0.1, divergence_weight, additions)
    assert mixed.dtype == nll.dtype == torch.float32
    assert mixed.item() != exact.item()
    assert mixed.item() == pytest.approx(exact.item(), rel=2e-3)
    for gradient, expected in zip(torch.autograd.grad(mixed, inputs), gradients, strict=True):
        assert gradient.dtype == torch.float32
        assert (gradient - expected).norm() < 0.02 * expected.norm()


@pytest.mark.parametrize("offset", [-300, -75, 0, 75, 300])
def test_the_loss_is_exact_for_logits_of_any_size(offset: float) -> None:
    vectors, weight, _, targets = make(3, torch.float32)
    bias = torch.full((V,), float(offset), requires_grad=True)
    doubles = x, w, b = tuple(
        part.detach().double().requires_grad_() for part in (vectors, weight, bias)
    )
    expected = literal(x, w, b, targets, 0.1, 2.0)
    loss, _ = linear_cross_entropy(vectors, weight, bias, targets, 0.1, 2.0)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    gradients = zip(
        torch.autograd.grad(loss, (vectors, weight, bias)),
        torch.autograd.grad(expected, doubles),
        strict=True,
    )
    for ours, theirs in gradients:
        torch.testing.assert_close(ours.double(), theirs, atol=2e-4, rtol=2e-4)


def test_equal_passes_have_no_divergence() -> None:
    vectors, weight, bias, targets = make(4)
    same = vectors.detach()[:4].repeat(2, 1).requires_grad_()
    loss, _ = linear_cross_entropy(same, weight, bias, targets, 0.1, 5.0)
    plain, _ = linear_cross_entropy(same, weight, bias, targets, 0.1)
    torch.testing.assert_close(loss, plain)
    torch.testing.assert_close(
        torch.autograd.grad(loss, (same, weight, bias)),
        torch.autograd.grad(plain, (same, weight, bias)),
    )


def test_no_gradient_is_computed_without_grad_mode() -> None:
    vectors, weight, bias, targets = make(4)
    expected = linear_cross_entropy(vectors, weight, bias, targets, 0.1, 0.7)
    with torch.no_grad(), torch.profiler.profile() as profile:
        loss = linear_cross_entropy(vectors, weight, bias, targets, 0.1, 0.7)
    assert "aten::addmm_" not in {event.name for event in profile.events() or []}
    torch.testing.assert_close(loss, expected)


@given(
    st.integers(1, 6),
    st.integers(1, 9),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.7]),
    st.sampled_from([0.0, 0.1]),
)
def test_additions_are_those_of_dense_logits(
    n_pairs: int, rows: int, words: int, divergence_weight: float, smoothing: float
) -> None:
    vectors, weight, bias, targets = make(n_pairs)
    ids = torch.stack([torch.randperm(V)[:5] for _ in range(2 * n_pairs)])
    ids[:, 0] = targets
    ids[:, 1:][ids[:, 1:] == targets.unsqueeze(1)] = 0
    values = (
        (4 * torch.rand(ids.shape, dtype=torch.double)).masked_fill(ids == 0, 0.0).requires_grad_()
    )
    dense = torch.zeros(2 * n_pairs, V, dtype=torch.double).scatter_add(1, ids, values)
    rest = torch.eye(V, dtype=torch.double)  # logits = [x; dense] [W, I]^T + b
    both = torch.cat([vectors, dense], 1), torch.cat([weight, rest], 1)
    expected = literal(*both, bias, targets, smoothing, divergence_weight)
    gradients = torch.autograd.grad(expected, (vectors, weight, bias, values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_entropy, "MAX_ROWS", rows)
        patch.setattr(cross_entropy, "MAX_WORDS", words)
        loss, _ = linear_cross_entropy(
            vectors, weight, bias, targets, smoothing, divergence_weight, Additions(ids, values)
        )
    torch.testing.assert_close(loss, expected)
    ours = torch.autograd.grad(loss, (vectors, weight, bias, values))
    torch.testing.assert_close(ours[:3], gradients[:3])
    torch.testing.assert_close(ours[3][ids != 0], gradients[3][ids != 0])


def make_distillation(n: int, n_words: int, weight: float) -> tuple[Distillation, np.ndarray]:
    """Soft targets, and their distributions [n, V]."""
    random = np.random.default_rng(n)
    ids = random.random((n, V)).argsort(1)[:, :n_words]
    probabilities = random.dirichlet(np.ones(n_words + 1), n)[:, :n_words]
    distributions = np.zeros((n, V))
    for row in range(n):
        distributions[row, ids[row]] = probabilities[row]
        distributions[row] += (1 - probabilities[row].sum()) / V
    return Distillation(
        SoftTargets(torch.from_numpy(ids), torch.from_numpy(probabilities)), weight
    ), distributions


def test_distillation_shares_the_weight_with_the_words() -> None:
    vectors, weight, bias, targets = make(4)
    distillation, distributions = make_distillation(8, 3, 0.3)
    logits = vectors.detach().numpy() @ weight.detach().numpy().T + bias.detach().numpy()
    log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    reference = log_probs[range(8), targets.numpy()]
    hard, soft = (
        -(0.9 * reference + 0.1 * log_probs.mean(1)).sum(),
        -(distributions * log_probs).sum(),
    )
    loss, nll = linear_cross_entropy(vectors, weight, bias, targets, 0.1, distillation=distillation)
    assert loss.item() == pytest.approx(0.7 * hard + 0.3 * soft, rel=1e-12)
    assert nll.item() == pytest.approx(-reference.sum(), rel=1e-12)


@given(
    st.integers(1, 4),
    st.integers(1, 9),
    st.integers(1, V),
    st.sampled_from([0.2, 1.0]),
    st.sampled_from([0.0, 0.7]),
    st.booleans(),
)
def test_gradients_with_distillation(
    n_pairs: int,
    rows: int,
    n_words: int,
    soft_weight: float,
    divergence_weight: float,
    with_additions: bool,
) -> None:
    vectors, weight, bias, targets = make(n_pairs)
    distillation, distributions = make_distillation(2 * n_pairs, n_words, soft_weight)
    ids = torch.stack([torch.randperm(V)[:5] for _ in range(2 * n_pairs)])
    values = torch.rand(ids.shape, dtype=torch.double, requires_grad=True)
    dense = torch.zeros(2 * n_pairs, V, dtype=torch.double)
    if with_additions:
        dense = dense.scatter_add(1, ids, values)
    log_probs = (vectors @ weight.t() + bias + dense).log_softmax(1)
    both = torch.cat([vectors, dense], 1), torch.cat([weight, torch.eye(V, dtype=torch.double)], 1)
    hard = literal(*both, bias, targets, 0.1, 0.0)
    divergence = literal(*both, bias, targets, 0.1, divergence_weight) - hard
    expected = (
        (1 - soft_weight) * hard
        - soft_weight * (torch.from_numpy(distributions) * log_probs).sum()
        + divergence
    )
    inputs = (vectors, weight, bias, values) if with_additions else (vectors, weight, bias)
    gradients = torch.autograd.grad(expected, inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_entropy, "MAX_ROWS", rows)
        additions = Additions(ids, values) if with_additions else None
        loss, _ = linear_cross_entropy(
            vectors, weight, bias, targets, 0.1, divergence_weight, additions, distillation
        )
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, inputs), gradients)
