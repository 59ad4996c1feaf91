"""Recurrent layers, one class for each kind of cell, and stacks of them. Batch first everywhere.

A layer runs over whole sequences in one call, as in training, or one step at a time, as in search.
Both give the same states. To add a cell: a subclass of `RecurrentLayer`, and its row in `CELLS`.

Shapes: I input size, H units of one direction, H_o = H or, for both directions, 2 H; G gates.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from nmt.config.parts import CELLS
from nmt.config.schema import DecoderConfig, EncoderConfig
from nmt.data.batches import send

# the hidden state and the cell state (None for cells that have none), each [B, H_o]
LayerState = tuple[Tensor, Tensor | None]
ALL_LAYERS = slice(None)


class RecurrentLayer(nn.Module):
    """One layer, in one direction, or in both with their states concatenated.

    A subclass takes (input_size, hidden_size, bidirectional) and initializes its own weights. It
    may return padded positions as zeros, and padding never changes anything else. A layer of a
    graph has only one of the two methods.
    """

    has_cell_state = False  # whether there is a cell state beside the hidden state, as in an LSTM
    hidden_size: int

    def run(
        self, inputs: Tensor, lengths: Tensor | None = None, state: LayerState | None = None
    ) -> tuple[Tensor, LayerState]:
        """All steps.

        Args:
            inputs: [B, T, I].
            lengths: [B], on the CPU; None if no sequence is padded.
            state: before the first step; zeros if None.

        Returns:
            outputs [B, T, H_o], any numbers on padding, and the last state of each direction.
        """
        raise NotImplementedError

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        """The state after one step with inputs [B, I]; the output is its hidden state."""
        raise NotImplementedError


class FusedLayer(RecurrentLayer):
    """A layer of torch, the second base class, which runs over a sequence in one fused operation.

    Initialization by gate: orthogonal recurrent weights, Xavier input weights, and biases of 0.
    """

    gates: str  # a letter for each gate, in the order of the rows of the weights

    def __init__(self, input_size: int, hidden_size: int, bidirectional: bool = False) -> None:
        super().__init__(input_size, hidden_size, batch_first=True, bidirectional=bidirectional)
        for name, parameter in self.named_parameters():
            for gate in parameter.data.split(hidden_size):
                if name.startswith("weight_hh"):
                    nn.init.orthogonal_(gate)
                elif name.startswith("weight_ih"):
                    nn.init.xavier_uniform_(gate)
                else:
                    nn.init.zeros_(gate)

    def run(
        self, inputs: Tensor, lengths: Tensor | None = None, state: LayerState | None = None
    ) -> tuple[Tensor, LayerState]:
        if inputs.is_cuda and torch.is_autocast_enabled("cuda"):
            # cuDNN would compute in float16, whatever the precision of autocast (AutocastRNN.cpp).
            dtype = next(self.parameters()).dtype
            if state is not None:
                state = state[0].to(dtype), None if state[1] is None else state[1].to(dtype)
            with torch.autocast("cuda", enabled=False):
                return self.run(inputs.to(dtype), lengths, state)
        before = None
        if state is not None:
            parts = tuple(part.unsqueeze(0).contiguous() for part in state if part is not None)
            before = parts if self.has_cell_state else parts[0]  # each [1, B, H]
        if lengths is None or bool((lengths == inputs.shape[1]).all()):  # most batches of sources
            outputs, last = self(inputs, before)
        else:
            packed, last = self(_pack(inputs, lengths), before)
            outputs, _ = pad_packed_sequence(
                PackedSequence(packed.data, packed.batch_sizes),
                batch_first=True,
                total_length=inputs.shape[1],
            )
            outputs = outputs.index_select(0, packed.unsorted_indices)
        hidden, cell = last if self.has_cell_state else (last, None)
        return outputs, (
            _concatenate_directions(hidden),
            None if cell is None else _concatenate_directions(cell),
        )


class LSTM(FusedLayer, nn.LSTM):
    """Long short-term memory (Hochreiter & Schmidhuber 1997); forget gates start with bias 1."""

    has_cell_state, gates = True, "ifgo"

    def __init__(self, input_size: int, hidden_size: int, bidirectional: bool = False) -> None:
        super().__init__(input_size, hidden_size, bidirectional)
        for name, parameter in self.named_parameters():
            if name.startswith("bias_ih"):
                nn.init.ones_(parameter.data[hidden_size : 2 * hidden_size])

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        assert state[1] is not None
        return torch.lstm_cell(inputs, (state[0], state[1]), *self.all_weights[0])


class GRU(FusedLayer, nn.GRU):
    """Gated recurrent unit (Cho 2014), with the reset gate after the recurrent product."""

    gates = "rzn"

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        return torch.gru_cell(inputs, state[0], *self.all_weights[0]), None


class Elman(FusedLayer, nn.RNN):
    """h_t = tanh(W x_t + U h_{t-1} + b) (Elman 1990)."""

    gates = "h"

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        return torch.rnn_tanh_cell(inputs, state[0], *self.all_weights[0]), None


def _pack(inputs: Tensor, lengths: Tensor) -> PackedSequence:
    """As torch packs [B, T, I], but a GPU gets the order without a wait."""
    lengths, order = lengths.sort(descending=True)
    order = send(order, inputs.device)
    packed = pack_padded_sequence(inputs.index_select(0, order), lengths, batch_first=True)
    return PackedSequence(packed.data, packed.batch_sizes, order)


def _concatenate_directions(state: Tensor) -> Tensor:
    return state.transpose(0, 1).flatten(1)  # [directions, B, H] -> [B, directions * H]


class RecurrentState(NamedTuple):
    """The state of a stack of layers between two steps.

    Attributes:
        layers: the states [B, H] of all layers, the lowest first.
    """

    layers: tuple[LayerState, ...]

    @property
    def top(self) -> Tensor:
        """[B, H], the hidden state of the highest layer."""
        return self.layers[-1][0]


class RecurrentStack(nn.Module):
    """Layers of one kind: the same weights run over a whole sequence in one call, or step by step.

    The outputs of a layer may be normalized (Ba 2016; between layers, not in the gates, so that a
    layer can run fused), and from the second layer on its inputs may be added to them (He 2016).
    Neither changes the state for the layer's own next step.

    Args:
        input_size: I, of the first layer.
        context_size: of the context that all layers above the first read beside the outputs of the
            layer below; 0: none.
        bidirectional: read in both directions; such a stack has no `step`.
    """

    def __init__(
        self,
        config: EncoderConfig | DecoderConfig,
        input_size: int,
        dropout: nn.Dropout,
        context_size: int = 0,
        bidirectional: bool = False,
    ) -> None:
        super().__init__()
        cell, hidden_size = CELLS[config.cell].load(), config.hidden_size
        output_size = 2 * hidden_size if bidirectional else hidden_size
        sizes = [input_size] + [output_size + context_size] * (config.layers - 1)
        self.layers = nn.ModuleList(cell(size, hidden_size, bidirectional) for size in sizes)
        self.norms = nn.ModuleList(
            nn.LayerNorm(output_size) if config.layer_norm else nn.Identity() for _ in sizes
        )
        self.residual, self.dropout = config.residual, dropout

    def run(
        self,
        inputs: Tensor,
        state: RecurrentState | None = None,
        context: Tensor | None = None,
        layers: slice = ALL_LAYERS,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, list[LayerState]]:
        """All steps of some layers at once.

        Args:
            inputs: of the lowest of these layers: [B, T, I], or the outputs [B, T, H_o] of the
                layer below.
            state: of all layers, before the first step; zeros if None.
            context: [B, T, context_size].
            lengths: [B], on the CPU; None if no sequence is padded.

        Returns:
            the outputs [B, T, H_o] of the highest of these layers, and the last state of each.
        """
        outputs, last = inputs, []
        states = [None] * len(self.layers) if state is None else state.layers
        for index in range(len(self.layers))[layers]:
            layer, below = self.layers[index], outputs
            assert isinstance(layer, RecurrentLayer)
            if index:
                below = concatenate(self.dropout(below), context)
            above, after = layer.run(below, lengths, states[index])
            outputs = self._join(index, outputs, above)
            last.append(after)
        return outputs, last

    def step(
        self,
        inputs: Tensor,
        fed: Tensor | None,
        state: RecurrentState,
        context: Tensor | None = None,
        layers: slice = ALL_LAYERS,
    ) -> tuple[Tensor, RecurrentState]:
        """One step of some layers.

        Args:
            inputs: of the lowest of these layers: the embedded word [B, E], or the output [B, H] of
                the layer below.
            fed: another input [B, F] of the first layer.
            state: of all layers.
            context: [B, context_size].

        Returns:
            the output [B, H] of the highest of these layers, and the state of all layers after the
            step.
        """
        outputs, states = inputs, [*state.layers]
        for index in range(len(self.layers))[layers]:
            layer = self.layers[index]
            assert isinstance(layer, RecurrentLayer)
            below = (
                concatenate(self.dropout(outputs), context) if index else concatenate(outputs, fed)
            )
            states[index] = layer.step(below, states[index])
            outputs = self._join(index, outputs, states[index][0])
        return outputs, RecurrentState(tuple(states))

    def _join(self, index: int, below: Tensor, above: Tensor) -> Tensor:
        above = self.norms[index](above)
        return below + above if self.residual and index else above


def concatenate(inputs: Tensor, others: Tensor | None) -> Tensor:
    """[..., I] and, if not None, [..., F], side by side."""
    return inputs if others is None else torch.cat([inputs, others], -1)
