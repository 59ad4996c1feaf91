"""Attention: which source positions a decoder step looks at (`models.md` names are the papers': q the query, h_j the values).

Every score is one class that overrides `score`, and `project_keys` if part of it depends on the source alone. To add one: the
class, a row in `SCORES`, an entry of `ScoreName` in the configuration.
"""

from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from nmt.config import AttentionConfig, ScoreName
from nmt.model.recurrent import RecurrentState


@dataclass(frozen=True)
class Memory:
    """What the decoder may look at: made once a source sentence, read at each step.

    Attributes:
        values: [B, S, H_e], the encoder states h_j.
        keys: [B, S, K], the part of the score that depends on h_j alone.
        mask: [B, S], True on real tokens.
        final: the encoder's last state, H_e wide.
    """

    values: Tensor
    keys: Tensor
    mask: Tensor
    final: RecurrentState

    def select(self, rows: Tensor) -> "Memory":
        """The memory of the sentences `rows` [R], in that order."""
        return Memory(self.values[rows], self.keys[rows], self.mask[rows], self.final.select(rows))


class Attention(nn.Module):
    """Owns what all scores share: mask, softmax and the weighted sum.

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
        """[B, S, H_e] -> [B, S, K], once a sentence."""
        return values

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        """query [B, T, H_d], keys [B, S, K] -> e [B, T, S]."""
        raise NotImplementedError

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """alpha = softmax(e), c = sum_j alpha_j h_j; padding gets weight exactly 0.

        Args:
            query: [B, T, H_d].

        Returns:
            context [B, T, H_e], weights [B, T, S].
        """
        scores = self.score(query, memory.keys)
        weights = functional.softmax(scores.masked_fill(~memory.mask.unsqueeze(1), float("-inf")), dim=-1)
        return weights @ memory.values, weights


class Dot(Attention):
    """e_j = h_j . q (Luong 2015, eq. 8); with `scaled`, over sqrt(H_d) (Vaswani 2017, 3.2.1)."""

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.scale * query @ keys.transpose(1, 2)


class General(Attention):
    """e_j = h_j^T W q (Luong 2015, eq. 8), the multiplicative form; with `scaled`, over sqrt(H_d). Keys: W^T h_j."""

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__(query_size, value_size, size, scaled)
        self.weight = nn.Linear(value_size, query_size, bias=False)

    def project_keys(self, values: Tensor) -> Tensor:
        return self.weight(values)  # type: ignore[no-any-return]

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.scale * query @ keys.transpose(1, 2)


class Concat(Attention):
    """e_j = v^T tanh(W [q; h_j]) (Luong 2015, eq. 8). W is two blocks side by side: keys are the block of h_j."""

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__(query_size, value_size, size, scaled)
        self.weight = nn.Linear(query_size + value_size, size, bias=False)
        self.v = nn.Linear(size, 1, bias=False)

    def project_keys(self, values: Tensor) -> Tensor:
        return functional.linear(values, self.weight.weight[:, self.query_size :])

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        projected = functional.linear(query, self.weight.weight[:, : self.query_size])
        return _add_and_squash(projected, keys, self.v)


class Additive(Attention):
    """e_j = v^T tanh(W_1 q + W_2 h_j + b) (Bahdanau 2015, A.1.2). Keys: W_2 h_j + b."""

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__(query_size, value_size, size, scaled)
        self.query_weight = nn.Linear(query_size, size, bias=False)
        self.value_weight = nn.Linear(value_size, size)
        self.v = nn.Linear(size, 1, bias=False)

    def project_keys(self, values: Tensor) -> Tensor:
        return self.value_weight(values)  # type: ignore[no-any-return]

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return _add_and_squash(self.query_weight(query), keys, self.v)


class ConcatShared(Attention):
    """e_j = v^T tanh(W (q + h_j)), the tutorial form: one matrix for the sum, so H_e = H_d. Keys: W h_j."""

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__(query_size, value_size, size, scaled)
        self.weight = nn.Linear(query_size, size, bias=False)
        self.v = nn.Linear(size, 1, bias=False)

    def project_keys(self, values: Tensor) -> Tensor:
        return self.weight(values)  # type: ignore[no-any-return]

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return _add_and_squash(self.weight(query), keys, self.v)


class Linear(Attention):
    """e_j = w . [q; h_j] + b, the tutorial form without tanh.

    The part of q is the same for every j, so softmax cancels it: the weights cannot depend on the decoder. Kept for comparison.
    """

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__(query_size, value_size, size, scaled)
        self.weight = nn.Linear(query_size + value_size, 1)

    def project_keys(self, values: Tensor) -> Tensor:
        return functional.linear(values, self.weight.weight[:, self.query_size :], self.weight.bias)  # [B, S, 1]

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return functional.linear(query, self.weight.weight[:, : self.query_size]) + keys.transpose(1, 2)


class NoAttention(Attention):
    """No attention: the context is the last encoder state at every step (Sutskever 2014), and all weights are 0."""

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        steps = query.shape[1]
        context = memory.final.top.unsqueeze(1).expand(-1, steps, -1)
        return context, query.new_zeros(query.shape[0], steps, memory.mask.shape[1])


def _add_and_squash(query: Tensor, keys: Tensor, v: nn.Linear) -> Tensor:
    """v^T tanh(query_t + key_j) for each pair: [B, T, A], [B, S, A] -> [B, T, S]."""
    return v(torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1))).squeeze(-1)  # type: ignore[no-any-return]


SCORES: dict[ScoreName, type[Attention]] = {
    "dot": Dot,
    "general": General,
    "concat": Concat,
    "additive": Additive,
    "concat_shared": ConcatShared,
    "linear": Linear,
    "none": NoAttention,
}


def build_attention(config: AttentionConfig, query_size: int, value_size: int) -> Attention:
    """The attention that the configuration names."""
    return SCORES[config.score](query_size, value_size, config.size or query_size, config.scaled)
