"""The multiply-adds of a training step, counted from the lengths of the sentences that it trains on.

Forward, a position costs, with E, H_e, H_d, R, A, V as in `nmt.model.seq2seq`, G gates (lstm 4, gru 3, elman 1), and I the width of
what enters a layer:

| part | multiply-adds | at each |
|---|---|---|
| encoder | G H (I + H), for every layer and direction | source position |
| bridge | H_e H_d for every layer, twice with an lstm; `backward`: from one direction alone | sentence |
| keys | general H_e H_d; concat, additive, concat_shared H_e A; linear H_e; several heads: H_e^2 more | source position |
| query | concat, additive, concat_shared H_d A; linear H_d; local_p H_d^2 + H_d; several heads: H_d^2 more | target position |
| attention | dot, general H_d; concat, additive, concat_shared A; coverage A more; and H_e for the context | pair of positions |
| decoder | G H_d (I + H_d), for every layer | target position |
| readout | attentional (H_e + H_d) R; deep, maxout (H_d + E + H_e) R, twice for maxout | target position |
| output | softmax R V (R E + E V where tied and R is not E); adaptive R times the head's outputs | target position |
| | adaptive: R D + D W for a cluster of W words, D = R / 2, R / 4 ... | target word of the cluster |

Training costs this three times, once forward and twice backward, for the gradients of either factor of each product; the embeddings
are trained, so no product is spared. A multiply-add is two floating-point operations. What is not a product of matrices (gates,
tanh, softmax, dropout, the optimizer) is work, but is not counted.

*Needed* are the positions of real tokens, <eos> included. *Computed* are those that the system under measure works on: this model
runs its encoder and its output layer at real positions alone and the rest of it with padding; a plain loop pads everything.
"""

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nmt.config.schema import AttentionConfig, Cell, Config, ModelConfig
from nmt.data.corpus import Corpus
from nmt.text.vocabulary import EOS

Lengths = NDArray[np.integer]

GATES: dict[Cell, int] = {"lstm": 4, "gru": 3, "elman": 1}
PASSES = 3  # forward, and backward for either factor of each product
OPERATIONS = 2  # of one multiply-add


@dataclass(frozen=True)
class Positions:
    """How many positions each part of the model works on.

    Attributes:
        sentences: which the bridge crosses.
        encoder: source positions that are read.
        keys: source positions that are projected for attention; more often than once, if a system does it again at each step.
        decoder: target positions of the recurrence, the query and the readout.
        pairs: of a target and a source position, which attention scores.
        output: target positions at which the vocabulary is scored.
        sampled: the same, forward alone: for what the decoder is fed of its own output.
    """

    sentences: int = 0
    encoder: int = 0
    keys: int = 0
    decoder: int = 0
    pairs: int = 0
    output: int = 0
    sampled: int = 0

    def __add__(self, other: Self) -> "Positions":
        return Positions(*(here + there for here, there in zip(astuple(self), astuple(other), strict=True)))


def needed(src_lengths: Lengths, tgt_lengths: Lengths) -> Positions:
    """The positions of real tokens. Lengths count <eos>."""
    src, tgt = int(src_lengths.sum()), int(tgt_lengths.sum())
    return Positions(len(src_lengths), src, src, tgt, int((src_lengths.astype(np.int64) * tgt_lengths).sum()), tgt)


def computed(src_lengths: Lengths, tgt_lengths: Lengths, *, sampled: int = 0) -> Positions:
    """What `nmt.model` computes for one batch, `sampled` of whose target positions are fed its own output."""
    size, src, tgt = len(src_lengths), int(src_lengths.max()), int(tgt_lengths.max())
    return Positions(size, int(src_lengths.sum()), size * src, size * tgt, size * src * tgt, int(tgt_lengths.sum()), sampled)


def padded(src_lengths: Lengths, tgt_lengths: Lengths) -> Positions:
    """What a plain loop computes for one batch: all of it with padding, the keys at each step."""
    size, src, tgt = len(src_lengths), int(src_lengths.max()), int(tgt_lengths.max())
    return Positions(size, size * src, size * src * tgt, size * tgt, size * src * tgt, size * tgt)


def count_words(corpus: Corpus, pairs: Iterable[int], vocabulary_size: int) -> Lengths:
    """How often each word of the target vocabulary is to be predicted in these pairs, <eos> included: [V]."""
    targets = [corpus.tgt[pair] for pair in pairs]
    words = np.bincount(np.concatenate(targets), minlength=vocabulary_size)
    words[EOS] += len(targets)
    return words


def multiply_adds(config: ModelConfig, vocabulary_size: int, positions: Positions, words: Lengths | None = None) -> dict[str, int]:
    """Forward, by part of the model.

    Args:
        vocabulary_size: V, the target's.
        words: [V], how often each is to be predicted; only an adaptive output wants to know.
    """
    keys, query, pair = _attention(config.attention, config.decoder.hidden_size, config.encoder.output_size)
    return {
        "encoder": positions.encoder * _encoder(config),
        "bridge": positions.sentences * _bridge(config),
        "keys": positions.keys * keys,
        "query": positions.decoder * query,
        "attention": positions.pairs * pair,
        "decoder": positions.decoder * _decoder(config),
        "readout": positions.decoder * _readout(config),
        "output": positions.output * _output(config, vocabulary_size) + _clusters(config, vocabulary_size, words),
    }


def training_operations(config: Config, vocabulary_size: int, positions: Positions, words: Lengths | None = None) -> int:
    """The floating-point operations of training on these positions, backward included; arguments as of `multiply_adds`.

    A word that is drawn from an adaptive output counts for its head alone.
    """
    forward = sum(multiply_adds(config.model, vocabulary_size, positions, words).values())
    return OPERATIONS * (PASSES * forward + positions.sampled * _output(config.model, vocabulary_size))


def _encoder(config: ModelConfig) -> int:
    encoder, gates = config.encoder, GATES[config.encoder.cell]
    inputs = [config.embedding_size] + [encoder.output_size] * (encoder.layers - 1)
    directions = 2 if encoder.bidirectional else 1
    return sum(directions * gates * encoder.hidden_size * (width + encoder.hidden_size) for width in inputs)


def _bridge(config: ModelConfig) -> int:
    if config.bridge in ("copy", "zero"):
        return 0
    width = config.encoder.hidden_size if config.bridge == "backward" else config.encoder.output_size
    states = 2 if config.decoder.cell == "lstm" else 1
    return states * config.decoder.layers * width * config.decoder.hidden_size


def _attention(config: AttentionConfig, query_size: int, value_size: int) -> tuple[int, int, int]:
    """At each source position, target position, and pair of them."""
    if config.score == "none":
        return 0, 0, 0
    # Each head has its share of the widths, and projections between all of them and its own.
    heads, query_width, value_width = config.heads, query_size // config.heads, value_size // config.heads
    size = config.size or query_width
    inner = {
        "dot": (0, 0, query_width),
        "general": (value_width * query_width, 0, query_width),
        "linear": (value_width, query_width, 0),
    }
    keys, query, pair = inner.get(config.score, (value_width * size, query_width * size, size))
    if config.kind == "local_p":
        query += query_width * query_width + query_width
    if config.kind == "coverage":
        pair += size
    pair += value_width
    split = (value_size**2, query_size**2) if heads > 1 else (0, 0)
    return heads * keys + split[0], heads * query + split[1], heads * pair


def _decoder(config: ModelConfig) -> int:
    decoder = config.decoder
    width = config.embedding_size
    if decoder.kind == "bahdanau":
        width += config.encoder.output_size
    elif decoder.input_feeding:
        width += _vector_size(config)
    inputs = [width] + [decoder.hidden_size] * (decoder.layers - 1)
    return sum(GATES[decoder.cell] * decoder.hidden_size * (width + decoder.hidden_size) for width in inputs)


def _readout(config: ModelConfig) -> int:
    decoder, context = config.decoder, config.encoder.output_size
    size = _vector_size(config)
    if decoder.readout == "attentional":
        return (context + decoder.hidden_size) * size
    if decoder.readout in ("deep", "maxout"):
        return (2 if decoder.readout == "maxout" else 1) * (decoder.hidden_size + config.embedding_size + context) * size
    return 0


def _vector_size(config: ModelConfig) -> int:
    """R, the width of the vector that the vocabulary is scored with."""
    decoder = config.decoder
    if decoder.readout == "concat":
        return decoder.hidden_size + config.encoder.output_size
    return decoder.hidden_size if decoder.readout == "state" else decoder.readout_size or decoder.hidden_size


def _output(config: ModelConfig, vocabulary_size: int) -> int:
    size = _vector_size(config)
    if config.output == "adaptive":
        first, *others = cutoffs(config, vocabulary_size)
        return size * (first + len(others))
    if config.tie_embeddings == "none" or size == config.embedding_size:
        return size * vocabulary_size
    return config.embedding_size * (size + vocabulary_size)


def _clusters(config: ModelConfig, vocabulary_size: int, words: Lengths | None) -> int:
    """All of the adaptive output but its head: each cluster works on its own words alone."""
    if config.output != "adaptive" or words is None:
        return 0
    size, total = _vector_size(config), 0
    for level, (begin, end) in enumerate(pairwise(cutoffs(config, vocabulary_size)), 1):
        inner = size // 2**level
        total += int(words[begin:end].sum()) * inner * (size + end - begin)
    return total


def cutoffs(config: ModelConfig, vocabulary_size: int) -> list[int]:
    """Where the head of an adaptive output ends, then each cluster."""
    default = sorted({max(1, vocabulary_size // 10), max(1, vocabulary_size // 3)})
    return [*(config.cutoffs or default), vocabulary_size]
