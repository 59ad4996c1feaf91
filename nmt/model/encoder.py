"""The encoder: reads the source, and gives one state per token and a summary of the sentence.

To add a kind: a subclass of `Encoder`, a row in `ENCODERS`, an entry of `EncoderKind` in the
configuration.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor, nn

from nmt.config.schema import EncoderConfig, EncoderKind
from nmt.model.layers import Dropout
from nmt.model.recurrent import CELLS, RecurrentLayer, RecurrentState, build_norms


@dataclass(frozen=True)
class Summary:
    """The whole sentence in one vector, for the bridge, and in place of attention where there is
    none.

    Attributes:
        vector: [B, H_e].
        states: the last state of each layer, H_e wide; None if the encoder is not recurrent.
    """

    vector: Tensor
    states: RecurrentState | None = None

    def layers(self) -> RecurrentState:
        """The last states; without any, one layer whose hidden state is the vector."""
        return self.states or RecurrentState(self.vector.unsqueeze(1))

    def select(self, rows: Tensor) -> "Summary":
        """The summaries of the sentences `rows` [R], in that order."""
        return Summary(self.vector[rows], None if self.states is None else self.states.select(rows))


@dataclass(frozen=True)
class Encoded:
    """An encoded batch.

    Attributes:
        values: [B, S, H_e], the encoder states h_j, any numbers on padding.
        summary: of each sentence.
    """

    values: Tensor
    summary: Summary


class Encoder(nn.Module, ABC):
    """Reads embedded source sentences; H_e is `EncoderConfig.output_size`."""

    def __init__(self, config: EncoderConfig, embedding_size: int, dropout: Dropout) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, embedded: Tensor, lengths: Tensor) -> Encoded:
        """Encode a batch so that padding changes nothing: a sentence gets the same states as it
        gets alone.

        Args:
            embedded: [B, S, E].
            lengths: [B], on the CPU, each at least 1.
        """


class RecurrentEncoder(Encoder):
    """Stacked recurrent layers, in one direction, or in both with the directions concatenated
    (Bahdanau 2015, 3.2).

    Outputs may be normalized and inputs added to them, as in `RecurrentStack`.
    """

    def __init__(self, config: EncoderConfig, embedding_size: int, dropout: Dropout) -> None:
        super().__init__(config, embedding_size, dropout)
        sizes = [embedding_size] + [config.output_size] * (config.layers - 1)
        self.layers = nn.ModuleList(
            CELLS[config.cell](size, config.hidden_size, config.bidirectional) for size in sizes
        )
        self.norms = build_norms(config.layer_norm, config.layers, config.output_size)
        self.residual, self.dropout = config.residual, dropout

    def forward(self, embedded: Tensor, lengths: Tensor) -> Encoded:
        outputs, states = embedded, []
        for index, layer in enumerate(self.layers):
            assert isinstance(layer, RecurrentLayer)
            above, last = layer.run(self.dropout(outputs) if index else outputs, lengths)
            above = self.norms[index](above)
            outputs = outputs + above if self.residual and index else above
            states.append(last)
        layers = RecurrentState.of_layers(states)
        return Encoded(outputs, Summary(layers.top, layers))


ENCODERS: dict[EncoderKind, type[Encoder]] = {"recurrent": RecurrentEncoder}


def build_encoder(config: EncoderConfig, embedding_size: int, dropout: Dropout) -> Encoder:
    """The encoder that the configuration names."""
    return ENCODERS[config.kind](config, embedding_size, dropout)
