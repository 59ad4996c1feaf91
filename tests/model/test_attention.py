"""Each score against its equation, written out in NumPy position by position."""

from typing import get_args

import numpy as np
import pytest
import torch

from nmt.config import AttentionConfig, ScoreName
from nmt.model.attention import SCORES, Attention, Memory, build_attention
from nmt.model.recurrent import RecurrentState

B, T, S, H, A = 3, 4, 5, 6, 7
LENGTHS = [5, 3, 1]
SCORED: list[ScoreName] = [name for name in SCORES if name != "none"]


def make(name: ScoreName, value_size: int = H, **options: object) -> tuple[Attention, torch.Tensor, Memory]:
    torch.manual_seed(1)
    config = AttentionConfig.model_validate({"score": name, "size": A, **options})
    attention = build_attention(config, H, value_size).double()
    query = torch.randn(B, T, H, dtype=torch.float64)
    return attention, query, make_memory(attention, torch.randn(B, S, value_size, dtype=torch.float64))


def make_memory(attention: Attention, values: torch.Tensor) -> Memory:
    mask = torch.arange(S) < torch.tensor(LENGTHS).unsqueeze(1)
    return Memory(values, attention.project_keys(values), mask, RecurrentState(values[:, :1]))


def equation(name: ScoreName, attention: Attention, q: np.ndarray, h: np.ndarray) -> float:
    """e_j of `models.md`, for one query and one encoder state."""
    weights = {key: value.detach().numpy() for key, value in attention.named_parameters()}
    match name:
        case "dot":
            return float(h @ q)
        case "general":  # torch keeps W^T: the projection of h
            return float(h @ weights["weight.weight"].T @ q)
        case "concat":
            return float(weights["v.weight"][0] @ np.tanh(weights["weight.weight"] @ np.concatenate([q, h])))
        case "additive":
            inner = weights["query_weight.weight"] @ q + weights["value_weight.weight"] @ h + weights["value_weight.bias"]
            return float(weights["v.weight"][0] @ np.tanh(inner))
        case "concat_shared":
            return float(weights["v.weight"][0] @ np.tanh(weights["weight.weight"] @ (q + h)))
        case "linear":
            return float(weights["weight.weight"][0] @ np.concatenate([q, h]) + weights["weight.bias"][0])
        case _:
            raise AssertionError(name)


def expected(name: ScoreName, attention: Attention, query: torch.Tensor, memory: Memory) -> tuple[np.ndarray, np.ndarray]:
    """Context and weights by loops over batch, step and position."""
    contexts, weights = np.zeros((B, T, memory.values.shape[2])), np.zeros((B, T, S))
    for b in range(B):
        for t in range(T):
            h = memory.values[b, : LENGTHS[b]].numpy()
            e = np.array([equation(name, attention, query[b, t].numpy(), h_j) for h_j in h])
            alpha = np.exp(e) / np.exp(e).sum()
            weights[b, t, : LENGTHS[b]] = alpha
            contexts[b, t] = alpha @ h
    return contexts, weights


def test_literal_and_classes_agree() -> None:
    assert set(get_args(ScoreName)) == set(SCORES)


@pytest.mark.parametrize("name", SCORED)
def test_context_and_weights_follow_the_equation(name: ScoreName) -> None:
    attention, query, memory = make(name)
    context, weights = attention(query, memory)
    contexts, alphas = expected(name, attention, query, memory)
    assert weights.shape == (B, T, S)
    assert context.shape == (B, T, H)
    np.testing.assert_allclose(weights.detach(), alphas, atol=1e-10)
    np.testing.assert_allclose(context.detach(), contexts, atol=1e-10)


@pytest.mark.parametrize("name", ["general", "concat", "additive", "linear"])
def test_sizes_may_differ(name: ScoreName) -> None:
    attention, query, memory = make(name, value_size=9)
    context, _ = attention(query, memory)
    assert context.shape == (B, T, 9)
    contexts, _ = expected(name, attention, query, memory)
    np.testing.assert_allclose(context.detach(), contexts, atol=1e-10)


@pytest.mark.parametrize("name", ["dot", "general"])
def test_scaled_divides_by_the_root_of_the_decoder_size(name: ScoreName) -> None:
    plain, query, memory = make(name)
    scaled, _, _ = make(name, scaled=True)
    scaled.load_state_dict(plain.state_dict())
    torch.testing.assert_close(scaled.score(query, memory.keys) * H**0.5, plain.score(query, memory.keys))


@pytest.mark.parametrize("name", SCORED)
def test_padding_has_weight_exactly_zero_and_the_rest_sums_to_one(name: ScoreName) -> None:
    attention, query, memory = make(name)
    _, weights = attention(query, memory)
    assert (weights.masked_select(~memory.mask.unsqueeze(1)) == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, T, dtype=torch.float64))


@pytest.mark.parametrize("name", SCORED)
def test_gradients(name: ScoreName) -> None:
    attention, query, memory = make(name)
    values = memory.values.requires_grad_()

    def context(query: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        result, _ = attention(query, make_memory(attention, values))
        assert isinstance(result, torch.Tensor)
        return result

    assert torch.autograd.gradcheck(context, (query.requires_grad_(), values))


def test_linear_cannot_look_where_the_decoder_wants() -> None:
    attention, query, memory = make("linear")
    _, weights = attention(query, memory)
    torch.testing.assert_close(weights, weights[:, :1].expand_as(weights))


def test_none_gives_the_last_encoder_state() -> None:
    attention, query, memory = make("none")
    context, weights = attention(query, memory)
    torch.testing.assert_close(context, memory.final.top.unsqueeze(1).expand(B, T, H))
    assert (weights == 0).all()
