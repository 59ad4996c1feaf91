"""Decoders, and the readouts that make the vector for the output layer from each of their steps.

Luong attends after the recurrent step, Bahdanau before it, GNMT between the first layer and those
above. `unroll` runs over a given prefix, as in training, and `step` one token at a time, as in
search. Both give the same vectors. To add one: a subclass of `Decoder` or `Readout`, and its row in
`DECODERS` or `READOUTS`.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.config.parts import READOUTS
from nmt.config.schema import ModelConfig
from nmt.model.attention import Attended, AttentionState, Memory, build_attention
from nmt.model.recurrent import RecurrentStack, RecurrentState


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
    """s_t (the tutorial form), which contains the context: an input of the recurrent step."""

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
        return self.squash(self.state(state) + self.embedded(embedded) + self.context(context))

    def squash(self, total: Tensor) -> Tensor:
        """[..., pieces * size] -> [..., size]."""
        return torch.tanh(total)


class MaxoutReadout(DeepReadout):
    """t_i = max(t~_{2i-1}, t~_{2i}) with t~ = U s_t + V E y_{t-1} + C c_t.

    After Bahdanau 2015, A.2.2, which has s_{t-1}, the state before the step, in place of s_t.
    """

    pieces = 2

    def squash(self, total: Tensor) -> Tensor:
        return total.unflatten(-1, (-1, self.pieces)).amax(-1)  # type: ignore[no-any-return]


class DecoderOutput(NamedTuple):
    """The result of one step for N hypotheses.

    Attributes:
        vector: what the output layer reads: [N, R]; of a whole model, with the lexical bias.
        attention: [N, S], the attention weights; 0 on padding.
        state: the state for the next step.
    """

    vector: Any
    attention: Tensor
    state: "DecoderState"


class DecoderState(NamedTuple):
    """The decoder's state between two steps.

    Attributes:
        recurrent: s_t, all layers.
        attention: the position, and the coverage for kinds that need it.
        fed: [B, R], the last attentional vector, with input feeding only.
    """

    recurrent: RecurrentState
    attention: AttentionState
    fed: Tensor | None = None


class Decoder(nn.Module, ABC):
    """The base class of all decoders.

    Args:
        input_size: the width of the first recurrent layer's input.
        context_above: whether the layers above the first read the context.
    """

    def __init__(
        self,
        config: ModelConfig,
        input_size: int,
        dropout: nn.Dropout,
        *,
        context_above: bool = False,
    ) -> None:
        super().__init__()
        decoder, size = config.decoder, config.decoder.hidden_size
        context_size = config.encoder.output_size
        self.attention = build_attention(config.attention, size, context_size)
        self.recurrent = RecurrentStack(
            decoder, input_size, dropout, context_size if context_above else 0
        )
        self.readout: Readout = READOUTS[decoder.readout].load()(
            size, config.embedding_size, context_size, decoder.readout_size or size
        )

    def start(self, state: RecurrentState, memory: Memory) -> DecoderState:
        """The state before the first step, from the bridge's output."""
        return DecoderState(state, self.attention.start(memory))

    @abstractmethod
    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> DecoderOutput:
        """One step from the embedded last tokens: [B, E], or [B * K, E] for K hypotheses each."""

    def unroll(
        self, embedded: Tensor, state: DecoderState, memory: Memory
    ) -> tuple[Tensor, Tensor]:
        """All steps from the embedded prefix [B, T, E]; overridden where they need no loop.

        Returns:
            vectors [B, T, R], attention weights [B, T, S].
        """
        vectors, weights = [], []
        for token in embedded.unbind(1):
            output = self.step(token, state, memory)
            state = output.state
            vectors.append(output.vector)
            weights.append(output.attention)
        return torch.stack(vectors, 1), torch.stack(weights, 1)


class LuongDecoder(Decoder):
    """s_t = RNN([E y_{t-1}; hbar_{t-1}], s_{t-1}), alpha_t from s_t (Luong 2015, 3.1).

    hbar_{t-1} is there only with input feeding (3.3).

    Without input feeding the recurrence does not depend on attention: one call makes all its steps,
    all attention (except kinds whose weights depend on the step before), and all readouts.
    """

    def __init__(self, config: ModelConfig, dropout: nn.Dropout) -> None:
        decoder = config.decoder
        self.input_feeding = decoder.input_feeding
        fed = (decoder.readout_size or decoder.hidden_size) if self.input_feeding else 0
        super().__init__(config, config.embedding_size + fed, dropout)

    def start(self, state: RecurrentState, memory: Memory) -> DecoderState:
        first = super().start(state, memory)
        if not self.input_feeding:
            return first
        n_rows = state.top.shape[0]  # `len` would be a constant of an exported graph
        return first._replace(fed=state.top.new_zeros(n_rows, self.readout.output_size))

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> DecoderOutput:
        top, recurrent = self.recurrent.step(embedded, state.fed, state.recurrent)
        attended = self.attention.step(top, memory, state.attention)
        vector = self.readout(top, embedded, attended.context)
        fed = vector if self.input_feeding else None
        return DecoderOutput(vector, attended.weights, DecoderState(recurrent, attended.state, fed))

    def unroll(
        self, embedded: Tensor, state: DecoderState, memory: Memory
    ) -> tuple[Tensor, Tensor]:
        if self.input_feeding:
            return super().unroll(embedded, state, memory)
        states, _ = self.recurrent.run(embedded, state.recurrent)  # [B, T, H_d]
        attended = self.attention(states, memory, state.attention)
        return self.readout(states, embedded, attended.context), attended.weights


class BahdanauDecoder(Decoder):
    """alpha_t from s_{t-1}, s_t = RNN([E y_{t-1}; c_t], s_{t-1}) (Bahdanau 2015, 3.1).

    The query is the top layer's state.

    Args:
        context_below: whether the first layer reads the context.
    """

    def __init__(
        self, config: ModelConfig, dropout: nn.Dropout, *, context_below: bool = True
    ) -> None:
        context_size = config.encoder.output_size if context_below else 0
        super().__init__(config, config.embedding_size + context_size, dropout)

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> DecoderOutput:
        top, attended, state = self._attend_and_step(embedded, state, memory)
        return DecoderOutput(self.readout(top, embedded, attended.context), attended.weights, state)

    def unroll(
        self, embedded: Tensor, state: DecoderState, memory: Memory
    ) -> tuple[Tensor, Tensor]:
        tops, contexts, weights = [], [], []
        for token in embedded.unbind(1):
            top, attended, state = self._attend_and_step(token, state, memory)
            tops.append(top)
            contexts.append(attended.context)
            weights.append(attended.weights)
        # Only the recurrence needs the loop: one call makes the readouts of all steps.
        vectors = self.readout(torch.stack(tops, 1), embedded, torch.stack(contexts, 1))
        return vectors, torch.stack(weights, 1)

    def _attend_and_step(
        self, embedded: Tensor, state: DecoderState, memory: Memory
    ) -> tuple[Tensor, Attended, DecoderState]:
        attended = self.attention.step(state.recurrent.top, memory, state.attention)
        top, recurrent = self.recurrent.step(embedded, attended.context, state.recurrent)
        return top, attended, DecoderState(recurrent, attended.state)


class ConditionalDecoder(BahdanauDecoder):
    """s'_t = RNN_1(E y_{t-1}, s_{t-1}), alpha_t from s'_t, s_t = RNN_2(c_t, s'_t).

    This is the conditional GRU (Sennrich 2017, 2), with any cell. Attention sees the last word, and
    the state sees the context of the current step. The two steps share one state.
    """

    def __init__(self, config: ModelConfig, dropout: nn.Dropout) -> None:
        super().__init__(config, dropout, context_below=False)
        self.transition = RecurrentStack(config.decoder, config.encoder.output_size, dropout)

    def _attend_and_step(
        self, embedded: Tensor, state: DecoderState, memory: Memory
    ) -> tuple[Tensor, Attended, DecoderState]:
        query, recurrent = self.recurrent.step(embedded, None, state.recurrent)
        attended = self.attention.step(query, memory, state.attention)
        top, recurrent = self.transition.step(attended.context, None, recurrent)
        return top, attended, DecoderState(recurrent, attended.state)


class GnmtDecoder(Decoder):
    """h^l_t = RNN_l([h^{l-1}_t; c_t], h^l_{t-1}) for l > 1, s_t = h^L_t.

    Below, h^1_t = RNN_1(E y_{t-1}, h^1_{t-1}), and alpha_t comes from h^1_t. After Wu 2016 (3, fig.
    1), with the context of the current step, as in the GNMT of github.com/NVIDIA/
    DeepLearningExamples; in the paper alpha_t comes from h^1_{t-1} (eq. 4). The states of the upper
    layers contain all contexts so far, but the first layer depends on none of them. So each layer
    makes all its steps in one call, and attention too, as in `LuongDecoder`.
    """

    BOTTOM, ABOVE = slice(1), slice(1, None)

    def __init__(self, config: ModelConfig, dropout: nn.Dropout) -> None:
        super().__init__(config, config.embedding_size, dropout, context_above=True)

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> DecoderOutput:
        bottom, recurrent = self.recurrent.step(embedded, None, state.recurrent, layers=self.BOTTOM)
        attended = self.attention.step(bottom, memory, state.attention)
        top, recurrent = self.recurrent.step(bottom, None, recurrent, attended.context, self.ABOVE)
        state = DecoderState(recurrent, attended.state)
        return DecoderOutput(self.readout(top, embedded, attended.context), attended.weights, state)

    def unroll(
        self, embedded: Tensor, state: DecoderState, memory: Memory
    ) -> tuple[Tensor, Tensor]:
        bottom, _ = self.recurrent.run(embedded, state.recurrent, layers=self.BOTTOM)  # [B, T, H_d]
        attended = self.attention(bottom, memory, state.attention)
        top, _ = self.recurrent.run(bottom, state.recurrent, attended.context, self.ABOVE)
        return self.readout(top, embedded, attended.context), attended.weights
