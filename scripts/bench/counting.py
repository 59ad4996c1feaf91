"""The multiply-adds of training and search, computed from the lengths of the sentences.

torch counts the products of each part of the model at one position (`measure_costs`). The rest is
the number of positions:

| part | at each |
|---|---|
| encoder, keys | source position |
| bridge | sentence |
| query, decoder, readout, output | target position |
| attention | pair of a source and a target position |
| output, clusters of an adaptive layer | target word of the cluster |

Training costs three times the forward pass: the backward pass computes a gradient for each of the
two factors of each product, and all embeddings are trained. One multiply-add is two floating-point
operations. Work that is not a matrix product (gates, tanh, softmax, dropout, the optimizer) is not
counted.

*Needed* positions are real tokens, <eos> included. *Computed* positions are those on which the
measured system works: nmt runs its encoder and its output layer on real positions only, and
everything else on padding too; a plain loop pads everything.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.flop_counter import FlopCounterMode

from nmt.config.schema import ModelConfig
from nmt.data.corpus import Corpus
from nmt.model.output import Adaptive
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, SPECIALS

Lengths = NDArray[np.integer]

PASSES = 3  # forward, and backward for each factor of each product
OPERATIONS = 2  # of one multiply-add


@dataclass(frozen=True)
class Positions:
    """The number of positions on which each part of the model works.

    Attributes:
        sentences: for the bridge.
        encoder: source positions that the encoder reads.
        keys: source positions that attention projects; a system may project them again at each
            step.
        decoder: target positions of the recurrence, the query and the readout.
        pairs: of a target and a source position, for attention.
        output: target positions for which the output layer computes the vocabulary.
        sampled: the same, forward only: where the decoder is fed its own output.
    """

    sentences: int = 0
    encoder: int = 0
    keys: int = 0
    decoder: int = 0
    pairs: int = 0
    output: int = 0
    sampled: int = 0

    def __add__(self, other: Self) -> "Positions":
        return Positions(
            *(first + second for first, second in zip(astuple(self), astuple(other), strict=True))
        )


def needed(src_lengths: Lengths, tgt_lengths: Lengths) -> Positions:
    """The positions of real tokens. Lengths count <eos>."""
    src, tgt = int(src_lengths.sum()), int(tgt_lengths.sum())
    return Positions(
        len(src_lengths),
        src,
        src,
        tgt,
        int((src_lengths.astype(np.int64) * tgt_lengths).sum()),
        tgt,
    )


def computed(src_lengths: Lengths, tgt_lengths: Lengths, *, sampled: int = 0) -> Positions:
    """The positions that `nmt.model` computes for one batch.

    Args:
        sampled: target positions that are fed the decoder's own output.
    """
    size, src, tgt = len(src_lengths), int(src_lengths.max()), int(tgt_lengths.max())
    return Positions(
        size,
        int(src_lengths.sum()),
        size * src,
        size * tgt,
        size * src * tgt,
        int(tgt_lengths.sum()),
        sampled,
    )


def padded(src_lengths: Lengths, tgt_lengths: Lengths) -> Positions:
    """The positions that a plain loop computes for one batch: everything with padding, the keys
    again at each step.
    """
    size, src, tgt = len(src_lengths), int(src_lengths.max()), int(tgt_lengths.max())
    return Positions(size, size * src, size * src * tgt, size * tgt, size * src * tgt, size * tgt)


def count_words(corpus: Corpus, pairs: Iterable[int], vocabulary_size: int) -> Lengths:
    """The frequency of each target word in these pairs, <eos> included: [V]."""
    targets = [corpus.tgt[pair] for pair in pairs]
    words = np.bincount(np.concatenate(targets), minlength=vocabulary_size)
    words[EOS] += len(targets)
    return words


def count_products(run: Callable[[], object]) -> int:
    """The multiply-adds of all matrix products in `run`."""
    with (
        warnings.catch_warnings(
            action="ignore", category=UserWarning
        ),  # about a missing accelerator
        torch.backends.mkldnn.flags(
            enabled=False
        ),  # oneDNN's recurrent layer is a single operation, which torch does not count
        FlopCounterMode(display=False) as counter,
    ):
        run()
    return int(counter.get_total_flops()) // OPERATIONS


@dataclass(frozen=True)
class Costs:
    """Multiply-adds of each part at one position.

    Attributes:
        output: of the softmax, or of the head of an adaptive layer.
        clusters: of an adaptive layer: (first word, end, multiply-adds of a target word in the
            cluster).
    """

    encoder: int
    bridge: int
    keys: int
    query: int
    attention: int
    decoder: int
    readout: int
    output: int
    clusters: tuple[tuple[int, int, int], ...] = ()


@torch.no_grad()
def measure_costs(config: ModelConfig, vocabulary_size: int) -> Costs:
    """Run each part of the model at one position, and count."""
    model = Seq2Seq(config, len(SPECIALS), vocabulary_size).eval()
    decoder, attention = model.decoder, model.decoder.attention
    short, long = torch.tensor([[EOS]]), torch.tensor([[EOS, EOS]])
    memory, long_memory = (
        model.encode(short, torch.tensor([1])),
        model.encode(long, torch.tensor([2])),
    )
    values, summary = model.encoder(model.src_embedding(short), torch.tensor([1]))
    state, embedded = model.start(memory), model.tgt_embedding(short)
    query, context = (
        embedded.new_zeros(1, 1, config.decoder.hidden_size),
        embedded.new_zeros(1, 1, config.encoder.output_size),
    )
    vector = embedded.new_zeros(1, decoder.readout.output_size)

    one_position = count_products(lambda: attention(query, memory, attention.start(memory)))
    per_position = (
        count_products(lambda: attention(query, long_memory, attention.start(long_memory)))
        - one_position
    )
    readout = count_products(lambda: decoder.readout(query, embedded, context))
    unroll = count_products(lambda: decoder.unroll(embedded, state, memory))

    def count_output(word: int) -> int:
        return count_products(lambda: model.output.loss(vector, torch.tensor([word])))

    output = count_output(0)
    cutoffs = model.output.softmax.cutoffs if isinstance(model.output, Adaptive) else []
    return Costs(
        encoder=count_products(
            lambda: model.encoder(model.src_embedding(short), torch.tensor([1]))
        ),
        bridge=count_products(lambda: model.bridge(summary)),
        keys=count_products(lambda: attention.build_memory(values, memory.mask, summary)),
        query=one_position - per_position,
        attention=per_position,
        decoder=unroll - one_position - readout,
        readout=readout,
        output=output,
        clusters=tuple(
            (first, end, count_output(first) - output) for first, end in pairwise(cutoffs)
        ),
    )


def multiply_adds(
    costs: Costs, positions: Positions, words: Lengths | None = None
) -> dict[str, int]:
    """The forward pass, by part of the model.

    Args:
        words: [V], the frequency of each target word; for an adaptive output layer.
    """
    clusters = (
        sum(cost * int(words[first:end].sum()) for first, end, cost in costs.clusters)
        if words is not None
        else 0
    )
    return {
        "encoder": positions.encoder * costs.encoder,
        "bridge": positions.sentences * costs.bridge,
        "keys": positions.keys * costs.keys,
        "query": positions.decoder * costs.query,
        "attention": positions.pairs * costs.attention,
        "decoder": positions.decoder * costs.decoder,
        "readout": positions.decoder * costs.readout,
        "output": positions.output * costs.output + clusters,
    }


def training_operations(costs: Costs, positions: Positions, words: Lengths | None = None) -> int:
    """The floating-point operations of training on these positions, backward pass included;
    arguments as of `multiply_adds`.

    A word sampled from an adaptive output layer counts for its head only.
    """
    forward = sum(multiply_adds(costs, positions, words).values())
    return OPERATIONS * (PASSES * forward + positions.sampled * costs.output)
