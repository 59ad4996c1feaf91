"""Output layers and their losses against the equations in NumPy."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import ModelConfig, OutputName
from nmt.errors import ConfigError
from nmt.model import cross_entropy
from nmt.model.output import OUTPUTS, Adaptive, Softmax, build_output

R, V = 7, 11


def test_literal_and_classes_agree() -> None:
    assert set(get_args(OutputName)) == set(OUTPUTS)


def log_probs_of(output: Softmax, vectors: torch.Tensor) -> np.ndarray:
    logits = (
        vectors.detach().numpy() @ output.logits.weight.detach().numpy().T
        + output.logits.bias.detach().numpy()
    )
    result: np.ndarray = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return result


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("n", [3, 300])
def test_loss_is_cross_entropy_with_smoothing(n: int, smoothing: float) -> None:
    torch.manual_seed(1)
    output, vectors, targets = (
        Softmax(R, V).double(),
        torch.randn(n, R, dtype=torch.float64),
        torch.randint(V, (n,)),
    )
    log_probs = log_probs_of(output, vectors)
    expected_nll = -log_probs[np.arange(n), targets.numpy()].sum()
    smooth = (1 - smoothing) * expected_nll - smoothing * log_probs.mean(-1).sum()
    objective, nll = output.loss(vectors, targets, smoothing)
    np.testing.assert_allclose(objective.item(), smooth, atol=1e-10)
    np.testing.assert_allclose(nll.item(), expected_nll, atol=1e-10)
    assert not nll.requires_grad
    np.testing.assert_allclose(output.log_probs(vectors).detach(), log_probs, atol=1e-10)
    assert torch.equal(output.best(vectors), torch.from_numpy(log_probs.argmax(-1)))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradients_of_the_loss(smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_entropy, "MAX_ROWS", 2)  # several chunks, the last one smaller
    monkeypatch.setattr(cross_entropy, "MAX_WORDS", 3)
    torch.manual_seed(1)
    output, targets = Softmax(R, V).double(), torch.tensor([3, 0, 10, 3, 7])

    def loss(vectors: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return (
            cross_entropy.linear_cross_entropy(vectors, weight, bias, targets, smoothing)[0] * 0.5
        )

    vectors = torch.randn(5, R, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(loss, (vectors, output.logits.weight, output.logits.bias))


@given(st.integers(0, 9), st.integers(1, 5), st.integers(1, 12))
def test_the_loss_does_not_depend_on_the_block_size(n: int, rows: int, words: int) -> None:
    torch.manual_seed(n)
    output, vectors, targets = (
        Softmax(R, V).double(),
        torch.randn(n, R, dtype=torch.float64),
        torch.randint(V, (n,)),
    )
    expected = output.loss(vectors, targets, 0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_entropy, "MAX_ROWS", rows)
        patch.setattr(cross_entropy, "MAX_WORDS", words)
        torch.testing.assert_close(output.loss(vectors, targets, 0.1), expected)


def test_logits_far_apart_do_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_entropy, "MAX_WORDS", 2)
    vectors, targets = torch.ones(2, 1, requires_grad=True), torch.tensor([0, 3])
    weight = torch.tensor([[-1e4], [0.0], [2e4], [3e4], [-3e4]], requires_grad=True)
    objective, _ = cross_entropy.linear_cross_entropy(vectors, weight, torch.zeros(5), targets)
    objective.backward()
    assert objective.item() == 4e4
    assert weight.grad is not None
    assert weight.grad.flatten().tolist() == [-1, 0, 0, 1, 0]


@pytest.mark.parametrize("offset", [-300, -75, 0, 75, 300])
def test_the_loss_is_exact_for_logits_of_any_size(offset: float) -> None:
    torch.manual_seed(1)
    weight, vectors, targets = (
        torch.randn(V, R, requires_grad=True),
        torch.randn(6, R, requires_grad=True),
        torch.arange(6),
    )
    bias = torch.full((V,), float(offset), requires_grad=True)
    literal = [part.detach().double().requires_grad_() for part in (vectors, weight, bias)]
    cross_entropy.linear_cross_entropy(vectors, weight, bias, targets)[0].backward()
    expected = torch.nn.functional.cross_entropy(
        literal[0] @ literal[1].t() + literal[2], targets, reduction="sum"
    )
    expected.backward()
    for ours, theirs in zip((vectors, weight, bias), literal, strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        torch.testing.assert_close(ours.grad.double(), theirs.grad, atol=1e-4, rtol=1e-4)
    loss = cross_entropy.linear_cross_entropy(vectors, weight, bias, targets)[0]
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_no_gradient_is_computed_without_grad_mode(
    mode: Callable[[], AbstractContextManager[None]],
) -> None:
    torch.manual_seed(1)
    output, vectors, targets = Softmax(R, V), torch.randn(5, R), torch.arange(5)
    with mode(), torch.profiler.profile() as profile:
        objective, nll = output.loss(vectors, targets, 0.1)
    names = {event.name for event in profile.events() or []}
    assert "aten::addmm" in names
    assert "aten::addmm_" not in names
    assert [objective.item(), nll.item()] == pytest.approx(
        [loss.item() for loss in output.loss(vectors, targets, 0.1)]
    )


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


@pytest.mark.parametrize(
    "output", [Softmax(8, 30), Adaptive(8, 30, cutoffs=[5, 12])], ids=["softmax", "adaptive"]
)
def test_log_probs_of_given_words(output: Softmax | Adaptive) -> None:
    torch.manual_seed(1)
    vectors, targets = torch.randn(6, 8), torch.arange(0, 30, 5)
    expected = output.log_probs(vectors)[torch.arange(6), targets]
    torch.testing.assert_close(output.token_log_probs(vectors, targets), expected)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = output.token_log_probs(vectors.bfloat16(), targets)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, expected, atol=0.1, rtol=0)


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
    output = build_output(ModelConfig(output="adaptive"), 8, 300, None)
    assert isinstance(output, Adaptive)
    assert output.softmax.cutoffs == [30, 100, 300]
    with pytest.raises(
        ConfigError, match=r"model.cutoffs: 300 is not below the size of the target vocabulary, 300"
    ):
        build_output(ModelConfig(output="adaptive", cutoffs=[10, 300]), 8, 300, None)


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

    ids, log_probs = output.topk_log_probs(vectors, k, threshold)
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


def test_clusters_below_the_threshold_are_not_computed() -> None:
    output = Adaptive(8, 30, cutoffs=[5, 12])
    for tail in output.softmax.tail:
        tail.register_forward_hook(lambda *_: pytest.fail("computed"))
    with torch.inference_mode():
        ids, _ = output.topk_log_probs(
            torch.randn(6, 8), 3, lambda _, log_probs: torch.ones(len(log_probs))
        )
    assert ids.shape == (6, 3)
