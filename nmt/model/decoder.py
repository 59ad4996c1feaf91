"""The decoders: Luong attends after the recurrent step, Bahdanau before it, GNMT between the first
layer and those above.

`unroll` runs over a given prefix, as in training, and `step` one token at a time, as in search.
Both give the same vectors. To add one: a subclass of `Decoder`, a row in `DECODERS`, an entry of
`DecoderKind` in the configuration, and its readouts.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from nmt.config.schema import DecoderKind, ModelConfig
from nmt.model.attention import Attended, AttentionState, Memory, build_attention
from nmt.model.interface import StepOutput
from nmt.model.layers import Dropout
from nmt.model.readout import build_readout
from nmt.model.recurrent import RecurrentStack, RecurrentState


@dataclass(frozen=True)
class DecoderState:
    """The decoder's state between two steps.

    Attributes:
        recurrent: s_t, all layers.
        attention: the position, and the coverage for kinds that need it.
        fed: [B, R], the last attentional vector, with input feeding only.
    """

    recurrent: RecurrentState
    attention: AttentionState
    fed: Tensor | None = None

    def select(self, rows: Tensor) -> "DecoderState":
        """The state of the rows [R], in that order."""
        fed = None if self.fed is None else self.fed[rows]
        return DecoderState(self.recurrent.select(rows), self.attention.select(rows), fed)


class Decoder(nn.Module, ABC):
    """The base class of all decoders.

    Args:
        input_size: the width of the first recurrent layer's input.
        context_above: whether the layers above the first read the context.
    """

    def __init__(
        self, config: ModelConfig, input_size: int, dropout: Dropout, *, context_above: bool = False
    ) -> None:
        super().__init__()
        decoder, context_size = config.decoder, config.encoder.output_size
        self.attention = build_attention(config.attention, decoder.hidden_size, context_size)
        self.recurrent = RecurrentStack(
            decoder, input_size, dropout, context_size if context_above else 0
        )
        self.readout = build_readout(decoder, config.embedding_size, context_size)

    def start(self, state: RecurrentState, memory: Memory) -> DecoderState:
        """The state before the first step, from the bridge's output."""
        return DecoderState(self.recurrent.start(state), self.attention.start(memory))

    @abstractmethod
    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> StepOutput:
        """One step from the embedded last tokens [B, E], or [B * K, E] for K hypotheses of each
        sentence of `memory`.
        """

    @abstractmethod
    def unroll(
        self, embedded: Tensor, state: DecoderState, memory: Memory
    ) -> tuple[Tensor, Tensor]:
        """All steps from the embedded prefix [B, T, E]: vectors [B, T, R], attention weights [B, T,
        S].
        """

    def _attend(
        self, queries: Tensor, memory: Memory, attention: AttentionState
    ) -> tuple[Tensor, Tensor]:
        """Context [B, T, H_e] and weights [B, T, S] of all steps, in one call if the kind of
        attention allows it.
        """
        if not self.attention.sequential:
            attended = self.attention(queries, memory, attention)
            return attended.context, attended.weights
        steps = []
        for query in queries.split(1, 1):
            steps.append(self.attention(query, memory, attention))
            attention = steps[-1].state
        return torch.cat([step.context for step in steps], 1), torch.cat(
            [step.weights for step in steps], 1
        )


class LuongDecoder(Decoder):
    """s_t = RNN([E y_{t-1}; hbar_{t-1}], s_{t-1}), alpha_t from s_t (Luong 2015, 3.1; hbar_{t-1}
    only with input feeding, 3.3).

    Without input feeding the recurrence does not depend on attention: one call makes all its steps,
    all attention (except kinds whose weights depend on the step before), and all readouts.
    """

    def __init__(self, config: ModelConfig, dropout: Dropout) -> None:
        self.input_feeding = config.decoder.input_feeding
        fed = (
            (config.decoder.readout_size or config.decoder.hidden_size) if self.input_feeding else 0
        )
        super().__init__(config, config.embedding_size + fed, dropout)

    def start(self, state: RecurrentState, memory: Memory) -> DecoderState:
        first = super().start(state, memory)
        if not self.input_feeding:
            return first
        return replace(
            first, fed=state.hidden.new_zeros(state.hidden.shape[0], self.readout.output_size)
        )

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> StepOutput:
        top, recurrent = self.recurrent.step(embedded, state.fed, state.recurrent)
        attended = self.attention.step(top, memory, state.attention)
        vector = self.readout(top, embedded, attended.context)
        fed = vector if self.input_feeding else None
        return StepOutput(vector, attended.weights, DecoderState(recurrent, attended.state, fed))

    def unroll(
        self, embedded: Tensor, state: DecoderState, memory: Memory
    ) -> tuple[Tensor, Tensor]:
        if not self.input_feeding:
            states = self.recurrent(embedded, state.recurrent)  # [B, T, H_d]
            context, weights = self._attend(states, memory, state.attention)
            return self.readout(states, embedded, context), weights
        vectors, attentions = [], []
        for token in embedded.unbind(1):
            output = self.step(token, state, memory)
            state = output.state
            vectors.append(output.vector)
            attentions.append(output.attention)
        return torch.stack(vectors, 1), torch.stack(attentions, 1)


class BahdanauDecoder(Decoder):
    """alpha_t from s_{t-1}, s_t = RNN([E y_{t-1}; c_t], s_{t-1}) (Bahdanau 2015, 3.1); the query is
    the top layer's state.

    Args:
        context_below: whether the first layer reads the context.
    """

    def __init__(
        self, config: ModelConfig, dropout: Dropout, *, context_below: bool = True
    ) -> None:
        super().__init__(
            config,
            config.embedding_size + (config.encoder.output_size if context_below else 0),
            dropout,
        )

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> StepOutput:
        top, attended, state = self._attend_and_step(embedded, state, memory)
        return StepOutput(self.readout(top, embedded, attended.context), attended.weights, state)

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
        return self.readout(torch.stack(tops, 1), embedded, torch.stack(contexts, 1)), torch.stack(
            weights, 1
        )

    def _attend_and_step(
        self, embedded: Tensor, state: DecoderState, memory: Memory
    ) -> tuple[Tensor, Attended, DecoderState]:
        attended = self.attention.step(state.recurrent.top, memory, state.attention)
        top, recurrent = self.recurrent.step(embedded, attended.context, state.recurrent)
        return top, attended, DecoderState(recurrent, attended.state)


class ConditionalDecoder(BahdanauDecoder):
    """s'_t = RNN_1(E y_{t-1}, s_{t-1}), alpha_t from s'_t, s_t = RNN_2(c_t, s'_t): the conditional
    GRU (Sennrich 2017, 2), with any cell.

    So attention sees the last word, and the state sees the context of the current step. The two
    steps share one state.
    """

    def __init__(self, config: ModelConfig, dropout: Dropout) -> None:
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
    """h^1_t = RNN_1(E y_{t-1}, h^1_{t-1}), alpha_t from h^1_t, h^l_t = RNN_l([h^{l-1}_t; c_t],
    h^l_{t-1}) for l > 1, s_t = h^L_t.

    After Wu 2016 (3, fig. 1), with the context of the current step, as in the GNMT of
    github.com/NVIDIA/DeepLearningExamples; in the paper alpha_t comes from h^1_{t-1} (eq. 4). The
    states of the upper layers contain all contexts so far, but the first layer depends on none of
    them. So each layer makes all its steps in one call, and attention too, as in `LuongDecoder`.
    """

    BOTTOM, ABOVE = slice(1), slice(1, None)

    def __init__(self, config: ModelConfig, dropout: Dropout) -> None:
        super().__init__(config, config.embedding_size, dropout, context_above=True)

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> StepOutput:
        bottom, recurrent = self.recurrent.step(embedded, None, state.recurrent, layers=self.BOTTOM)
        attended = self.attention.step(bottom, memory, state.attention)
        top, recurrent = self.recurrent.step(bottom, None, recurrent, attended.context, self.ABOVE)
        vector = self.readout(top, embedded, attended.context)
        return StepOutput(vector, attended.weights, DecoderState(recurrent, attended.state))

    def unroll(
        self, embedded: Tensor, state: DecoderState, memory: Memory
    ) -> tuple[Tensor, Tensor]:
        bottom = self.recurrent(embedded, state.recurrent, layers=self.BOTTOM)  # [B, T, H_d]
        context, weights = self._attend(bottom, memory, state.attention)
        top = self.recurrent(bottom, state.recurrent, context, self.ABOVE)
        return self.readout(top, embedded, context), weights


DECODERS: dict[DecoderKind, Callable[[ModelConfig, Dropout], Decoder]] = {
    "luong": LuongDecoder,
    "bahdanau": BahdanauDecoder,
    "conditional": ConditionalDecoder,
    "gnmt": GnmtDecoder,
}
