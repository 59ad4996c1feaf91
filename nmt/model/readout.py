"""Readouts: from a decoder step to the vector that the output layer reads."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from nmt.config.schema import DecoderConfig, ReadoutName


class Readout(nn.Module, ABC):
    """(s_t, E y_{t-1}, c_t) -> the vector that the output layer multiplies.

    Args:
        state_size: H_d. embedding_size: E. context_size: H_e.
        size: the width of the vector, for readouts that can choose it; every readout has an
            `output_size`.
    """

    output_size: int

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        super().__init__()
        self.output_size = size

    @abstractmethod
    def forward(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        """state [..., H_d], embedded [..., E], context [..., H_e] -> [..., output_size]."""


class AttentionalReadout(Readout):
    """hbar_t = tanh(W_c [c_t; s_t]) (Luong 2015, eq. 5)."""

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        super().__init__(state_size, embedding_size, context_size, size)
        self.weight = nn.Linear(context_size + state_size, size, bias=False)

    def forward(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return torch.tanh(self.weight(torch.cat([context, state], -1)))


class ConcatReadout(Readout):
    """[s_t; c_t] (the tutorial form)."""

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        super().__init__(state_size, embedding_size, context_size, state_size + context_size)

    def forward(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return torch.cat([state, context], -1)


class StateReadout(Readout):
    """s_t (the tutorial form), which already contains the context: it was an input of the recurrent
    step.
    """

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        super().__init__(state_size, embedding_size, context_size, state_size)

    def forward(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return state


class DeepReadout(Readout):
    """tanh(U s_t + V E y_{t-1} + C c_t): `MaxoutReadout` with tanh in place of the maximum."""

    pieces = 1

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        super().__init__(state_size, embedding_size, context_size, size)
        self.state = nn.Linear(state_size, self.pieces * size)
        self.embedded = nn.Linear(embedding_size, self.pieces * size, bias=False)
        self.context = nn.Linear(context_size, self.pieces * size, bias=False)

    def forward(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        total: Tensor = self.state(state) + self.embedded(embedded) + self.context(context)
        return self.squash(total)

    def squash(self, total: Tensor) -> Tensor:
        """[..., pieces * size] -> [..., size]."""
        return torch.tanh(total)


class MaxoutReadout(DeepReadout):
    """t_i = max(t~_{2i-1}, t~_{2i}) with t~ = U s_t + V E y_{t-1} + C c_t (after Bahdanau 2015,
    A.2.2).

    The paper has s_{t-1}, the state before the step, in place of s_t.
    """

    pieces = 2

    def squash(self, total: Tensor) -> Tensor:
        return total.unflatten(-1, (-1, self.pieces)).amax(-1)  # type: ignore[no-any-return]


READOUTS: dict[ReadoutName, type[Readout]] = {
    "attentional": AttentionalReadout,
    "concat": ConcatReadout,
    "state": StateReadout,
    "deep": DeepReadout,
    "maxout": MaxoutReadout,
}


def build_readout(config: DecoderConfig, embedding_size: int, context_size: int) -> Readout:
    """The readout that the configuration names."""
    return READOUTS[config.readout](
        config.hidden_size, embedding_size, context_size, config.readout_size or config.hidden_size
    )
