"""The whole model. Tensors in, tensors out: no files and no vocabularies.

Shapes, here and in all of `nmt.model`: B batch, S source length, T target length, V target
vocabulary, E embedding size, L layers, H_e encoder state size (both directions), H_d decoder state
size, R readout size, A attention size. Batch is dimension 0. Masks are True on real tokens.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.config.parts import BRIDGES, DECODERS
from nmt.config.schema import ModelConfig
from nmt.data.batches import send
from nmt.model.attention import Memory
from nmt.model.decoder import Decoder, DecoderOutput, DecoderState
from nmt.model.encoder import Bridge, Encoder
from nmt.model.lexical_bias import Additions, LexicalBias, Translations
from nmt.model.output import Output, Vectors

# Large, so that words and not biases dominate the first encoder states: attention finds the right
# positions several times sooner.
EMBEDDING_DEVIATION = 0.5


class Embedding(nn.Embedding):
    """Ids to vectors, with dropout.

    Args:
        is_output: the output layer uses the same matrix. Then it starts small, so that the first
            logits are small, and is scaled up where it embeds words (Vaswani 2017, 3.4).
    """

    def __init__(
        self, vocabulary_size: int, size: int, dropout: float, *, is_output: bool = False
    ) -> None:
        super().__init__(vocabulary_size, size)
        deviation = size**-0.5 if is_output else EMBEDDING_DEVIATION
        nn.init.normal_(self.weight, std=deviation)
        self.scale = EMBEDDING_DEVIATION / deviation
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """Ids [B, T], or of one step [B], to vectors [..., E]."""
        return self.dropout(super().forward(ids) * self.scale)  # type: ignore[no-any-return]


class Decoded(NamedTuple):
    """The decoder's results for a batch.

    Attributes:
        vectors: [B, T, R], for the output layer.
        attention: [B, T, S].
        translations: of the source words; None if the model has no lexical bias.
        lexical_bias: [B, T, U].
    """

    vectors: Tensor
    attention: Tensor
    translations: Translations | None = None
    lexical_bias: Tensor | None = None

    def at(self, positions: Tensor) -> Vectors:
        """For the output layer, at N positions of the flattened [B, T]."""
        vectors = self.vectors.flatten(0, 1)[positions]
        if self.translations is None or self.lexical_bias is None:
            return Vectors(vectors)
        ids = self.translations.ids[positions // self.vectors.shape[1]]
        return Vectors(vectors, Additions(ids, self.lexical_bias.flatten(0, 1)[positions]))


class Seq2Seq(nn.Module):
    """Encoder, bridge, attention decoder and output layer.

    Args:
        config: sizes and kinds.
        src_vocabulary_size, tgt_vocabulary_size: counts, special tokens included.
    """

    def __init__(
        self, config: ModelConfig, src_vocabulary_size: int, tgt_vocabulary_size: int
    ) -> None:
        super().__init__()

        src_rate, tgt_rate = (
            config.dropout if rate is None else rate
            for rate in (config.src_embedding_dropout, config.tgt_embedding_dropout)
        )
        self.dropout = nn.Dropout(config.dropout)
        self.encoder_output_dropout = nn.Dropout(config.encoder_output_dropout)
        size, is_tied = config.embedding_size, config.tie_embeddings != "none"
        self.tgt_embedding = Embedding(tgt_vocabulary_size, size, tgt_rate, is_output=is_tied)
        self.src_embedding = self.tgt_embedding
        if config.tie_embeddings != "all":
            self.src_embedding = Embedding(src_vocabulary_size, size, src_rate)
        self.encoder = Encoder(config.encoder, size, self.dropout)
        self.bridge: Bridge = BRIDGES[config.bridge].load()(config)
        self.decoder: Decoder = DECODERS[config.decoder.kind].load()(config, self.dropout)
        self.lexical_bias: LexicalBias | None = None
        if config.lexical_bias:
            self.lexical_bias = LexicalBias(
                src_vocabulary_size, tgt_vocabulary_size, config.lexical_bias, config.lexical_words
            )
        self.output = Output(
            self.decoder.readout.output_size,
            tgt_vocabulary_size,
            self.tgt_embedding if is_tied else None,
        )

    @property
    def device(self) -> torch.device:
        """The device that inputs must be on."""
        return self.src_embedding.weight.device

    def encode(self, src: Tensor, src_lengths: Tensor) -> Memory:
        """Read the source.

        Args:
            src: [B, S] ids. src_lengths: [B], on the CPU.
        """
        values, summary = self.encoder(self.src_embedding(src), src_lengths)
        positions = torch.arange(src.shape[1], device=src.device)
        mask = positions < send(src_lengths, src.device).unsqueeze(1)  # [B, S]
        memory = self.decoder.attention.build_memory(
            self.encoder_output_dropout(values), mask, summary
        )
        if self.lexical_bias is None:
            return memory
        return memory._replace(translations=self.lexical_bias.look_up(src))

    def start(self, memory: Memory) -> DecoderState:
        """The state before the first step, one row per sentence."""
        return self.decoder.start(self.bridge(memory.summary), memory)

    def step(self, ids: Tensor, state: DecoderState, memory: Memory) -> DecoderOutput:
        """One step, in evaluation mode.

        Args:
            ids: the last token of each hypothesis, [B], or [B * K] for K hypotheses of each of the
                B sentences in `memory`.
            state: one row per hypothesis. memory: one row per sentence.
        """
        output = self.decoder.step(self.tgt_embedding(ids), state, memory)
        return output._replace(vector=self._for_output(output, memory))

    def _for_output(self, step: DecoderOutput, memory: Memory) -> Vectors:
        """A decoder's vectors [B * K, R] of K hypotheses each, with the lexical bias."""
        if self.lexical_bias is None or memory.translations is None:
            return Vectors(step.vector)
        translations = memory.translations
        # [B, K, U]: the hypotheses of a sentence side by side, as if they were steps
        attention = step.attention.unflatten(0, (translations.ids.shape[0], -1))
        values = self.lexical_bias(attention, translations)
        ids = translations.ids.unsqueeze(1).expand_as(values)
        return Vectors(step.vector, Additions(ids.flatten(0, 1), values.flatten(0, 1)))

    def log_probs(self, vectors: Vectors) -> Tensor:
        """The log-probabilities [N, V] of all words, from the vectors of N rows."""
        return self.output.log_probs(*vectors)

    def forward(
        self,
        src: Tensor,
        src_lengths: Tensor,
        tgt_in: Tensor,
        forcing_mask: Tensor | None = None,
    ) -> Decoded:
        """Decode a batch with teacher forcing.

        Args:
            src: [B, S] ids. src_lengths: [B], on the CPU.
            tgt_in: [B, T] ids, <sos> first.
            forcing_mask: [B, T], on the CPU, False where the decoder is fed its own last output
                instead of `tgt_in` (scheduled sampling, Bengio 2015); None if it is always fed
                `tgt_in`.
        """
        memory = self.encode(src, src_lengths)
        decoded = self._decode(tgt_in, forcing_mask, self.start(memory), memory)
        if self.lexical_bias is None or memory.translations is None:
            return decoded
        return decoded._replace(
            translations=memory.translations,
            lexical_bias=self.lexical_bias(decoded.attention, memory.translations),
        )

    def _decode(
        self, tgt_in: Tensor, forcing_mask: Tensor | None, state: DecoderState, memory: Memory
    ) -> Decoded:
        if forcing_mask is None:
            return self._unroll(tgt_in, state, memory)
        # Sentences that are always fed the reference need no loop over the steps.
        forced = forcing_mask[:, 1:].all(1)
        if not forced.any():
            return self._sample(tgt_in, forcing_mask, state, memory)
        rows, others = (
            send(part.nonzero().squeeze(1), tgt_in.device) for part in (forced, ~forced)
        )
        decoded = self._unroll(tgt_in[rows], rows_of(state, rows), rows_of(memory, rows))
        if len(others):
            mask = forcing_mask[~forced]
            state, memory = rows_of(state, others), rows_of(memory, others)
            sampled = self._sample(tgt_in[others], mask, state, memory)
            order = torch.cat([rows, others]).argsort()
            decoded = Decoded(
                torch.cat([decoded.vectors, sampled.vectors])[order],
                torch.cat([decoded.attention, sampled.attention])[order],
            )
        return decoded

    def _unroll(self, tgt_in: Tensor, state: DecoderState, memory: Memory) -> Decoded:
        vectors, attention = self.decoder.unroll(self.tgt_embedding(tgt_in), state, memory)
        return Decoded(self.dropout(vectors), attention)

    def _sample(
        self, tgt_in: Tensor, forcing_mask: Tensor, state: DecoderState, memory: Memory
    ) -> Decoded:
        """Step by step, fed the most probable word where `forcing_mask` is False."""
        ids = tgt_in[:, 0]
        outputs: list[DecoderOutput] = []
        # At each position, the rows that are fed the decoder's own output: one copy for all.
        rows = [is_sampled.nonzero().squeeze(1) for is_sampled in (~forcing_mask).unbind(1)]
        sampled_rows = send(torch.cat(rows), tgt_in.device).split([len(part) for part in rows])
        for position, sampled in enumerate(sampled_rows):
            if position > 0:
                ids = tgt_in[:, position].clone()
                with torch.no_grad():
                    last = self._for_output(outputs[-1], memory)
                    ids[sampled] = self.output.best(*rows_of(last, sampled))
            output = self.decoder.step(self.tgt_embedding(ids), state, memory)
            state = output.state
            outputs.append(output._replace(vector=self.dropout(output.vector)))
        # The output layer was cast without gradients; autocast of torch before 2.11 would use that
        # cast again for the loss.
        torch.clear_autocast_cache()
        return Decoded(
            torch.stack([output.vector for output in outputs], 1),
            torch.stack([output.attention for output in outputs], 1),
        )


def rows_of(part: Any, rows: Tensor) -> Any:
    """A memory, a state or vectors with the rows [B'] of all its tensors, in that order."""
    if isinstance(part, Tensor):
        return part[rows]
    if not isinstance(part, tuple):  # a number, or None
        return part
    parts = [rows_of(each, rows) for each in part]
    return type(part)(*parts) if hasattr(part, "_fields") else tuple(parts)


def parameters_by_part(model: nn.Module) -> tuple[dict[str, int], int]:
    """The number of parameters of each part, and of the model, where tied ones count once."""

    def count(part: nn.Module) -> int:
        return sum(parameter.numel() for parameter in part.parameters())

    counts = {name: count(part) for name, part in model.named_children()}
    return {name: number for name, number in counts.items() if number}, count(model)
