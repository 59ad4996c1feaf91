"""Recurrent layers and their state, batch first everywhere."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt.config import Cell

RNNS: dict[Cell, type[nn.LSTM] | type[nn.GRU] | type[nn.RNN]] = {"lstm": nn.LSTM, "gru": nn.GRU, "elman": nn.RNN}


@dataclass(frozen=True)
class RecurrentState:
    """The state of a stack of layers between two steps.

    Attributes:
        hidden: [B, L, H], the lowest layer first.
        cell: [B, L, H], for LSTM only.
    """

    hidden: Tensor
    cell: Tensor | None = None

    @property
    def top(self) -> Tensor:
        """[B, H], the hidden state of the highest layer."""
        return self.hidden[:, -1]

    def select(self, rows: Tensor) -> "RecurrentState":
        """The state of the sentences `rows` [R], in that order."""
        return RecurrentState(self.hidden[rows], None if self.cell is None else self.cell[rows])


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
    """One-way layers for a decoder: the same weights run over a whole sequence in one call, or one step at a time."""

    def __init__(self, cell: Cell, input_size: int, hidden_size: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.cell: Cell = cell
        self.layers = nn.ModuleList(build_rnn(cell, input_size if i == 0 else hidden_size, hidden_size) for i in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor, state: RecurrentState) -> Tensor:
        """All steps at once: inputs [B, T, I], the state before the first step; returns the top layer's outputs [B, T, H]."""
        outputs = inputs
        for index, rnn in enumerate(self.layers):
            hidden = state.hidden[:, index].unsqueeze(0).contiguous()  # [1, B, H], as torch wants it
            if state.cell is None:
                outputs, _ = rnn(self._between(index, outputs), hidden)
            else:
                outputs, _ = rnn(self._between(index, outputs), (hidden, state.cell[:, index].unsqueeze(0).contiguous()))
        return outputs

    def step(self, inputs: Tensor, state: RecurrentState) -> RecurrentState:
        """One step: inputs [B, I]; returns the next state."""
        hiddens, cells, below = [], [], inputs
        for index, rnn in enumerate(self.layers):
            assert isinstance(rnn, nn.RNNBase)
            weights = _weights(rnn)
            below, hidden = self._between(index, below), state.hidden[:, index]
            if state.cell is not None:
                below, cell = torch.lstm_cell(below, (hidden, state.cell[:, index]), *weights)
                cells.append(cell)
            elif self.cell == "gru":
                below = torch.gru_cell(below, hidden, *weights)
            else:
                below = torch.rnn_tanh_cell(below, hidden, *weights)
            hiddens.append(below)
        return RecurrentState(torch.stack(hiddens, 1), torch.stack(cells, 1) if cells else None)

    def _between(self, index: int, inputs: Tensor) -> Tensor:
        return inputs if index == 0 else self.dropout(inputs)


def _weights(rnn: nn.RNNBase) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    input_weight, hidden_weight, input_bias, hidden_bias = rnn.all_weights[0]
    return input_weight, hidden_weight, input_bias, hidden_bias
