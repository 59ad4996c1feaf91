"""Attention: scores, weights over the source positions, and the context.

Equation numbers are the papers'.

An `AttentionScore` says how well a query and a source position fit; an `Attention` says which
positions compete, and what it remembers from step to step. To add a score: a class that overrides
`forward`, and `project_keys` if part of it depends on the source alone, and its row in `SCORES`. To
add a kind of attention: a class that overrides `weigh`, and its row in `ATTENTIONS`.
"""

from abc import ABC, abstractmethod
from math import sqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.config.parts import ATTENTIONS, SCORES
from nmt.config.schema import AttentionConfig
from nmt.model.encoder import Summary
from nmt.model.lexical_bias import Translations

DEFAULT_WINDOW = 10  # D of Luong 2015, 3.2, if the configuration does not set it


class AttentionScore(nn.Module, ABC):
    """The energies e of Bahdanau 2015 and Luong 2015.

    Args:
        query_size: H_d, the decoder's state size.
        value_size: H_e, the encoder's state size.
        size: A, the inner size of the scores that have one.
        scaled: divide the bilinear scores by sqrt(H_d).
    """

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__()
        self.query_size, self.value_size, self.size = query_size, value_size, size
        self.scale = 1 / sqrt(query_size) if scaled else 1.0

    def project_keys(self, values: Tensor) -> Tensor:
        """[B, S, H_e] -> [B, S, K], once per sentence."""
        return values

    @abstractmethod
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """query [B, T, H_d], keys [B, S, K] -> e [B, T, S]."""


class DotScore(AttentionScore):
    """e_j = h_j . q (Luong 2015, eq. 8); with `scaled`, over sqrt(H_d) (Vaswani 2017, 3.2.1)."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.scale * query @ keys.transpose(1, 2)


class GeneralScore(DotScore):
    """e_j = h_j^T W q (Luong 2015, eq. 8), or over sqrt(H_d) with `scaled`. Keys: W^T h_j."""

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__(query_size, value_size, size, scaled)
        self.weight = nn.Linear(value_size, query_size, bias=False)

    def project_keys(self, values: Tensor) -> Tensor:
        return self.weight(values)  # type: ignore[no-any-return]


class ConcatScore(AttentionScore):
    """e_j = v^T tanh(W [q; h_j]) (Luong 2015, eq. 8). Keys: the block of W for h_j, times h_j."""

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__(query_size, value_size, size, scaled)
        self.weight = nn.Linear(query_size + value_size, size, bias=False)
        self.v = nn.Linear(size, 1, bias=False)

    def project_keys(self, values: Tensor) -> Tensor:
        return nn.functional.linear(values, self.weight.weight[:, self.query_size :])

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        projected = nn.functional.linear(query, self.weight.weight[:, : self.query_size])
        return _add_and_squash(projected, keys, self.v)


class AdditiveScore(AttentionScore):
    """e_j = v^T tanh(W_1 q + W_2 h_j + b) (Bahdanau 2015, A.1.2). Keys: W_2 h_j + b."""

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__(query_size, value_size, size, scaled)
        self.query_weight = nn.Linear(query_size, size, bias=False)
        self.value_weight = nn.Linear(value_size, size)
        self.v = nn.Linear(size, 1, bias=False)

    def project_keys(self, values: Tensor) -> Tensor:
        return self.value_weight(values)  # type: ignore[no-any-return]

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return _add_and_squash(self.query_weight(query), keys, self.v)


class ConcatSharedScore(AttentionScore):
    """e_j = v^T tanh(W (q + h_j)), the tutorial form, with H_e = H_d. Keys: W h_j."""

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__(query_size, value_size, size, scaled)
        self.weight = nn.Linear(query_size, size, bias=False)
        self.v = nn.Linear(size, 1, bias=False)

    def project_keys(self, values: Tensor) -> Tensor:
        return self.weight(values)  # type: ignore[no-any-return]

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return _add_and_squash(self.weight(query), keys, self.v)


class LinearScore(AttentionScore):
    """e_j = w . [q; h_j] + b, the tutorial form without tanh.

    The part of q is the same for every j, so softmax cancels it: the weights cannot depend on the
    decoder. Kept for comparison.
    """

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__(query_size, value_size, size, scaled)
        self.weight = nn.Linear(query_size + value_size, 1)

    def project_keys(self, values: Tensor) -> Tensor:
        of_values = self.weight.weight[:, self.query_size :]
        return nn.functional.linear(values, of_values, self.weight.bias)  # [B, S, 1]

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        of_query = nn.functional.linear(query, self.weight.weight[:, : self.query_size])
        return of_query + keys.transpose(1, 2)


def _add_and_squash(query: Tensor, keys: Tensor, v: nn.Linear) -> Tensor:
    """v^T tanh(query_t + key_j) for each pair: [B, T, A], [B, S, A] -> [B, T, S]."""
    return v(torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1))).squeeze(-1)  # type: ignore[no-any-return]


class Memory(NamedTuple):
    """The encoded source as the decoder uses it: made once per sentence, read at each step.

    Attributes:
        values: [B, S, H_e], the encoder states h_j.
        keys: [B, S, K], the part of the attention score that depends on h_j alone.
        mask: [B, S], True on real tokens.
        summary: of each sentence.
        translations: of its words, with a lexical bias only.
    """

    values: Tensor
    keys: Tensor
    mask: Tensor
    summary: Summary
    translations: Translations | None = None


class AttentionState(NamedTuple):
    """The state of attention between two steps.

    Attributes:
        position: the number of steps so far, the same for all sentences.
        coverage: [B, S], the sum of their weights; only for kinds that need it.
        stride: 1 if the queries are successive steps, 0 if they are hypotheses at the same step.
    """

    position: int = 0
    coverage: Tensor | None = None
    stride: int = 1


class Attended(NamedTuple):
    """The result of attention for T steps.

    Attributes:
        context: [B, T, H_e]. weights: [B, T, S], 0 on padding. Of `step`: [B * K, H_e] and so on.
        state: for the next step.
    """

    context: Tensor
    weights: Tensor
    state: AttentionState


class Attention(nn.Module, ABC):
    """Gives each decoder step a context: a weighted sum of the encoder states."""

    def build_memory(self, values: Tensor, mask: Tensor, summary: Summary) -> Memory:
        """The memory of encoder states [B, S, H_e], with what can be computed once per sentence."""
        return Memory(values, values, mask, summary)

    def start(self, memory: Memory) -> AttentionState:
        """The state before the first step."""
        return AttentionState()

    @abstractmethod
    def forward(self, query: Tensor, memory: Memory, state: AttentionState) -> Attended:
        """Attend with the queries [B, T, H_d] of T steps."""

    def step(self, query: Tensor, memory: Memory, state: AttentionState) -> Attended:
        """One step with queries [B * K, H_d] of K hypotheses of each sentence, side by side.

        The K hypotheses take the place of the T steps in `forward`, so the memory holds each
        sentence only once.

        Returns:
            context [B * K, H_e], weights [B * K, S].
        """
        attended = self(_by_sentence(query, memory), memory, state._replace(stride=0))
        context, weights = attended.context.flatten(0, 1), attended.weights.flatten(0, 1)
        return Attended(context, weights, state._replace(position=state.position + 1))


class GlobalAttention(Attention):
    """alpha = softmax(e) over all real positions, c = sum_j alpha_j h_j.

    The base class of all kinds of weights.

    Args:
        score: computes e.
        window: D, for the kinds that have a window.
    """

    def __init__(self, score: AttentionScore, window: int = DEFAULT_WINDOW) -> None:
        super().__init__()
        self.score, self.window = score, window

    def build_memory(self, values: Tensor, mask: Tensor, summary: Summary) -> Memory:
        return Memory(values, self.score.project_keys(values), mask, summary)

    def forward(self, query: Tensor, memory: Memory, state: AttentionState) -> Attended:
        weights = self.weigh(query, memory, state)
        return Attended(weights @ memory.values, weights, self.advance(state, weights))

    def weigh(self, query: Tensor, memory: Memory, state: AttentionState) -> Tensor:
        """The weights [B, T, S] of the queries [B, T, H_d]."""
        return _masked_softmax(self.score(query, memory.keys), memory.mask.unsqueeze(1))

    def advance(self, state: AttentionState, weights: Tensor) -> AttentionState:
        """The state after steps with `weights` [B, T, S]."""
        return AttentionState(state.position + weights.shape[1])


class LocalMonotonic(GlobalAttention):
    """local-m of Luong 2015, 3.2: only the positions within D of p_t = t compete.

    Past the end of the source, p_t stays at its last position.
    """

    def weigh(self, query: Tensor, memory: Memory, state: AttentionState) -> Tensor:
        # The number of hypotheses at one step would become a constant of an exported graph.
        n_steps = query.shape[1] if state.stride else 1
        steps = state.position + torch.arange(n_steps, device=query.device)
        centers = torch.minimum(steps, memory.mask.sum(1, keepdim=True) - 1)  # [B, T] or [B, 1]
        near = _distance(centers, memory.mask).abs() <= self.window
        return _masked_softmax(self.score(query, memory.keys), near & memory.mask.unsqueeze(1))


class LocalPredictive(GlobalAttention):
    """local-p of Luong 2015, 3.2: p_t = S sigmoid(v_p^T tanh(W_p q)) (eq. 9).

    Positions count from 0, S with <eos>. Only the positions within D of p_t compete, and a Gaussian
    with standard deviation D / 2 around p_t multiplies their weights (eq. 10). As in the paper it
    is not renormalized: the weights sum to less than 1.
    """

    def __init__(self, score: AttentionScore, window: int = DEFAULT_WINDOW) -> None:
        super().__init__(score, window)
        self.position = nn.Linear(score.query_size, score.query_size, bias=False)
        self.v = nn.Linear(score.query_size, 1, bias=False)

    def weigh(self, query: Tensor, memory: Memory, state: AttentionState) -> Tensor:
        lengths = memory.mask.sum(1, keepdim=True)  # [B, 1]
        parts = torch.sigmoid(self.v(torch.tanh(self.position(query))))
        centers = lengths * parts.squeeze(-1)  # [B, T]
        distance = _distance(centers, memory.mask)
        near = distance.detach().abs() <= self.window
        weights = _masked_softmax(self.score(query, memory.keys), near & memory.mask.unsqueeze(1))
        return weights * torch.exp(-(distance**2) / (2 * (self.window / 2) ** 2))


class Coverage(GlobalAttention):
    """Attention that knows its past weights: C_j is their sum at position j so far.

    e_j = v^T tanh(W_1 q + W_2 h_j + w_c C_j + b) (Tu 2016, eq. 7, with linguistic coverage of one
    dimension; See 2017, eq. 11).
    """

    def __init__(self, score: AttentionScore, window: int = DEFAULT_WINDOW) -> None:
        super().__init__(score, window)
        self.weight = nn.Linear(1, score.size, bias=False)

    def start(self, memory: Memory) -> AttentionState:
        return AttentionState(0, memory.keys.new_zeros(memory.mask.shape))

    def forward(self, query: Tensor, memory: Memory, state: AttentionState) -> Attended:
        # The weights of a step depend on those of the step before.
        contexts, weights = [], []
        for step in query.split(1, 1):
            attended = super().forward(step, memory, state)
            state = attended.state
            contexts.append(attended.context)
            weights.append(attended.weights)
        return Attended(torch.cat(contexts, 1), torch.cat(weights, 1), state)

    def weigh(self, query: Tensor, memory: Memory, state: AttentionState) -> Tensor:
        assert state.coverage is not None
        keys = memory.keys + self.weight(state.coverage.unsqueeze(-1))
        return _masked_softmax(self.score(query, keys), memory.mask.unsqueeze(1))

    def step(self, query: Tensor, memory: Memory, state: AttentionState) -> Attended:
        # Each hypothesis has its own coverage, and so its own keys.
        assert state.coverage is not None
        coverage = _by_sentence(state.coverage, memory).unsqueeze(-1)  # [B, K, S, 1]
        keys = memory.keys.unsqueeze(1) + self.weight(coverage)  # [B, K, S, A]
        scores = _by_sentence(self.score(query.unsqueeze(1), keys.flatten(0, 1)).squeeze(1), memory)
        weights = _masked_softmax(scores, memory.mask.unsqueeze(1))  # [B, K, S]
        context, rows = (weights @ memory.values).flatten(0, 1), weights.flatten(0, 1)
        return Attended(context, rows, self.advance(state, rows.unsqueeze(1)))

    def advance(self, state: AttentionState, weights: Tensor) -> AttentionState:
        assert state.coverage is not None
        return AttentionState(state.position + weights.shape[1], state.coverage + weights.sum(1))


class NoAttention(Attention):
    """No attention: the context is always the encoder's last state (Cho 2014), all weights 0."""

    def forward(self, query: Tensor, memory: Memory, state: AttentionState) -> Attended:
        context = memory.summary.vector.unsqueeze(1).expand(-1, query.shape[1], -1)
        weights = query.new_zeros(query.shape[0], query.shape[1], memory.mask.shape[1])
        return Attended(context, weights, state)


def _by_sentence(rows: Tensor, memory: Memory) -> Tensor:
    """[B * K, ...] -> [B, K, ...]."""
    return rows.view(memory.mask.shape[0], -1, *rows.shape[1:])


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Over the last dimension; exactly 0 where `mask` is False."""
    return scores.masked_fill(~mask, float("-inf")).softmax(-1)


def _distance(centers: Tensor, mask: Tensor) -> Tensor:
    """j - p_t for each position j: centers [B, T], mask [B, S] -> [B, T, S]."""
    return torch.arange(mask.shape[1], device=mask.device) - centers.unsqueeze(-1)


def build_attention(config: AttentionConfig, query_size: int, value_size: int) -> Attention:
    """The attention that the configuration names, for queries [.., H_d] and values [.., H_e]."""
    score_class = SCORES[config.score].load()
    if SCORES[config.score].trait("absent"):
        return score_class()  # type: ignore[no-any-return]
    score = score_class(query_size, value_size, config.size or query_size, config.scaled)
    attention: Attention = ATTENTIONS[config.kind].load()(score, config.window or DEFAULT_WINDOW)
    return attention
