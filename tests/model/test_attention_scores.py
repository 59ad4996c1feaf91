"""Each score against its equation, written out in NumPy position by position."""

from typing import get_args

import numpy as np
import pytest
import torch

from nmt.config.schema import ScoreName
from nmt.model.attention_scores import ATTENTION_SCORES, AttentionScore

B, T, S, H, A = 3, 4, 5, 6, 7


def make(
    name: ScoreName, value_size: int = H, *, scaled: bool = False
) -> tuple[AttentionScore, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    score = ATTENTION_SCORES[name](H, value_size, A, scaled).double()
    return (
        score,
        torch.randn(B, T, H, dtype=torch.float64),
        torch.randn(B, S, value_size, dtype=torch.float64),
    )


def equation(name: str, score: AttentionScore, q: np.ndarray, h: np.ndarray) -> float:
    """e_j for one query and one encoder state."""
    weights = {key: value.detach().numpy() for key, value in score.named_parameters()}
    match name:
        case "dot":
            return float(h @ q)
        case "general":  # torch keeps W^T: the projection of h
            return float(h @ weights["weight.weight"].T @ q)
        case "concat":
            return float(
                weights["v.weight"][0] @ np.tanh(weights["weight.weight"] @ np.concatenate([q, h]))
            )
        case "additive":
            inner = (
                weights["query_weight.weight"] @ q
                + weights["value_weight.weight"] @ h
                + weights["value_weight.bias"]
            )
            return float(weights["v.weight"][0] @ np.tanh(inner))
        case "concat_shared":
            return float(weights["v.weight"][0] @ np.tanh(weights["weight.weight"] @ (q + h)))
        case "linear":
            return float(
                weights["weight.weight"][0] @ np.concatenate([q, h]) + weights["weight.bias"][0]
            )
        case _:
            raise AssertionError(name)


def expected(
    name: str, score: AttentionScore, query: torch.Tensor, values: torch.Tensor
) -> np.ndarray:
    """e by loops over sentence, step and position."""
    q, h = query.detach().numpy(), values.detach().numpy()
    return np.array(
        [
            [[equation(name, score, q[b, t], h[b, j]) for j in range(S)] for t in range(T)]
            for b in range(B)
        ]
    )


def test_literal_and_classes_agree() -> None:
    assert set(get_args(ScoreName)) == {*ATTENTION_SCORES, "none"}


@pytest.mark.parametrize("name", ATTENTION_SCORES)
def test_scores_follow_their_equations(name: ScoreName) -> None:
    score, query, values = make(name)
    result = score(query, score.project_keys(values))
    np.testing.assert_allclose(
        result.detach().expand(B, T, S), expected(name, score, query, values), atol=1e-10
    )


@pytest.mark.parametrize("name", ["general", "concat", "additive", "linear"])
def test_sizes_may_differ(name: ScoreName) -> None:
    score, query, values = make(name, value_size=9)
    result = score(query, score.project_keys(values))
    np.testing.assert_allclose(
        result.detach().expand(B, T, S), expected(name, score, query, values), atol=1e-10
    )


@pytest.mark.parametrize("name", ["dot", "general"])
def test_scaled_divides_by_the_root_of_the_decoder_size(name: ScoreName) -> None:
    plain, query, values = make(name)
    scaled, _, _ = make(name, scaled=True)
    scaled.load_state_dict(plain.state_dict())
    keys = plain.project_keys(values)
    torch.testing.assert_close(scaled(query, keys) * H**0.5, plain(query, keys))


@pytest.mark.parametrize("name", ATTENTION_SCORES)
def test_gradients(name: ScoreName) -> None:
    score, query, values = make(name)

    def scores(query: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        result = score(query, score.project_keys(values))
        assert isinstance(result, torch.Tensor)
        return result

    assert torch.autograd.gradcheck(scores, (query.requires_grad_(), values.requires_grad_()))


def test_the_query_shifts_all_linear_scores_alike() -> None:
    score, query, values = make("linear")
    scores = score(query, score.project_keys(values))
    torch.testing.assert_close(
        scores - scores[..., :1], (scores - scores[..., :1])[:, :1].expand(B, T, S)
    )
