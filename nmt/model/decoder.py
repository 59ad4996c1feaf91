"""The decoders: Luong attends after the recurrent step, Bahdanau before it.

`unroll` runs over a known prefix, as in training, and `step` one token at a time, as in search. Both give the same vectors.
"""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.config import DecoderKind, ModelConfig
from nmt.model.attention import Memory, build_attention
from nmt.model.readout import build_readout
from nmt.model.recurrent import RecurrentStack, RecurrentState


@dataclass(frozen=True)
class DecoderState:
    """What one step hands to the next.

    Attributes:
        recurrent: s_t, all layers.
        fed: [B, R], the last attentional vector, with input feeding only.
    """

    recurrent: RecurrentState
    fed: Tensor | None = None

    def select(self, rows: Tensor) -> "DecoderState":
        """The state of the rows [R], in that order."""
        return DecoderState(self.recurrent.select(rows), None if self.fed is None else self.fed[rows])


@dataclass(frozen=True)
class StepOutput:
    """One step.

    Attributes:
        vector: [B, R], what the output layer scores the vocabulary with.
        attention: [B, S], the weights; 0 on padding.
        state: for the next step.
    """

    vector: Tensor
    attention: Tensor
    state: DecoderState


class Decoder(nn.Module):
    """What both decoders share. `input_size` is the width of the recurrent layers' input."""

    def __init__(self, config: ModelConfig, input_size: int) -> None:
        super().__init__()
        decoder, context_size = config.decoder, config.encoder.output_size
        self.attention = build_attention(config.attention, decoder.hidden_size, context_size)
        self.recurrent = RecurrentStack(decoder.cell, input_size, decoder.hidden_size, decoder.layers, config.dropout)
        self.readout = build_readout(decoder, config.embedding_size, context_size)

    def start(self, state: RecurrentState) -> DecoderState:
        """The state before the first step, from the bridge's."""
        return DecoderState(state)

    @abstractmethod
    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> StepOutput:
        """One step from the embedded last token [B, E]."""

    @abstractmethod
    def unroll(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Tensor, Tensor]:
        """All steps from the embedded known prefix [B, T, E]: vectors [B, T, R], attention weights [B, T, S]."""


class LuongDecoder(Decoder):
    """s_t = RNN([E y_{t-1}; hbar_{t-1}], s_{t-1}), alpha_t from s_t (Luong 2015, 3.1; hbar_{t-1} with input feeding, 3.3).

    Without input feeding no step depends on the attention of the one before: all of them are one recurrent call, one batched
    attention and one readout.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.input_feeding = config.decoder.input_feeding
        fed = (config.decoder.readout_size or config.decoder.hidden_size) if self.input_feeding else 0
        super().__init__(config, config.embedding_size + fed)

    def start(self, state: RecurrentState) -> DecoderState:
        if not self.input_feeding:
            return DecoderState(state)
        return DecoderState(state, state.hidden.new_zeros(state.hidden.shape[0], self.readout.output_size))

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> StepOutput:
        inputs = embedded if state.fed is None else torch.cat([embedded, state.fed], -1)
        recurrent = self.recurrent.step(inputs, state.recurrent)
        context, weights = self.attention(recurrent.top.unsqueeze(1), memory)
        vector = self.readout(recurrent.top, embedded, context.squeeze(1))
        return StepOutput(vector, weights.squeeze(1), DecoderState(recurrent, vector if self.input_feeding else None))

    def unroll(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Tensor, Tensor]:
        if not self.input_feeding:
            states = self.recurrent(embedded, state.recurrent)  # [B, T, H_d]
            context, weights = self.attention(states, memory)
            return self.readout(states, embedded, context), weights
        vectors, attentions = [], []
        for token in embedded.unbind(1):
            output = self.step(token, state, memory)
            state = output.state
            vectors.append(output.vector)
            attentions.append(output.attention)
        return torch.stack(vectors, 1), torch.stack(attentions, 1)


class BahdanauDecoder(Decoder):
    """alpha_t from s_{t-1}, s_t = RNN([E y_{t-1}; c_t], s_{t-1}) (Bahdanau 2015, 3.1); the query is the top layer's state."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, config.embedding_size + config.encoder.output_size)

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> StepOutput:
        recurrent, context, weights = self._attend_and_step(embedded, state.recurrent, memory)
        return StepOutput(self.readout(recurrent.top, embedded, context), weights, DecoderState(recurrent))

    def unroll(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Tensor, Tensor]:
        recurrent, tops, contexts, attentions = state.recurrent, [], [], []
        for token in embedded.unbind(1):
            recurrent, context, weights = self._attend_and_step(token, recurrent, memory)
            tops.append(recurrent.top)
            contexts.append(context)
            attentions.append(weights)
        # Only the recurrence needs the loop: the readout is made once for all steps.
        return self.readout(torch.stack(tops, 1), embedded, torch.stack(contexts, 1)), torch.stack(attentions, 1)

    def _attend_and_step(self, embedded: Tensor, state: RecurrentState, memory: Memory) -> tuple[RecurrentState, Tensor, Tensor]:
        context, weights = self.attention(state.top.unsqueeze(1), memory)
        context = context.squeeze(1)  # [B, H_e]
        return self.recurrent.step(torch.cat([embedded, context], -1), state), context, weights.squeeze(1)


DECODERS: dict[DecoderKind, type[LuongDecoder] | type[BahdanauDecoder]] = {"luong": LuongDecoder, "bahdanau": BahdanauDecoder}
