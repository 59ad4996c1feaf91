"""A model that is a table of probabilities, so that the best translations are known."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import log

import numpy as np
import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.decoding.hypothesis import Hypothesis
from nmt.decoding.search import search
from nmt.model.interface import StepOutput, TranslationModel
from nmt.model.output import ThresholdFn, Vectors, topk_log_probs
from nmt.text.vocabulary import EOS

A, B, V = 4, 5, 6
Table = Callable[[int, Sequence[int]], dict[int, float]]


@dataclass(frozen=True)
class Prefixes:
    """The state of a scripted model: which sentence each row belongs to, and its tokens so far."""

    sentence: Tensor
    ids: Tensor

    def select(self, rows: Tensor) -> "Prefixes":
        return Prefixes(self.sentence[rows], self.ids[rows])


@dataclass(frozen=True)
class Sentences:
    """The memory of a scripted model: one row per sentence, not per hypothesis."""

    sentence: Tensor

    def select(self, rows: Tensor) -> "Sentences":
        return Sentences(self.sentence[rows])


Looks = Callable[[int, Sequence[int]], Sequence[float]]


class Scripted(TranslationModel):
    """`table` gives the probabilities of the token after a prefix, `looks` the attention then; its
    vectors are its logits.
    """

    def __init__(self, table: Table, looks: Looks, width: int) -> None:
        super().__init__()
        self.table, self.looks, self.width = table, looks, width

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def encode(self, src: Tensor, src_lengths: Tensor) -> Sentences:
        return Sentences(torch.arange(len(src)))

    def start(self, memory: Sentences) -> Prefixes:
        return Prefixes(memory.sentence, torch.empty(len(memory.sentence), 0, dtype=torch.long))

    def step(self, ids: Tensor, state: Prefixes, memory: Sentences) -> StepOutput:
        beam = len(ids) // len(memory.sentence)
        assert torch.equal(
            state.sentence, memory.sentence.repeat_interleave(beam)
        )  # memory and state stay side by side
        prefixes = torch.cat([state.ids, ids.unsqueeze(1)], 1)
        scores = torch.full((len(ids), V), float("-inf"), dtype=torch.float64)
        attention = torch.zeros(len(ids), self.width)
        for row, (sentence, prefix) in enumerate(
            zip(state.sentence.tolist(), prefixes.tolist(), strict=True)
        ):
            for token, probability in self.table(sentence, prefix[1:]).items():
                scores[row, token] = log(probability)
            weights = self.looks(sentence, prefix[1:])
            attention[row, : len(weights)] = torch.tensor(weights)
        return StepOutput(Vectors(scores), attention, Prefixes(state.sentence, prefixes))

    def compute_logits(self, vectors: Vectors) -> Tensor:
        return vectors.values + 7  # logits need not be normalized

    def topk_log_probs(
        self, vectors: Vectors, k: int, threshold: ThresholdFn
    ) -> tuple[Tensor, Tensor]:
        """Words below the threshold are missing, which must not change any result."""
        ids, log_probs = topk_log_probs(self.compute_logits(vectors), k)
        floor = threshold(ids[:, :2], log_probs[:, :2]).unsqueeze(1)
        return ids, log_probs.where(log_probs >= floor, float("-inf"))


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
