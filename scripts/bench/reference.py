"""The plain training loop of the tutorials, as a baseline: clear and slow.

The encoder reads the padding too. The decoder runs step by step; at each step it projects the
encoder states for the attention score again and computes the whole vocabulary, padding included.
The logits of all steps stay in memory. Sizes are those of the configuration.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.config.schema import Config, ModelConfig
from nmt.data.batches import Batch, build_batch
from nmt.data.corpus import Corpus
from nmt.text.vocabulary import PAD

RNNS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class ReferenceModel(nn.Module):
    """Encoder, Luong decoder with `general` or `additive` attention score, and output layer, as in
    the tutorials.
    """

    def __init__(
        self, config: ModelConfig, src_vocabulary_size: int, tgt_vocabulary_size: int
    ) -> None:
        super().__init__()
        encoder, decoder, attention = config.encoder, config.decoder, config.attention
        values, states, vector = (
            encoder.output_size,
            decoder.hidden_size,
            decoder.readout_size or decoder.hidden_size,
        )
        size = states if attention.score == "general" else attention.size or states
        self.input_feeding, self.additive = decoder.input_feeding, attention.score == "additive"
        self.vector_size = vector
        self.src_embedding = nn.Embedding(
            src_vocabulary_size, config.embedding_size, padding_idx=PAD
        )
        self.tgt_embedding = nn.Embedding(
            tgt_vocabulary_size, config.embedding_size, padding_idx=PAD
        )
        self.encoder = RNNS[encoder.cell](
            config.embedding_size,
            encoder.hidden_size,
            batch_first=True,
            bidirectional=encoder.bidirectional,
        )
        width = config.embedding_size + (vector if decoder.input_feeding else 0)
        self.decoder = RNNS[decoder.cell](width, states, batch_first=True)
        self.bridge = nn.ModuleList(
            nn.Linear(values, states) for _ in range(2 if decoder.cell == "lstm" else 1)
        )
        self.keys = nn.Linear(values, size, bias=self.additive)
        self.query = nn.Linear(states, size, bias=False) if self.additive else nn.Identity()
        self.v = nn.Linear(size, 1, bias=False) if self.additive else None
        self.combine = nn.Linear(values + states, vector, bias=False)
        self.output = nn.Linear(vector, tgt_vocabulary_size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, batch: Batch) -> Tensor:
        """Logits [B, T, V], step by step."""
        values, final = self.encoder(self.dropout(self.src_embedding(batch.src)))
        mask = batch.src != PAD
        state = self._bridge(final)
        vector = values.new_zeros(len(batch.src), 1, self.vector_size)
        logits = []
        for position in range(batch.tgt_in.shape[1]):
            inputs = self.dropout(
                self.tgt_embedding(batch.tgt_in[:, position : position + 1])
            )  # [B, 1, E]
            query, state = self.decoder(
                torch.cat([inputs, vector], -1) if self.input_feeding else inputs, state
            )
            scores = self._score(query, self.keys(values)).masked_fill(
                ~mask.unsqueeze(1), float("-inf")
            )  # [B, 1, S]
            context = scores.softmax(-1) @ values
            vector = torch.tanh(self.combine(torch.cat([context, query], -1)))
            logits.append(self.output(self.dropout(vector)))
        return torch.cat(logits, 1)

    def _score(self, query: Tensor, keys: Tensor) -> Tensor:
        if self.v is None:
            return query @ keys.transpose(1, 2)
        scores: Tensor = self.v(torch.tanh(self.query(query) + keys)).transpose(1, 2)
        return scores

    def _bridge(self, final: Tensor | tuple[Tensor, Tensor]) -> Tensor | tuple[Tensor, ...]:
        """The decoder's first state: tanh of a projection of the encoder's last state, [1, B, H_d]
        each.
        """
        parts = final if isinstance(final, tuple) else (final,)
        states = tuple(
            torch.tanh(layer(part.transpose(0, 1).flatten(1))).unsqueeze(0)
            for layer, part in zip(self.bridge, parts, strict=True)
        )
        return states if isinstance(final, tuple) else states[0]


def plan(corpus: Corpus, config: Config, size: int, epoch: int) -> Iterator[NDArray[np.int64]]:
    """Random batches of `size` pairs, epoch after epoch; pairs of different lengths are padded
    together.
    """
    while True:
        order = np.random.default_rng([config.seed, epoch]).permutation(len(corpus))
        yield from np.split(order, range(size, len(order), size))
        epoch += 1


def read(corpus: Corpus, indices: NDArray[np.int64]) -> Batch:
    """One batch as padded tensors."""
    return build_batch([corpus.src[i] for i in indices], [corpus.tgt[i] for i in indices])
