"""Recurrent layers, one class for each kind of cell, and the stacks of layers in decoders. Batch
first everywhere.

A layer runs over whole sequences in one call, as in training, or one step at a time, as in search.
Both give the same states. To add a cell: a subclass of `RecurrentLayer`, a row in `CELLS`, an entry
of `Cell` in the configuration, and of `CELLS_WITH_CELL_STATE` if it has a cell state. A subclass of
`FusedLayer` also needs a row in `UPDATES` of inference/steps.py.

Shapes: I input size, H units of one direction, H_o = H or, for both directions, 2 H.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt.config.schema import Cell, DecoderConfig
from nmt.model.layers import Dropout, send

LayerState = tuple[
    Tensor, Tensor | None
]  # the hidden state and the cell state (None for cells that have none), each [B, H_o]
ALL_LAYERS = slice(None)


class RecurrentLayer(nn.Module, ABC):
    """One layer, in one direction, or in both with their states concatenated.

    A subclass takes (input_size, hidden_size, bidirectional) and initializes its own weights. It
    may return padded positions as zeros, and padding never changes anything else.
    """

    has_cell_state = False  # whether there is a cell state beside the hidden state, as in an LSTM
    hidden_size: int

    @abstractmethod
    def run(
        self, inputs: Tensor, lengths: Tensor | None = None, state: LayerState | None = None
    ) -> tuple[Tensor, LayerState]:
        """All steps.

        Args:
            inputs: [B, T, I].
            lengths: [B], on the CPU; None if no sequence is padded.
            state: before the first step; zeros if None.

        Returns:
            outputs [B, T, H_o], 0 on padding, and the last state of each direction.
        """

    @abstractmethod
    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        """One step of one direction: inputs [B, I], and the state before it. The output is the new
        hidden state.
        """


class FusedLayer(RecurrentLayer):
    """A layer of torch, which runs over a sequence in one fused operation.

    Initialization by gate: orthogonal recurrent weights, Xavier input weights, and biases of 0.
    """

    def run(
        self, inputs: Tensor, lengths: Tensor | None = None, state: LayerState | None = None
    ) -> tuple[Tensor, LayerState]:
        initial_state = None if state is None else self._to_torch(state)
        if lengths is None or bool(
            (lengths == inputs.shape[1]).all()
        ):  # most batches have sources of one length
            outputs, last = self(inputs, initial_state)
        else:
            packed, last = self(
                pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False),
                initial_state,
            )
            outputs, _ = pad_packed_sequence(packed, batch_first=True, total_length=inputs.shape[1])
        hidden, cell = last if isinstance(last, tuple) else (last, None)
        return outputs, (
            _concatenate_directions(hidden),
            None if cell is None else _concatenate_directions(cell),
        )

    @property
    def weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of the first direction, gate above gate: input [G H, I], recurrent [G H, H], and the bias
        [G H] of each.
        """
        assert isinstance(self, nn.RNNBase)
        input_weight, _, input_bias, hidden_bias = self.all_weights[0]
        hidden_weight = self._flat_weights[1]  # with dropout inside `drop_weights`
        assert hidden_weight is not None
        return input_weight, hidden_weight, input_bias, hidden_bias

    def _initialize(self) -> None:
        for name, parameter in self.named_parameters():
            gates = parameter.data.split(self.hidden_size)
            if name.startswith("weight_hh"):
                for gate in gates:
                    nn.init.orthogonal_(gate)
            elif name.startswith("weight_ih"):
                for gate in gates:
                    nn.init.xavier_uniform_(gate)
            else:
                nn.init.zeros_(parameter)

    def _to_torch(self, state: LayerState) -> Tensor | tuple[Tensor, Tensor]:
        """The state [B, H] of one direction as torch expects it, [1, B, H]."""
        hidden, cell = (None if part is None else part.unsqueeze(0).contiguous() for part in state)
        assert hidden is not None
        return hidden if cell is None else (hidden, cell)


@contextmanager
def drop_weights(module: nn.Module, p: float) -> Iterator[None]:
    """DropConnect (Wan 2013) on the recurrent weights of the layers of torch in `module`, in
    training only.

    Each weight is 0 with probability p; the others are scaled up. All steps inside the context have
    the same mask, so that layers run fused (Merity 2018, 2).
    """
    layers = (
        [layer for layer in module.modules() if isinstance(layer, nn.RNNBase)]
        if module.training and p
        else []
    )
    originals = [layer._flat_weights for layer in layers]
    for layer, weights in zip(layers, originals, strict=True):
        layer._flat_weights = [
            functional.dropout(weight, p)
            if weight is not None and name.startswith("weight_hh")
            else weight
            for name, weight in zip(layer._flat_weights_names, weights, strict=True)
        ]
    try:
        with (
            warnings.catch_warnings()
        ):  # on a GPU, torch warns that it copies these weights for each call
            warnings.filterwarnings("ignore", message="RNN module weights")
            yield
    finally:
        for layer, weights in zip(layers, originals, strict=True):
            layer._flat_weights = weights


class LSTM(FusedLayer, nn.LSTM):
    """Long short-term memory (Hochreiter & Schmidhuber 1997) with forget gates, which start open:
    their bias is 1.
    """

    has_cell_state = True

    def __init__(self, input_size: int, hidden_size: int, bidirectional: bool = False) -> None:
        nn.LSTM.__init__(
            self, input_size, hidden_size, batch_first=True, bidirectional=bidirectional
        )
        self._initialize()
        for name, parameter in self.named_parameters():
            if name.startswith("bias_ih"):
                nn.init.ones_(parameter.data[hidden_size : 2 * hidden_size])

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        assert state[1] is not None
        hidden, cell = torch.lstm_cell(inputs, (state[0], state[1]), *self.weights)
        return hidden, cell


class GRU(FusedLayer, nn.GRU):
    """Gated recurrent unit (Cho 2014), with the reset gate after the recurrent product."""

    def __init__(self, input_size: int, hidden_size: int, bidirectional: bool = False) -> None:
        nn.GRU.__init__(
            self, input_size, hidden_size, batch_first=True, bidirectional=bidirectional
        )
        self._initialize()

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        return torch.gru_cell(inputs, state[0], *self.weights), None


class Elman(FusedLayer, nn.RNN):
    """h_t = tanh(W x_t + U h_{t-1} + b) (Elman 1990)."""

    def __init__(self, input_size: int, hidden_size: int, bidirectional: bool = False) -> None:
        nn.RNN.__init__(
            self, input_size, hidden_size, batch_first=True, bidirectional=bidirectional
        )
        self._initialize()

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        return torch.rnn_tanh_cell(inputs, state[0], *self.weights), None


class SRU(RecurrentLayer):
    """Simple recurrent unit (Lei 2018, eq. 1-4): all matrix products are made for the whole
    sequence at once.

    f_t = sigma(W_f x_t + v_f * c_{t-1} + b_f)          r_t = sigma(W_r x_t + v_r * c_{t-1} + b_r)
    c_t = f_t * c_{t-1} + (1 - f_t) * W x_t             h_t = r_t * c_t + (1 - r_t) * alpha x_t

    alpha = sqrt(3) keeps the variance of x_t. x_t is projected to H units where its size differs.
    c_t alone is recurrent.
    """

    has_cell_state = True

    def __init__(self, input_size: int, hidden_size: int, bidirectional: bool = False) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.directions = nn.ModuleList(
            SRUDirection(input_size, hidden_size) for _ in range(2 if bidirectional else 1)
        )

    def run(
        self, inputs: Tensor, lengths: Tensor | None = None, state: LayerState | None = None
    ) -> tuple[Tensor, LayerState]:
        mask, last = (
            None,
            torch.full((len(inputs),), inputs.shape[1] - 1),
        )  # the last position of each sequence
        if lengths is not None and bool((lengths < inputs.shape[1]).any()):
            last = lengths - 1
            mask = torch.arange(inputs.shape[1], device=inputs.device) <= send(
                last, inputs.device
            ).unsqueeze(1)
        initial_cells = (
            [None, None]
            if state is None or state[1] is None
            else state[1].split(self.hidden_size, 1)
        )
        rows, last = torch.arange(inputs.shape[0], device=inputs.device), send(last, inputs.device)
        outputs, hiddens, cells = [], [], []
        for direction, backward, initial_cell in zip(
            self.directions, (False, True), initial_cells, strict=False
        ):
            hidden, cell = direction(inputs, mask, initial_cell, backward=backward)
            outputs.append(hidden)
            hiddens.append(hidden[:, 0] if backward else hidden[rows, last])
            cells.append(cell)
        return torch.cat(outputs, 2), (torch.cat(hiddens, 1), torch.cat(cells, 1))

    def step(self, inputs: Tensor, state: LayerState) -> LayerState:
        (direction,) = self.directions
        assert isinstance(direction, SRUDirection)
        assert state[1] is not None
        return direction.step(inputs, state[1])


class SRUDirection(nn.Module):
    """The weights of one direction: `project` is W, W_f, W_r and, if x_t is projected, that matrix,
    one above the other.

    The weights start uniform with variance 1 / I, v and b at 0.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.project = nn.Linear(
            input_size, (3 if input_size == hidden_size else 4) * hidden_size, bias=False
        )
        nn.init.uniform_(self.project.weight, -sqrt(3 / input_size), sqrt(3 / input_size))
        self.forget_cell, self.reset_cell, self.forget_bias, self.reset_bias = (
            nn.Parameter(torch.zeros(hidden_size)) for _ in range(4)
        )

    def forward(
        self, inputs: Tensor, mask: Tensor | None, initial_cell: Tensor | None, *, backward: bool
    ) -> tuple[Tensor, Tensor]:
        """All steps: hidden states [B, T, H], 0 where `mask` [B, T] is False, and the last cell
        state [B, H].
        """
        candidates, forgets, resets, highways = self.compute_gates(inputs)
        cell = (
            torch.zeros_like(candidates[:, 0])
            if initial_cell is None
            else initial_cell.to(candidates.dtype)
        )
        previous_cells, cells = [cell] * inputs.shape[1], [cell] * inputs.shape[1]
        candidate_steps, forget_steps = candidates.unbind(1), forgets.unbind(1)
        for t in reversed(range(inputs.shape[1])) if backward else range(inputs.shape[1]):
            previous_cells[t] = cell
            next_cell = self.next_cell(candidate_steps[t], forget_steps[t], cell)
            cell = cells[t] = (
                next_cell if mask is None else next_cell.where(mask[:, t].unsqueeze(1), cell)
            )
        hidden = self.compute_output(
            highways, resets, torch.stack(previous_cells, 1), torch.stack(cells, 1)
        )
        return hidden if mask is None else hidden * mask.unsqueeze(2), cell

    def step(self, inputs: Tensor, cell: Tensor) -> LayerState:
        """One step: inputs [B, I], and the cell state [B, H] before it."""
        candidate, forget, reset, highway = self.compute_gates(inputs)
        cell = cell.to(candidate.dtype)
        next_cell = self.next_cell(candidate, forget, cell)
        return self.compute_output(highway, reset, cell, next_cell), next_cell

    def compute_gates(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """W x, W_f x + b_f, W_r x + b_r and alpha x, each [..., H], in the precision of the
        weights.
        """
        dtype = self.forget_bias.dtype
        candidate, forget, reset, *projected = (
            self.project(inputs).to(dtype).split(self.hidden_size, -1)
        )
        highway = projected[0] if projected else inputs.to(dtype)
        return candidate, forget + self.forget_bias, reset + self.reset_bias, sqrt(3) * highway

    def next_cell(self, candidate: Tensor, forget: Tensor, cell: Tensor) -> Tensor:
        """c_t."""
        return torch.lerp(candidate, cell, torch.addcmul(forget, self.forget_cell, cell).sigmoid())

    def compute_output(
        self, highway: Tensor, reset: Tensor, previous_cell: Tensor, cell: Tensor
    ) -> Tensor:
        """h_t."""
        return torch.lerp(
            highway, cell, torch.addcmul(reset, self.reset_cell, previous_cell).sigmoid()
        )


def _concatenate_directions(state: Tensor) -> Tensor:
    return state.transpose(0, 1).flatten(1)  # [directions, B, H] -> [B, directions * H]


CELLS: dict[Cell, type[RecurrentLayer]] = {"lstm": LSTM, "gru": GRU, "elman": Elman, "sru": SRU}


@dataclass(frozen=True)
class RecurrentState:
    """The state of a stack of layers between two steps.

    Attributes:
        hidden: [B, L, H], the lowest layer first.
        cell: [B, L, H], for cells that have a cell state.
        noise: [B, L - 1, H], the dropout mask between the layers that all steps share, in training
            with variational dropout.
    """

    hidden: Tensor
    cell: Tensor | None = None
    noise: Tensor | None = None

    @classmethod
    def of_layers(cls, states: list[LayerState], noise: Tensor | None = None) -> "RecurrentState":
        """The states of all layers, the lowest first."""
        cells = [cell for _, cell in states if cell is not None]
        return cls(
            torch.stack([hidden for hidden, _ in states], 1),
            torch.stack(cells, 1) if cells else None,
            noise,
        )

    @property
    def top(self) -> Tensor:
        """[B, H], the hidden state of the highest layer."""
        return self.hidden[:, -1]

    def layer(self, index: int) -> LayerState:
        """The hidden and the cell state [B, H] of one layer."""
        return self.hidden[:, index], None if self.cell is None else self.cell[:, index]

    def layers(self) -> list[LayerState]:
        """The states of all layers, the lowest first."""
        return [self.layer(index) for index in range(self.hidden.shape[1])]

    def noise_below(self, layer: int, *, sequence: bool = False) -> Tensor | None:
        """The dropout mask for the input of `layer`: [B, H], or for a whole sequence [B, 1, H]."""
        if self.noise is None:
            return None
        return self.noise[:, layer - 1 : layer] if sequence else self.noise[:, layer - 1]

    def select(self, rows: Tensor) -> "RecurrentState":
        """The state of the sentences `rows` [R], in that order."""
        cell, noise = (None if part is None else part[rows] for part in (self.cell, self.noise))
        return RecurrentState(self.hidden[rows], cell, noise)


class RecurrentStack(nn.Module):
    """One-directional layers for a decoder: the same weights run over a whole sequence in one call,
    or one step at a time.

    The outputs of a layer may be normalized (Ba 2016; between layers, not in the gates, so that a
    layer can run fused), and from the second layer on its inputs may be added to them (He 2016).
    Neither changes the state for the layer's own next step.

    Args:
        input_size: I, of the first layer.
        context_size: of the context that all layers above the first read beside the outputs of the
            layer below; 0: none.
    """

    def __init__(
        self, config: DecoderConfig, input_size: int, dropout: Dropout, context_size: int = 0
    ) -> None:
        super().__init__()
        sizes = [input_size] + [config.hidden_size + context_size] * (config.layers - 1)
        self.layers = nn.ModuleList(CELLS[config.cell](size, config.hidden_size) for size in sizes)
        self.norms = build_norms(config.layer_norm, config.layers, config.hidden_size)
        self.residual, self.dropout = config.residual, dropout

    def start(self, state: RecurrentState) -> RecurrentState:
        """The state before the first step, with the dropout masks that all steps share."""
        return replace(state, noise=self.dropout.noise(state.hidden[:, 1:]))

    def forward(
        self,
        inputs: Tensor,
        state: RecurrentState,
        context: Tensor | None = None,
        layers: slice = ALL_LAYERS,
    ) -> Tensor:
        """All steps of some layers at once.

        Args:
            inputs: of the lowest of these layers: [B, T, I], or the outputs [B, T, H] of the layer
                below.
            state: of all layers, before the first step.
            context: [B, T, context_size].

        Returns:
            the outputs [B, T, H] of the highest of these layers.
        """
        outputs = inputs
        for index in range(len(self.layers))[layers]:
            layer, below = self.layers[index], outputs
            assert isinstance(layer, RecurrentLayer)
            if index:
                below = concatenate(
                    self.dropout(below, state.noise_below(index, sequence=True)), context
                )
            above, _ = layer.run(below, state=state.layer(index))
            outputs = self._join(index, outputs, above)
        return outputs

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
        outputs, states = inputs, state.layers()
        for index in range(len(self.layers))[layers]:
            layer, below = self.layers[index], outputs
            assert isinstance(layer, RecurrentLayer)
            below = (
                concatenate(self.dropout(below, state.noise_below(index)), context)
                if index
                else concatenate(below, fed)
            )
            states[index] = layer.step(below, states[index])
            outputs = self._join(index, outputs, states[index][0])
        return outputs, RecurrentState.of_layers(states, state.noise)

    def _join(self, index: int, below: Tensor, above: Tensor) -> Tensor:
        above = self.norms[index](above)
        return below + above if self.residual and index else above


def concatenate(inputs: Tensor, others: Tensor | None) -> Tensor:
    """[..., I] and, if not None, [..., F], side by side."""
    return inputs if others is None else torch.cat([inputs, others], -1)


def build_norms(layer_norm: bool, layers: int, size: int) -> nn.ModuleList:
    """For each layer's outputs: layer normalization (Ba 2016), or the identity."""
    return nn.ModuleList(nn.LayerNorm(size) if layer_norm else nn.Identity() for _ in range(layers))
