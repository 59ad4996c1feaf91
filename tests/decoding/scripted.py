"""A model that is a table of probabilities, so that the best translations are known."""

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from math import log

import numpy as np
from numpy.typing import NDArray

from nmt.config.schema import DecodingConfig
from nmt.decoding.hypothesis import Hypothesis
from nmt.decoding.model import IdLists, StepOutput, TranslationModel
from nmt.decoding.onnx_model import Tensors
from nmt.decoding.search import search
from nmt.text.vocabulary import EOS

A, B, V = 4, 5, 6
Table = Callable[[int, Sequence[int]], dict[int, float]]


Looks = Callable[[int, Sequence[int]], Sequence[float]]


class Scripted(TranslationModel):
    """`table` gives the probabilities of the token after a prefix, `looks` the attention then.

    Its memory has the number of each sentence, and its state that of each row, and the tokens so
    far; its vectors are the log-probabilities.
    """

    def __init__(self, table: Table, looks: Looks, width: int) -> None:
        self.table, self.looks, self.width = table, looks, width

    def encode(self, sources: IdLists) -> tuple[Tensors, Tensors]:
        memory = Tensors({"sentence": np.arange(len(sources))})
        no_ids = np.zeros((len(sources), 0), np.int64)
        return memory, Tensors({**memory.by_name, "ids": no_ids})

    def step(self, ids: NDArray[np.int64], state: Tensors, memory: Tensors) -> StepOutput:
        sentences = state.by_name["sentence"]
        beam = len(ids) // len(memory.by_name["sentence"])
        # memory and state stay side by side
        assert sentences.tolist() == memory.by_name["sentence"].repeat(beam).tolist()
        prefixes = np.concatenate([state.by_name["ids"], ids[:, None]], 1)
        log_probs = np.full((len(ids), V), -np.inf)
        attention = np.zeros((len(ids), self.width), np.float32)
        for row, (sentence, prefix) in enumerate(
            zip(sentences.tolist(), prefixes.tolist(), strict=True)
        ):
            for token, probability in self.table(sentence, prefix[1:]).items():
                log_probs[row, token] = log(probability)
            weights = self.looks(sentence, prefix[1:])
            attention[row, : len(weights)] = weights
        after = Tensors({"sentence": sentences, "ids": prefixes})
        return StepOutput(Tensors({"log_probs": log_probs}), attention, after)

    def log_probs(self, vectors: Tensors) -> NDArray[np.float64]:
        return vectors.by_name["log_probs"]


def scripted(
    table: Table,
    src_lengths: Sequence[int],
    options: DecodingConfig,
    n_best: int = 1,
    *,
    looks: Looks = lambda _, __: (),
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Search where `table` gives the probabilities; the source ids of sentence i are all i."""
    sources = [[i] * (length - 1) for i, length in enumerate(src_lengths)]  # <eos> is counted
    return search(
        Scripted(table, looks, max(src_lengths)), sources, options, n_best=n_best, prefixes=prefixes
    )


@cache
def dirichlet(alpha: tuple[float, ...], *key: int) -> list[float]:
    """The same for the same key."""
    drawn: list[float] = np.random.default_rng(key).dirichlet(alpha).tolist()
    return drawn


def random_table(seed: int, longest: int | None = None) -> Table:
    """Probabilities of A, B and <eos>, random for each prefix; a prefix of `longest` tokens ends
    with certainty.
    """

    def table(sentence: int, prefix: Sequence[int]) -> dict[int, float]:
        if longest is not None and len(prefix) >= longest:
            return {EOS: 1.0}
        return dict(
            zip((EOS, A, B), dirichlet((0.7, 0.7, 0.7), seed, sentence, *prefix), strict=True)
        )

    return table


def random_looks(seed: int, src_length: int) -> Looks:
    """Weights over the source, random for each prefix."""
    return lambda sentence, prefix: dirichlet((0.3,) * src_length, seed, sentence, 99, *prefix)


def all_prefixes(longest: int) -> list[tuple[int, ...]]:
    return [
        ids for length in range(longest + 1) for ids in itertools.product((A, B), repeat=length)
    ]
