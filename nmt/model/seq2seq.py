"""The whole model. Tensors in, tensors out: it knows no files and no vocabularies.

Shapes, here and in all of `nmt.model`: B batch, S source length, T target length, V target vocabulary, E embedding size, L layers,
H_e encoder state size (both directions), H_d decoder state size, R readout size, A attention size. Batch is dimension 0.
Masks are True on real tokens.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.config.schema import ModelConfig, Precision
from nmt.model.attention import Memory
from nmt.model.bridge import build_bridge
from nmt.model.decoder import DECODERS, DecoderState
from nmt.model.device import send
from nmt.model.dropout import Dropout
from nmt.model.embedding import Embedding
from nmt.model.encoder import Encoder
from nmt.model.inference import int8
from nmt.model.inference.packed import PackedLinear
from nmt.model.inference.sharing import LayOut, laid_out, with_parts
from nmt.model.output import build_output
from nmt.model.topk import ThresholdFn
from nmt.model.translation_model import StepOutput, TranslationModel

LAYOUTS: dict[Precision, LayOut] = {"float32": PackedLinear.of, "int8": int8.Int8Linear.of}
MOST_KNOWN = 1 << 26  # numbers in the table of what words add to the gates: 256 MB


@dataclass(frozen=True)
class Decoded:
    """A decoder's run over a batch.

    Attributes:
        vectors: [B, T, R], for the output layer.
        attention: [B, T, S].
    """

    vectors: Tensor
    attention: Tensor

    def interleave(self, rows: Tensor, other: "Decoded", other_rows: Tensor) -> "Decoded":
        """One batch of two: this one's sentences go to `rows`, the other's to `other_rows`."""
        order = torch.cat([rows, other_rows]).argsort()
        return Decoded(torch.cat([self.vectors, other.vectors])[order], torch.cat([self.attention, other.attention])[order])


class Seq2Seq(TranslationModel):
    """Encoder, bridge, attention decoder and output layer.

    Args:
        config: sizes and kinds.
        src_vocabulary_size, tgt_vocabulary_size: counts, special tokens included.
    """

    def __init__(self, config: ModelConfig, src_vocabulary_size: int, tgt_vocabulary_size: int) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout, config.variational_dropout)
        tied, shared = config.tie_embeddings != "none", config.tie_embeddings == "all"
        self.tgt_embedding = Embedding(tgt_vocabulary_size, config, self.dropout, is_output=tied)
        self.src_embedding = self.tgt_embedding if shared else Embedding(src_vocabulary_size, config, self.dropout)
        self.encoder = Encoder(config.encoder, config.embedding_size, self.dropout)
        self.bridge = build_bridge(config)
        self.decoder = DECODERS[config.decoder.kind](config, self.dropout)
        vectors = self.decoder.readout.output_size
        self.output = build_output(config, vectors, tgt_vocabulary_size, self.tgt_embedding if tied else None)

    @property
    def device(self) -> torch.device:
        return self.src_embedding.weight.device

    @torch.no_grad()
    def pack(self, precision: Precision = "float32") -> "Seq2Seq":
        """This model as it is now, laid out to be fast: to search with, not to train. What it can it shares.

        Recurrence, readout and output layer are; the encoder, which reads a sentence once, stays as it is.

        Args:
            precision: what the matrices are rounded to. What words add to the gates is not; it is known beforehand.

        Raises:
            ConfigError: it cannot be done here.
        """
        if precision == "int8":
            int8.check_available(self.device)
        elif self.device.type != "cpu":
            return self
        embedding, lay_out = self.tgt_embedding, LAYOUTS[precision]
        known = embedding.num_embeddings * self.decoder.recurrent.gates_size <= MOST_KNOWN
        return with_parts(
            self,
            tgt_embedding=embedding.with_gates(self.decoder.recurrent.gates_of) if known else embedding,
            decoder=self.decoder.pack(lay_out, embedding.embedding_dim if known else 0),
            output=laid_out(self.output, lay_out),
        )

    def restrict(self, ids: Tensor) -> "Seq2Seq":
        """This model for the target words `ids` [v] alone, numbered in that order: to search with, not to train."""
        return with_parts(self, tgt_embedding=self.tgt_embedding.restrict(ids), output=self.output.restrict(ids))

    def encode(self, src: Tensor, src_lengths: Tensor) -> Memory:
        """Read the source.

        Args:
            src: [B, S] ids. src_lengths: [B], on the CPU.
        """
        values, final = self.encoder(self.src_embedding(src), src_lengths)
        mask = torch.arange(src.shape[1], device=src.device) < send(src_lengths, src.device).unsqueeze(1)  # [B, S]
        return self.decoder.attention.read(values, mask, final)

    def start(self, memory: Memory) -> DecoderState:
        """The decoder's state before its first step."""
        return self.decoder.start(self.bridge(memory.final), memory)

    def step(self, ids: Tensor, state: DecoderState, memory: Memory) -> StepOutput:
        """One step after the tokens `ids`, in evaluation mode: [B], or [B * K] for K hypotheses of each sentence of `memory`."""
        return self.decoder.step(self.tgt_embedding.read(ids), state, memory)

    def compute_logits(self, vectors: Tensor) -> Tensor:
        """What follows a step's vectors [.., R]: [.., V], log-probabilities up to a number for each row."""
        return self.output.compute_logits(vectors)

    def topk_log_probs(self, vectors: Tensor, k: int, threshold: ThresholdFn) -> tuple[Tensor, Tensor]:
        """The likeliest words after a step's vectors, as the output layer has it."""
        return self.output.topk_log_probs(vectors, k, threshold)

    def forward(self, src: Tensor, src_lengths: Tensor, tgt_in: Tensor, forcing_mask: Tensor | None = None) -> Decoded:
        """Run over a batch with teacher forcing.

        Args:
            src: [B, S] ids. src_lengths: [B], on the CPU.
            tgt_in: [B, T] ids, <sos> first.
            forcing_mask: [B, T], on the CPU, False where the decoder is fed its own last output in place of `tgt_in`
                (scheduled sampling, Bengio 2015); None if it is fed `tgt_in` throughout.
        """
        memory = self.encode(src, src_lengths)
        state = self.start(memory)
        if forcing_mask is None:
            return self._unroll(tgt_in, state, memory)
        known = forcing_mask[:, 1:].all(1)  # sentences that are fed the reference throughout need no outputs on the way
        if not known.any():
            return self._sample(tgt_in, forcing_mask, state, memory)
        mixed = (~known).nonzero().squeeze(1)
        rows, others = send(known.nonzero().squeeze(1), src.device), send(mixed, src.device)
        decoded = self._unroll(tgt_in[rows], state.select(rows), memory.select(rows))
        if len(others):
            sampled = self._sample(tgt_in[others], forcing_mask[mixed], state.select(others), memory.select(others))
            decoded = decoded.interleave(rows, sampled, others)
        return decoded

    def _unroll(self, tgt_in: Tensor, state: DecoderState, memory: Memory) -> Decoded:
        vectors, attention = self.decoder.unroll(self.tgt_embedding(tgt_in), state, memory)
        return Decoded(self.dropout(vectors), attention)

    def _sample(self, tgt_in: Tensor, forcing_mask: Tensor, state: DecoderState, memory: Memory) -> Decoded:
        ids, new = tgt_in[:, 0], memory.values.new_empty
        embedding_noise = self.dropout.noise(new(len(ids), self.tgt_embedding.embedding_dim))
        vector_noise = self.dropout.noise(new(len(ids), self.decoder.readout.output_size))
        vectors: list[Tensor] = []
        attentions: list[Tensor] = []
        # At each position, the rows that are fed the decoder's own output.
        chosen = [own_output.nonzero().squeeze(1) for own_output in (~forcing_mask).unbind(1)]
        rows = send(torch.cat(chosen), tgt_in.device).split([len(some) for some in chosen])
        for position, fed_own in enumerate(rows):
            if position > 0:
                ids = tgt_in[:, position].clone()
                with torch.no_grad():
                    ids[fed_own] = self.output.best(vectors[-1][fed_own])
            output = self.decoder.step(self.tgt_embedding.read(ids, embedding_noise), state, memory)
            state = output.state
            vectors.append(self.dropout(output.vector, vector_noise))
            attentions.append(output.attention)
        return Decoded(torch.stack(vectors, 1), torch.stack(attentions, 1))
