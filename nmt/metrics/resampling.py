"""Scores of samples of sentences, for intervals and tests: sacrebleu's figures to the last digit, in a fraction of its memory.

sacrebleu keeps the n-grams of all references, then all samples of their statistics at once: for 20,000 sentences gigabytes. Here
both come in blocks, with the same random numbers and the same arithmetic.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SENTENCES = 500  # whose n-grams are in memory at once
TRIALS = 64  # whose swaps are in memory at once; of 32 at a time NumPy draws the bits that it would draw of all together


@dataclass(frozen=True)
class Statistics:
    """What a metric of sacrebleu has counted: of N sentences D numbers each, of which the score is made when they are added up."""

    metric: Any
    rows: list[list[float]]

    @property
    def score(self) -> float:
        """Of all sentences."""
        return float(self.metric._aggregate_and_compute(self.rows).score)

    def resample(self, count: int, seed: int) -> list[Any]:
        """Scores of so many samples of N sentences, drawn with replacement. Floats, of 32 or 64 bits as sacrebleu has them."""
        drawn, rows = np.random.default_rng(seed), np.array(self.rows, np.float32)
        return [self._score(rows[drawn.choice(len(rows), len(rows))].sum(0)) for _ in range(count)]

    def swap(self, other: "Statistics", trials: int, seed: int) -> tuple[list[Any], list[Any]]:
        """Scores of both of two systems, each sentence of which goes at random to the one or to the other."""
        ours, theirs = np.array(self.rows, np.float64), np.array(other.rows, np.float64)
        one: list[Any] = []
        two: list[Any] = []
        for swaps in _swaps(trials, len(ours), seed):
            one += map(self._score, swaps @ theirs + ~swaps @ ours)
            two += map(self._score, ~swaps @ theirs + swaps @ ours)
        return one, two

    def _score(self, sums: NDArray[Any]) -> Any:
        """Of the D sums."""
        return self.metric._compute_score_from_stats(sums).score


def count(metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Statistics:
    """The statistics of N sentences; `metric` then knows, for its signature, how many references there are."""
    rows: list[list[float]] = []
    for start in range(0, len(hypotheses), SENTENCES):
        block = slice(start, start + SENTENCES)
        rows += metric._extract_corpus_statistics(hypotheses[block], [stream[block] for stream in references])
    return Statistics(metric, rows)


def _swaps(trials: int, n_sentences: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    drawn = np.random.default_rng(seed)
    for start in range(0, trials, TRIALS):
        yield drawn.integers(2, size=(min(TRIALS, trials - start), n_sentences), dtype=bool)
