"""The encoder: reads the source, one state per token."""

import torch
from torch import Tensor, nn

from nmt.config.schema import EncoderConfig
from nmt.model.dropout import Dropout
from nmt.model.recurrent import RecurrentState, build_norms, build_rnn, run_padded


class Encoder(nn.Module):
    """Stacked recurrent layers, one way or both ways with the directions concatenated (Bahdanau 2015, 3.2).

    What leaves a layer may be normalised, and what enters it added to that, as in `RecurrentStack`.
    A sentence encoded in a padded batch equals the same sentence encoded alone.
    """

    def __init__(self, config: EncoderConfig, embedding_size: int, dropout: Dropout) -> None:
        super().__init__()
        sizes = [embedding_size] + [config.output_size] * (config.layers - 1)
        self.layers = nn.ModuleList(build_rnn(config.cell, size, config.hidden_size, config.bidirectional) for size in sizes)
        self.norms = build_norms(config.layer_norm, config.layers, config.output_size)
        self.residual, self.dropout = config.residual, dropout

    def forward(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, RecurrentState]:
        """Encode a batch.

        Args:
            embedded: [B, S, E].
            lengths: [B], on the CPU, each at least 1.

        Returns:
            values [B, S, H_e], and the last state of each layer: hidden (and cell) [B, L, H_e].
        """
        outputs, hiddens, cells = embedded, [], []
        for index, rnn in enumerate(self.layers):
            assert isinstance(rnn, nn.RNNBase)
            above, hidden, cell = run_padded(rnn, self.dropout(outputs) if index else outputs, lengths)
            above = self.norms[index](above)
            outputs = outputs + above if self.residual and index else above
            hiddens.append(hidden)
            if cell is not None:
                cells.append(cell)
        return outputs, RecurrentState(torch.stack(hiddens, 1), torch.stack(cells, 1) if cells else None)
