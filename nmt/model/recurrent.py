"""Recurrent layers and their state, batch first everywhere."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt.config.schema import Cell, DecoderConfig
from nmt.model.dropout import Dropout
from nmt.model.embedding import Word
from nmt.model.inference.cells import CellStep
from nmt.model.inference.sharing import LayOut, with_parts

RNNS: dict[Cell, type[nn.LSTM] | type[nn.GRU] | type[nn.RNN]] = {"lstm": nn.LSTM, "gru": nn.GRU, "elman": nn.RNN}
CELLS: dict[Cell, Any] = {"lstm": torch.lstm_cell, "gru": torch.gru_cell, "elman": torch.rnn_tanh_cell}


@dataclass(frozen=True)
class RecurrentState:
    """The state of a stack of layers between two steps.

    Attributes:
        hidden: [B, L, H], the lowest layer first.
        cell: [B, L, H], for LSTM only.
        noise: [B, L - 1, H], what is multiplied between the layers at each step, in training with variational dropout only.
    """

    hidden: Tensor
    cell: Tensor | None = None
    noise: Tensor | None = None

    @property
    def top(self) -> Tensor:
        """[B, H], the hidden state of the highest layer."""
        return self.hidden[:, -1]

    def noise_below(self, layer: int, *, sequence: bool = False) -> Tensor | None:
        """The noise on what enters `layer`: [B, H], or for a whole sequence [B, 1, H]."""
        if self.noise is None:
            return None
        return self.noise[:, layer - 1 : layer] if sequence else self.noise[:, layer - 1]

    def select(self, rows: Tensor) -> "RecurrentState":
        """The state of the sentences `rows` [R], in that order."""
        cell, noise = (None if part is None else part[rows] for part in (self.cell, self.noise))
        return RecurrentState(self.hidden[rows], cell, noise)


def build_rnn(cell: Cell, input_size: int, hidden_size: int, bidirectional: bool = False) -> nn.RNNBase:
    """One recurrent layer. Stacks are made of these, with `nn.Dropout` between them: cuDNN's own dropout keeps a hidden state."""
    rnn = RNNS[cell](input_size, hidden_size, batch_first=True, bidirectional=bidirectional)
    for name, parameter in rnn.named_parameters():
        if name.startswith("weight_hh"):
            for gate in parameter.data.split(hidden_size):
                nn.init.orthogonal_(gate)
        elif name.startswith("weight_ih"):
            for gate in parameter.data.split(hidden_size):
                nn.init.xavier_uniform_(gate)
        else:
            nn.init.zeros_(parameter)
            if cell == "lstm" and name.startswith(
                "bias_ih"
            ):  # the forget gate starts open: memory is learned to be dropped, not kept
                nn.init.ones_(parameter.data[hidden_size : 2 * hidden_size])
    return rnn


def run_padded(rnn: nn.RNNBase, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """Run one layer over a padded batch so that padding changes nothing.

    Args:
        inputs: [B, S, I].
        lengths: [B], on the CPU.

    Returns:
        outputs [B, S, H] (zero on padding), last hidden state [B, H] and cell state [B, H] (None but for LSTM);
        H counts both directions, concatenated.
    """
    if bool((lengths == inputs.shape[1]).all()):  # batches are made of equal lengths where possible: the fused path, unpacked
        outputs, final = rnn(inputs)
    else:
        packed, final = rnn(pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False))
        outputs, _ = pad_packed_sequence(packed, batch_first=True, total_length=inputs.shape[1])
    hidden, cell = final if isinstance(final, tuple) else (final, None)
    return outputs, _concatenate_directions(hidden), None if cell is None else _concatenate_directions(cell)


def _concatenate_directions(state: Tensor) -> Tensor:
    return state.transpose(0, 1).flatten(1)  # [directions, B, H] -> [B, directions * H]


class RecurrentStack(nn.Module):
    """One-way layers for a decoder: the same weights run over a whole sequence in one call, or one step at a time.

    What leaves a layer may be normalised (Ba 2016; between layers, not in the gates, so that a layer runs fused), and what enters
    it may be added to that (He 2016), from the second layer on. Neither touches what the layer hands to its own next step.
    """

    steps: nn.ModuleList | None  # of the layers, where they are packed

    def __init__(self, config: DecoderConfig, input_size: int, dropout: Dropout) -> None:
        super().__init__()
        size, layers = config.hidden_size, range(config.layers)
        self.cell: Cell = config.cell
        self.layers = nn.ModuleList(build_rnn(config.cell, input_size if i == 0 else size, size) for i in layers)
        self.norms = build_norms(config.layer_norm, config.layers, size)
        self.residual, self.dropout = config.residual, dropout
        self.register_module("steps", None)

    def start(self, state: RecurrentState) -> RecurrentState:
        """The state before the first step, with the dropout between layers that all steps share, if they do."""
        return replace(state, noise=self.dropout.noise(state.hidden[:, 1:]))

    def forward(self, inputs: Tensor, state: RecurrentState) -> Tensor:
        """All steps at once: inputs [B, T, I], the state before the first step; returns the top layer's outputs [B, T, H]."""
        outputs = inputs
        for index, rnn in enumerate(self.layers):
            hidden = state.hidden[:, index].unsqueeze(0).contiguous()  # [1, B, H], as torch wants it
            first = hidden if state.cell is None else (hidden, state.cell[:, index].unsqueeze(0).contiguous())
            above, _ = rnn(outputs if index == 0 else self.dropout(outputs, state.noise_below(index, sequence=True)), first)
            outputs = self._join(index, outputs, above)
        return outputs

    def step(self, word: Word, fed: Tensor | None, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """One step: a word enters, and beside it `fed` [B, F]; returns the top layer's output [B, H] and the next state."""
        outputs = word.embedded if fed is None else torch.cat([word.embedded, fed], -1)
        hiddens: list[Tensor] = []
        cells: list[Tensor] = []
        for index in range(len(self.layers)):
            below = outputs if index == 0 else self.dropout(outputs, state.noise_below(index))
            hidden, cell = state.hidden[:, index], None if state.cell is None else state.cell[:, index]
            if self.steps is None:
                above, cell = self._step_layer(index, below, hidden, cell)
            elif index == 0 and word.gates is not None:
                above, cell = self.steps[index](word.gates, fed, hidden, cell)
            else:
                above, cell = self.steps[index](None, below, hidden, cell)
            hiddens.append(above)
            cells += [] if cell is None else [cell]
            outputs = self._join(index, outputs, above)
        return outputs, replace(state, hidden=torch.stack(hiddens, 1), cell=torch.stack(cells, 1) if cells else None)

    def pack(self, lay_out: LayOut, known: int = 0) -> "RecurrentStack":
        """The same with its matrices laid out for `step`; the first `known` inputs come as what they add to the gates."""
        steps = (CellStep(self.cell, _weights(rnn), lay_out, 0 if index else known) for index, rnn in enumerate(self.layers))
        return with_parts(self, steps=nn.ModuleList(steps))

    @property
    def gates_size(self) -> int:
        """G * H of the first layer."""
        return len(_weights(self.layers[0])[0])

    def gates_of(self, embeddings: Tensor) -> Tensor:
        """What words add to the gates of the first layer, with its bias: of their embeddings [V, E], [V, G * H]."""
        weight, _, bias, _ = _weights(self.layers[0])
        return torch.addmm(bias, embeddings, weight[:, : embeddings.shape[1]].t())

    def _step_layer(self, index: int, below: Tensor, hidden: Tensor, cell: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if cell is None:
            return CELLS[self.cell](below, hidden, *_weights(self.layers[index])), None
        above, cell = CELLS[self.cell](below, (hidden, cell), *_weights(self.layers[index]))
        return above, cell

    def _join(self, index: int, below: Tensor, above: Tensor) -> Tensor:
        above = self.norms[index](above)
        return below + above if self.residual and index else above


def build_norms(layer_norm: bool, layers: int, size: int) -> nn.ModuleList:
    """What each layer's outputs pass through: layer normalisation (Ba 2016), or nothing."""
    return nn.ModuleList(nn.LayerNorm(size) if layer_norm else nn.Identity() for _ in range(layers))


def _weights(rnn: nn.Module) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of input and hidden state, and the biases of both."""
    assert isinstance(rnn, nn.RNNBase)
    input_weight, hidden_weight, input_bias, hidden_bias = rnn.all_weights[0]
    return input_weight, hidden_weight, input_bias, hidden_bias
