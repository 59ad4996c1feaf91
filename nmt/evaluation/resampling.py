"""Metric scores of resampled sentences, for confidence intervals and significance tests.

The numbers equal sacrebleu's to the last digit, in a fraction of its memory: sacrebleu holds the
n-grams of all references and the statistics of all samples at once, gigabytes for 20,000 sentences.
Here both are processed in blocks, with the same random numbers and the same arithmetic.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK_SENTENCES = 500  # sentences with n-grams in memory at once
# in memory at once; with a multiple of 32, NumPy draws the same bits as for all trials together
BLOCK_TRIALS = 64


@dataclass(frozen=True)
class SentenceStatistics:
    """The counts of one system for a metric of sacrebleu.

    Attributes:
        metric: of sacrebleu.
        rows: [N, D], counts per sentence. The sums over sentences determine the corpus score.
    """

    metric: Any
    rows: list[list[float]]

    @property
    def score(self) -> float:
        """The score of all sentences."""
        return float(_sum_and_score(self.metric, self.rows))

    def bootstrap_scores(self, n_samples: int, seed: int) -> list[Any]:
        """Scores of samples of N sentences, drawn with replacement. Floats of 32 or 64 bits, as
        sacrebleu has them.
        """
        random, rows = np.random.default_rng(seed), np.array(self.rows, np.float32)
        return [
            _score_of_sums(self.metric, rows[random.choice(len(rows), len(rows))].sum(0))
            for _ in range(n_samples)
        ]

    def randomized_scores(
        self, other: "SentenceStatistics", n_trials: int, seed: int
    ) -> tuple[list[Any], list[Any]]:
        """Scores of two systems between which each sentence is swapped at random, for each
        trial.
        """
        ours, theirs = np.array(self.rows, np.float64), np.array(other.rows, np.float64)
        our_scores: list[Any] = []
        their_scores: list[Any] = []
        for swaps in _random_swaps(n_trials, len(ours), seed):
            our_scores += [
                _score_of_sums(self.metric, sums) for sums in swaps @ theirs + ~swaps @ ours
            ]
            their_scores += [
                _score_of_sums(self.metric, sums) for sums in ~swaps @ theirs + swaps @ ours
            ]
        return our_scores, their_scores


def collect_statistics(
    metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> SentenceStatistics:
    """The statistics of N sentences. `metric` stores the number of references for its signature."""
    rows: list[list[float]] = []
    for start in range(0, len(hypotheses), BLOCK_SENTENCES):
        block = slice(start, start + BLOCK_SENTENCES)
        rows += _extract_statistics(
            metric, hypotheses[block], [stream[block] for stream in references]
        )
    return SentenceStatistics(metric, rows)


def _random_swaps(n_trials: int, n_sentences: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    random = np.random.default_rng(seed)
    for start in range(0, n_trials, BLOCK_TRIALS):
        yield random.integers(
            2, size=(min(BLOCK_TRIALS, n_trials - start), n_sentences), dtype=bool
        )


# sacrebleu has no public functions from texts to statistics and from statistics to a score. These
# private methods of `sacrebleu.metrics.base.Metric` are the same in all versions that
# pyproject.toml admits (>=2.4, <3), and nothing else in this project uses private methods of
# sacrebleu.


def _extract_statistics(
    metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> list[list[float]]:
    statistics: list[list[float]] = metric._extract_corpus_statistics(hypotheses, references)
    return statistics


def _sum_and_score(metric: Any, rows: list[list[float]]) -> Any:
    return metric._aggregate_and_compute(rows).score


def _score_of_sums(metric: Any, sums: NDArray[Any]) -> Any:
    return metric._compute_score_from_stats(sums).score
