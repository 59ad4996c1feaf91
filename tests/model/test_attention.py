"""Each score and each kind of attention against its equations in NumPy; properties of all kinds."""

from math import exp

import numpy as np
import pytest
import torch

from nmt.config.parts import ATTENTIONS, SCORES
from nmt.config.rules import check_rules
from nmt.config.schema import AttentionConfig, Config
from nmt.model.attention import (
    Attention,
    AttentionScore,
    GlobalAttention,
    Memory,
    build_attention,
)
from nmt.model.encoder import Summary
from nmt.model.recurrent import RecurrentState
from tests.model import equations

B, T, S, H, A, D = 3, 4, 6, 6, 7, 2
LENGTHS = [6, 3, 1]
SCORE_NAMES = [name for name, score in SCORES.items() if not score.trait("absent")]


def is_possible(kind: str, score: str) -> bool:
    sizes = {"encoder": {"hidden_size": H, "bidirectional": False}, "decoder": {"hidden_size": H}}
    values = {
        "name": "x",
        "data": {"source": {"path": "x"}},
        "model": {**sizes, "attention": {"kind": kind, "score": score}},
    }
    return not check_rules(Config.model_validate(values))


CASES = [
    case for kind in ATTENTIONS for score in SCORE_NAMES if is_possible(*(case := (kind, score)))
]


def make_score(
    name: str, value_size: int = H, *, scaled: bool = False
) -> tuple[AttentionScore, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    score = SCORES[name].load()(H, value_size, A, scaled).double()
    return (
        score,
        torch.randn(B, T, H, dtype=torch.float64),
        torch.randn(B, S, value_size, dtype=torch.float64),
    )


@pytest.mark.parametrize("value_size", [H, 9])
@pytest.mark.parametrize("name", SCORE_NAMES)
def test_scores_follow_their_equations(name: str, value_size: int) -> None:
    if SCORES[name].trait("equal_sizes"):
        value_size = H
    score, query, values = make_score(name, value_size)
    weights = {key: value.detach().numpy() for key, value in score.named_parameters()}
    result = score(query, score.project_keys(values)).detach().expand(B, T, S)
    for b, t, j in np.ndindex(B, T, S):
        e = equations.score(name, weights, query[b, t].numpy(), values[b, j].numpy())
        assert result[b, t, j].item() == pytest.approx(e, abs=1e-10)


@pytest.mark.parametrize("name", ["dot", "general"])
def test_scaled_divides_by_the_root_of_the_decoder_size(name: str) -> None:
    plain, query, values = make_score(name)
    scaled, _, _ = make_score(name, scaled=True)
    scaled.load_state_dict(plain.state_dict())
    keys = plain.project_keys(values)
    torch.testing.assert_close(scaled(query, keys) * H**0.5, plain(query, keys))


def make(kind: str, score: str) -> tuple[Attention, torch.Tensor, torch.Tensor]:
    """The attention, queries [B, T, H] and encoder states [B, S, H]."""
    torch.manual_seed(1)
    size = A if score in ("concat", "additive", "concat_shared") else None
    window = D if kind in ("local_m", "local_p") else None
    config = AttentionConfig.model_validate(
        {"kind": kind, "score": score, "size": size, "window": window}
    )
    attention = build_attention(config, H, H).double()
    for parameter in (
        attention.parameters()
    ):  # larger than at the beginning of a training, so that the weights differ
        torch.nn.init.normal_(parameter)
    return (
        attention,
        torch.randn(B, T, H, dtype=torch.float64),
        torch.randn(B, S, H, dtype=torch.float64),
    )


def read(attention: Attention, values: torch.Tensor) -> Memory:
    mask = torch.arange(values.shape[1]) < torch.tensor(LENGTHS[: len(values)]).unsqueeze(1)
    return attention.build_memory(
        values, mask, Summary(values[:, 0], RecurrentState(((values[:, 0], None),)))
    )


def attend(
    attention: Attention, query: torch.Tensor, memory: Memory
) -> tuple[torch.Tensor, torch.Tensor]:
    """Context and weights of all steps, one at a time."""
    state, contexts, weights = attention.start(memory), [], []
    for step in query.split(1, 1):
        attended = attention(step, memory, state)
        state = attended.state
        contexts.append(attended.context)
        weights.append(attended.weights)
    return torch.cat(contexts, 1), torch.cat(weights, 1)


def softmax(e: np.ndarray) -> np.ndarray:
    powers: np.ndarray = np.exp(e - e.max())
    return powers / float(powers.sum())


def expected_weights(
    attention: GlobalAttention, kind: str, q: np.ndarray, h: np.ndarray
) -> np.ndarray:
    """alpha [T, S'] of one sentence of S' words for queries [T, H], by the equations of Luong 2015,
    3.2, and See 2017, eq. 11.
    """
    w = {key: value.detach().numpy() for key, value in attention.named_parameters()}
    length, rows, coverage = len(h), [], np.zeros(len(h))
    keys = attention.score.project_keys(torch.from_numpy(h)[None])
    for t, query in enumerate(q):
        near, bell = list(range(length)), np.ones(length)
        if kind == "local_m":
            near = [j for j in range(length) if abs(j - min(t, length - 1)) <= D]
        if kind == "local_p":
            center = length / (1 + exp(-(w["v.weight"][0] @ np.tanh(w["position.weight"] @ query))))
            near = [j for j in range(length) if center - D <= j <= center + D]
            bell = np.array([exp(-((j - center) ** 2) / (2 * (D / 2) ** 2)) for j in range(length)])
        covered = (
            keys + torch.from_numpy(np.outer(coverage, w["weight.weight"][:, 0]))
            if kind == "coverage"
            else keys
        )
        e = attention.score(torch.from_numpy(query)[None, None], covered)[0, 0].detach().numpy()
        alpha = np.zeros(length)
        alpha[near] = softmax(e[near])
        rows.append(alpha * bell)
        coverage = coverage + rows[-1]
    return np.array(rows)


@pytest.mark.parametrize(("kind", "score"), CASES)
def test_context_and_weights_follow_the_equations(kind: str, score: str) -> None:
    """Padding has weight exactly zero."""
    attention, query, values = make(kind, score)
    assert isinstance(attention, GlobalAttention)
    context, weights = attend(attention, query, read(attention, values))
    for b, length in enumerate(LENGTHS):
        h = values[b, :length].numpy()
        alpha = expected_weights(attention, kind, query[b].numpy(), h)
        np.testing.assert_allclose(weights[b, :, :length].detach(), alpha, atol=1e-10)
        np.testing.assert_allclose(context[b].detach(), alpha @ h, atol=1e-10)
        assert not weights[b, :, length:].any()


def test_none_gives_the_summary_of_the_sentence() -> None:
    attention, query, values = make("global", "none")
    memory = read(attention, values)
    context, weights = attend(attention, query, memory)
    torch.testing.assert_close(context, memory.summary.vector.unsqueeze(1).expand(B, T, H))
    assert (weights == 0).all()
