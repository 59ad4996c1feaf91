"""The encoder gives one state per source token; a bridge makes the decoder's first state.

To add a bridge: a subclass of `Bridge`, and its row in `BRIDGES`.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.config.parts import CELLS
from nmt.config.schema import EncoderConfig, ModelConfig
from nmt.model.recurrent import LayerState, RecurrentStack, RecurrentState


class Summary(NamedTuple):
    """A whole sentence: for the bridge, and in place of attention where there is none.

    Attributes:
        vector: [B, H_e], the last state of the highest layer.
        states: the last states of all layers, H_e wide.
    """

    vector: Tensor
    states: RecurrentState


class Encoder(RecurrentStack):
    """Recurrent layers in one direction, or in both, concatenated (Bahdanau 2015, 3.2).

    H_e is `EncoderConfig.output_size`.
    """

    def __init__(self, config: EncoderConfig, embedding_size: int, dropout: nn.Dropout) -> None:
        super().__init__(config, embedding_size, dropout, bidirectional=config.bidirectional)

    def forward(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Summary]:
        """Encode a batch so that padding changes nothing: each sentence as if it were alone.

        Args:
            embedded: [B, S, E].
            lengths: [B], on the CPU, each at least 1.

        Returns:
            the encoder states h_j [B, S, H_e], any numbers on padding.
        """
        values, last = self.run(embedded, lengths=lengths)
        states = RecurrentState(tuple(last))
        return values, Summary(states.top, states)


class Bridge(nn.Module, ABC):
    """Makes the decoder's first state; layers are matched from the top when depths differ."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        decoder = config.decoder
        self.decoder_size, self.decoder_layers = decoder.hidden_size, decoder.layers
        self.has_cell_state = CELLS[decoder.cell].load().has_cell_state

    @abstractmethod
    def forward(self, summary: Summary) -> RecurrentState:
        """Hidden states [B, H_d], and cell states if the decoder's cell has them, of each layer."""

    def sources(self, last: RecurrentState) -> list[LayerState]:
        """For each decoder layer the state of the encoder layer it starts from.

        A deeper decoder starts its lower layers from the lowest.
        """
        surplus = len(last.layers) - self.decoder_layers
        return [last.layers[max(0, surplus + layer)] for layer in range(self.decoder_layers)]


class CopyBridge(Bridge):
    """The last encoder state as it is, directions concatenated: H_e = H_d."""

    def forward(self, summary: Summary) -> RecurrentState:
        return RecurrentState(tuple(self.sources(summary.states)))


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
        layers = list[LayerState]()
        for index, (hidden, cell) in enumerate(self.sources(summary.states)):
            # First the hidden state: where several layers read one state, its gradient is a sum in
            # this order, and the order decides the last bits.
            hidden_state, cell_state = torch.tanh(self.hidden[index](hidden)), None
            if self.has_cell_state:
                cell_state = torch.tanh(self.cell[index](hidden if cell is None else cell))
            layers.append((hidden_state, cell_state))
        return RecurrentState(tuple(layers))


class BackwardBridge(DenseBridge):
    """tanh(W h_1 + b) of the backward direction's last state (Bahdanau 2015, A.2.2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, config.encoder.hidden_size)
        self.size = config.encoder.hidden_size

    def forward(self, summary: Summary) -> RecurrentState:
        backward = tuple(
            (hidden[:, self.size :], None if cell is None else cell[:, self.size :])
            for hidden, cell in summary.states.layers
        )
        return super().forward(Summary(summary.vector, RecurrentState(backward)))


class ZeroBridge(Bridge):
    """Zeros: the decoder sees the source only through attention."""

    def forward(self, summary: Summary) -> RecurrentState:
        # `len` would be a constant of an exported graph
        zeros = summary.vector.new_zeros(summary.vector.shape[0], self.decoder_size)
        layer = zeros, zeros if self.has_cell_state else None
        return RecurrentState((layer,) * self.decoder_layers)
