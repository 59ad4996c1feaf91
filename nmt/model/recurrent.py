"""Stacks of recurrent layers for decoders, and their state."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from nmt.config.schema import DecoderConfig
from nmt.model.cells import CELLS, LayerState, RecurrentLayer
from nmt.model.dropout import Dropout


@dataclass(frozen=True)
class RecurrentState:
    """The state of a stack of layers between two steps.

    Attributes:
        hidden: [B, L, H], the lowest layer first.
        cell: [B, L, H], for cells that have a cell state.
        noise: [B, L - 1, H], the dropout mask between the layers that all steps share, in training with variational dropout.
    """

    hidden: Tensor
    cell: Tensor | None = None
    noise: Tensor | None = None

    @classmethod
    def of_layers(cls, states: list[LayerState], noise: Tensor | None = None) -> "RecurrentState":
        """The states of all layers, the lowest first."""
        cells = [cell for _, cell in states if cell is not None]
        return cls(torch.stack([hidden for hidden, _ in states], 1), torch.stack(cells, 1) if cells else None, noise)

    @property
    def top(self) -> Tensor:
        """[B, H], the hidden state of the highest layer."""
        return self.hidden[:, -1]

    def layer(self, index: int) -> LayerState:
        """The hidden and the cell state [B, H] of one layer."""
        return self.hidden[:, index], None if self.cell is None else self.cell[:, index]

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
    """One-directional layers for a decoder: the same weights run over a whole sequence in one call, or one step at a time.

    The outputs of a layer may be normalized (Ba 2016; between layers, not in the gates, so that a layer can run fused), and from
    the second layer on its inputs may be added to them (He 2016). Neither changes the state for the layer's own next step.
    """

    def __init__(self, config: DecoderConfig, input_size: int, dropout: Dropout) -> None:
        super().__init__()
        sizes = [input_size] + [config.hidden_size] * (config.layers - 1)
        self.layers = nn.ModuleList(CELLS[config.cell](size, config.hidden_size) for size in sizes)
        self.norms = build_norms(config.layer_norm, config.layers, config.hidden_size)
        self.residual, self.dropout = config.residual, dropout

    def start(self, state: RecurrentState) -> RecurrentState:
        """The state before the first step, with the dropout masks that all steps share."""
        return replace(state, noise=self.dropout.noise(state.hidden[:, 1:]))

    def forward(self, inputs: Tensor, state: RecurrentState) -> Tensor:
        """All steps at once: inputs [B, T, I] and the state before the first step; the top layer's outputs [B, T, H]."""
        outputs = inputs
        for index, layer in enumerate(self.layers):
            assert isinstance(layer, RecurrentLayer)
            below = self.dropout(outputs, state.noise_below(index, sequence=True)) if index else outputs
            above, _ = layer.run(below, state=state.layer(index))
            outputs = self._join(index, outputs, above)
        return outputs

    def step(self, embedded: Tensor, fed: Tensor | None, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """One step: the embedded word [B, E] and another input `fed` [B, F]; the top layer's output [B, H] and the next state."""
        outputs, states = embedded if fed is None else torch.cat([embedded, fed], -1), []
        for index, layer in enumerate(self.layers):
            assert isinstance(layer, RecurrentLayer)
            below = self.dropout(outputs, state.noise_below(index)) if index else outputs
            states.append(layer.step(below, state.layer(index)))
            outputs = self._join(index, outputs, states[-1][0])
        return outputs, RecurrentState.of_layers(states, state.noise)

    def _join(self, index: int, below: Tensor, above: Tensor) -> Tensor:
        above = self.norms[index](above)
        return below + above if self.residual and index else above


def build_norms(layer_norm: bool, layers: int, size: int) -> nn.ModuleList:
    """For each layer's outputs: layer normalization (Ba 2016), or the identity."""
    return nn.ModuleList(nn.LayerNorm(size) if layer_norm else nn.Identity() for _ in range(layers))
