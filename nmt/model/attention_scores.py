"""Attention scores: how well a query q and an encoder state h_j fit. Equation numbers are the
papers'.

Every score is one class that overrides `forward`, and `project_keys` if part of it depends on the
source alone. To add one: the class, a row in `ATTENTION_SCORES`, an entry of `ScoreName` in the
configuration, and of `SIZED_SCORES` if it has an inner size.
"""

from abc import ABC, abstractmethod
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from nmt.config.schema import ScoreName


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


class GeneralScore(AttentionScore):
    """e_j = h_j^T W q (Luong 2015, eq. 8), the multiplicative form; with `scaled`, over sqrt(H_d).
    Keys: W^T h_j.
    """

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__(query_size, value_size, size, scaled)
        self.weight = nn.Linear(value_size, query_size, bias=False)

    def project_keys(self, values: Tensor) -> Tensor:
        return self.weight(values)  # type: ignore[no-any-return]

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.scale * query @ keys.transpose(1, 2)


class ConcatScore(AttentionScore):
    """e_j = v^T tanh(W [q; h_j]) (Luong 2015, eq. 8). W is two blocks side by side: keys are the
    block of h_j.
    """

    def __init__(self, query_size: int, value_size: int, size: int, scaled: bool = False) -> None:
        super().__init__(query_size, value_size, size, scaled)
        self.weight = nn.Linear(query_size + value_size, size, bias=False)
        self.v = nn.Linear(size, 1, bias=False)

    def project_keys(self, values: Tensor) -> Tensor:
        return functional.linear(values, self.weight.weight[:, self.query_size :])

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        projected = functional.linear(query, self.weight.weight[:, : self.query_size])
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
    """e_j = v^T tanh(W (q + h_j)), the tutorial form: one matrix for the sum, so H_e = H_d. Keys: W
    h_j.
    """

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
        return functional.linear(
            values, self.weight.weight[:, self.query_size :], self.weight.bias
        )  # [B, S, 1]

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return functional.linear(query, self.weight.weight[:, : self.query_size]) + keys.transpose(
            1, 2
        )


def _add_and_squash(query: Tensor, keys: Tensor, v: nn.Linear) -> Tensor:
    """v^T tanh(query_t + key_j) for each pair: [B, T, A], [B, S, A] -> [B, T, S]."""
    return v(torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1))).squeeze(-1)  # type: ignore[no-any-return]


ATTENTION_SCORES: dict[ScoreName, type[AttentionScore]] = {
    "dot": DotScore,
    "general": GeneralScore,
    "concat": ConcatScore,
    "additive": AdditiveScore,
    "concat_shared": ConcatSharedScore,
    "linear": LinearScore,
}
