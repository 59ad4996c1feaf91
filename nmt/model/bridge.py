"""The bridge: from the encoder's last state to the decoder's first."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from nmt.config.schema import BridgeName, ModelConfig
from nmt.model.recurrent import RecurrentState


class Bridge(nn.Module, ABC):
    """Makes the decoder's first state; layers are matched from the top when depths differ."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        encoder, decoder = config.encoder, config.decoder
        self.decoder_size, self.decoder_layers, self.has_cell = decoder.hidden_size, decoder.layers, decoder.cell == "lstm"
        # Decoder layer i starts from encoder layer sources[i]; a deeper decoder starts its lower layers from the lowest one.
        self.sources = [max(0, encoder.layers - decoder.layers + layer) for layer in range(decoder.layers)]

    @abstractmethod
    def forward(self, final: RecurrentState) -> RecurrentState:
        """[B, L_e, H_e] -> [B, L_d, H_d]."""


class Copy(Bridge):
    """The last encoder state as it is, directions concatenated: H_e = H_d."""

    def forward(self, final: RecurrentState) -> RecurrentState:
        return RecurrentState(final.hidden[:, self.sources], None if final.cell is None else final.cell[:, self.sources])


class Dense(Bridge):
    """tanh(W [forward; backward] + b), one W per layer and per cell state; a cell state starts from the encoder's, if any."""

    def __init__(self, config: ModelConfig, encoder_size: int | None = None) -> None:
        super().__init__(config)
        sizes = encoder_size or config.encoder.output_size, config.decoder.hidden_size
        self.hidden = nn.ModuleList(nn.Linear(*sizes) for _ in self.sources)
        self.cell = nn.ModuleList(nn.Linear(*sizes) for _ in self.sources if self.has_cell)

    def forward(self, final: RecurrentState) -> RecurrentState:
        cell = self._project(self.cell, final.hidden if final.cell is None else final.cell) if self.has_cell else None
        return RecurrentState(self._project(self.hidden, final.hidden), cell)

    def _project(self, layers: nn.ModuleList, state: Tensor) -> Tensor:
        return torch.stack([torch.tanh(layer(state[:, source])) for layer, source in zip(layers, self.sources, strict=True)], 1)


class Backward(Dense):
    """tanh(W h_1 + b) of the backward direction's last state, which has read the whole sentence (Bahdanau 2015, A.2.2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, config.encoder.hidden_size)
        self.size = config.encoder.hidden_size

    def forward(self, final: RecurrentState) -> RecurrentState:
        cell = None if final.cell is None else final.cell[..., self.size :]
        return super().forward(RecurrentState(final.hidden[..., self.size :], cell))


class Zero(Bridge):
    """Nothing crosses but through attention."""

    def forward(self, final: RecurrentState) -> RecurrentState:
        zeros = final.hidden.new_zeros(final.hidden.shape[0], self.decoder_layers, self.decoder_size)
        return RecurrentState(zeros, zeros if self.has_cell else None)


BRIDGES: dict[BridgeName, type[Bridge]] = {"copy": Copy, "dense": Dense, "backward": Backward, "zero": Zero}


def build_bridge(config: ModelConfig) -> Bridge:
    """The bridge that the configuration names."""
    return BRIDGES[config.bridge](config)
