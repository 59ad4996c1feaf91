"""The bridge: from the encoder's summary of a sentence to the decoder's first state."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from nmt.config.schema import BridgeName, ModelConfig
from nmt.model.encoder import Summary
from nmt.model.recurrent import CELLS, RecurrentState


class Bridge(nn.Module, ABC):
    """Makes the decoder's first state; layers are matched from the top when depths differ."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        decoder = config.decoder
        self.decoder_size, self.decoder_layers = decoder.hidden_size, decoder.layers
        self.has_cell_state = CELLS[decoder.cell].has_cell_state

    @abstractmethod
    def forward(self, summary: Summary) -> RecurrentState:
        """Hidden states [B, L_d, H_d], and cell states of this shape if the decoder's cell has
        them.
        """

    def sources(self, last: RecurrentState) -> list[int]:
        """For each decoder layer the encoder layer it starts from; a deeper decoder starts its
        lower layers from the lowest.
        """
        surplus = last.hidden.shape[1] - self.decoder_layers
        return [max(0, surplus + layer) for layer in range(self.decoder_layers)]


class CopyBridge(Bridge):
    """The last encoder state as it is, directions concatenated: H_e = H_d."""

    def forward(self, summary: Summary) -> RecurrentState:
        last = summary.layers()
        sources = self.sources(last)
        return RecurrentState(
            last.hidden[:, sources], None if last.cell is None else last.cell[:, sources]
        )


class DenseBridge(Bridge):
    """tanh(W [forward; backward] + b), one W per layer and per cell state.

    A cell state is made from the encoder's cell state, or from its hidden state if it has no cell
    state.
    """

    def __init__(self, config: ModelConfig, encoder_size: int | None = None) -> None:
        super().__init__(config)
        sizes = encoder_size or config.encoder.output_size, config.decoder.hidden_size
        self.hidden = nn.ModuleList(nn.Linear(*sizes) for _ in range(self.decoder_layers))
        self.cell = nn.ModuleList(
            nn.Linear(*sizes) for _ in range(self.decoder_layers if self.has_cell_state else 0)
        )

    def forward(self, summary: Summary) -> RecurrentState:
        return self.project_all(summary.layers())

    def project_all(self, last: RecurrentState) -> RecurrentState:
        """Of the encoder's last states [B, L_e, H_e]."""
        sources = self.sources(last)
        hidden = _project(self.hidden, sources, last.hidden)
        if not self.has_cell_state:
            return RecurrentState(hidden)
        return RecurrentState(
            hidden, _project(self.cell, sources, last.hidden if last.cell is None else last.cell)
        )


class BackwardBridge(DenseBridge):
    """tanh(W h_1 + b) of the backward direction's last state, which has read the whole sentence
    (Bahdanau 2015, A.2.2).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, config.encoder.hidden_size)
        self.size = config.encoder.hidden_size

    def forward(self, summary: Summary) -> RecurrentState:
        last = summary.layers()
        cell = None if last.cell is None else last.cell[..., self.size :]
        return self.project_all(RecurrentState(last.hidden[..., self.size :], cell))


class ZeroBridge(Bridge):
    """Zeros: the decoder sees the source only through attention."""

    def forward(self, summary: Summary) -> RecurrentState:
        zeros = summary.vector.new_zeros(
            summary.vector.shape[0], self.decoder_layers, self.decoder_size
        )
        return RecurrentState(zeros, zeros if self.has_cell_state else None)


def _project(layers: nn.ModuleList, sources: list[int], state: Tensor) -> Tensor:
    return torch.stack(
        [
            torch.tanh(layer(state[:, source]))
            for layer, source in zip(layers, sources, strict=True)
        ],
        1,
    )


BRIDGES: dict[BridgeName, type[Bridge]] = {
    "copy": CopyBridge,
    "dense": DenseBridge,
    "backward": BackwardBridge,
    "zero": ZeroBridge,
}


def build_bridge(config: ModelConfig) -> Bridge:
    """The bridge that the configuration names."""
    return BRIDGES[config.bridge](config)
