"""Significance tests: do two systems differ? Paired tests over the sentences that both translated,
as in sacrebleu.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.evaluation.scores import (
    METRICS,
    SEED,
    SentenceStatistics,
    build_metric,
    canonical_name,
    collect_statistics,
    sentence_chrf,
)
from nmt.report.table import Table

N_TRIALS, N_RESAMPLES = 10_000, 1000  # the defaults of sacrebleu
ROUNDING = 1e-9  # below any difference of two scores
# in memory at once; with a multiple of 32, NumPy draws the same bits as for all trials together
BLOCK_TRIALS = 64
MAX_COUNTED = 16  # sentences that differ; with more, `_min_p` would be below 1 / N_TRIALS


@dataclass(frozen=True)
class Difference:
    """The difference between two systems in a metric, and whether chance explains it.

    Attributes:
        metric: as in `METRICS`.
        value, other: the scores of the system and of the other system.
        p_randomization: two-sided p-value of approximate randomization (Noreen 1989), which
            decides. Of equal systems, 5 % have a value below 0.05.
        p_bootstrap: p-value of the paired bootstrap (Koehn 2004), as in sacrebleu and Moses. It
            calls equal systems different twice as often.
        signature: of the metric and the randomization.
    """

    metric: str
    value: float
    other: float
    p_randomization: float
    p_bootstrap: float
    signature: str

    @property
    def difference(self) -> float:
        return self.value - self.other

    def is_worse(self, alpha: float) -> bool:
        """Whether the system is significantly worse than the other at the level `alpha`."""
        worse = self.difference > 0 if METRICS[self.metric].less_is_better else self.difference < 0
        return worse and self.p_randomization < alpha

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "metric": self.metric,
            "score": self.value,
            "other": self.other,
            "difference": self.difference,
            "p_randomisation": self.p_randomization,
            "p_bootstrap": self.p_bootstrap,
            "signature": self.signature,
        }


@dataclass(frozen=True)
class Change:
    """A sentence that two systems translate differently. gain: its chrF minus that of the other
    system.
    """

    index: int
    gain: float


def compare(
    hypotheses: Sequence[str],
    other: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str] = ("BLEU", "chrF"),
    *,
    lowercase: bool = False,
    trials: int = N_TRIALS,
    resamples: int = N_RESAMPLES,
    seed: int = SEED,
) -> list[Difference]:
    """Compare the translations of the same sentences by two systems, for each metric.

    Raises:
        DataError: a metric is unknown.
    """
    differences = []
    for name in map(canonical_name, metrics):
        metric = build_metric(name, lowercase=lowercase)
        ours, theirs = (
            collect_statistics(metric, outputs, references) for outputs in (hypotheses, other)
        )
        min_p = _min_p(name, hypotheses, other, references)
        p_randomization = max(_randomization_p(ours, theirs, trials, seed), min_p)
        p_bootstrap = max(_bootstrap_p(ours, theirs, resamples, seed), min_p)
        signature = metric.get_signature()
        signature.update("seed", seed)
        signature.update("ar", trials)
        differences.append(
            Difference(name, ours.score, theirs.score, p_randomization, p_bootstrap, str(signature))
        )
    return differences


def largest_changes(
    hypotheses: Sequence[str], other: Sequence[str], references: Sequence[Sequence[str]], n: int
) -> list[Change]:
    """The `n` sentences with the largest gains in chrF over the other system, then the `n` with the
    largest losses.
    """
    different = [
        i for i, (our, their) in enumerate(zip(hypotheses, other, strict=True)) if our != their
    ]
    streams = [[stream[i] for i in different] for stream in references]
    ours, theirs = (
        (sentence_chrf([texts[i] for i in different], streams) for texts in (hypotheses, other))
        if different
        else ([], [])
    )
    changes = [
        Change(i, our - their) for i, our, their in zip(different, ours, theirs, strict=True)
    ]
    gained = sorted(
        (change for change in changes if change.gain > 0), key=lambda change: -change.gain
    )
    lost = sorted((change for change in changes if change.gain < 0), key=lambda change: change.gain)
    return gained[:n] + lost[:n]


def difference_table(differences: Sequence[Difference]) -> Table:
    """A row for each metric."""
    rows = [
        (
            each.metric,
            each.value,
            each.other,
            each.difference,
            each.p_randomization,
            each.p_bootstrap,
        )
        for each in differences
    ]
    columns = ("metric", "score", "other", "difference", "p (randomization)", "p (bootstrap)")
    formats = {"difference": "+.2f", "p (randomization)": ".4f", "p (bootstrap)": ".4f"}
    return Table("differences", "", columns, rows, digits=2, formats=formats)


def _min_p(
    name: str, hypotheses: Sequence[str], other: Sequence[str], references: Sequence[Sequence[str]]
) -> float:
    """A lower bound of p. If the metric differs on k sentences, there are 2^k ways to swap them,
    and 2 of these differ as much.

    sacrebleu only counts trials that differ more. It would call two systems different that are
    equal, differ in one sentence, or differ only in what the metric ignores.
    """
    metric, n_different = build_metric(name), 0
    for our, their, *sentence_references in zip(hypotheses, other, *references, strict=True):
        if our != their:
            # Compares all counts behind the sentence scores, not only the scores.
            streams = [[reference] for reference in sentence_references]
            n_different += vars(metric.corpus_score([our], streams)) != vars(
                metric.corpus_score([their], streams)
            )
        if n_different == MAX_COUNTED:
            break
    return 2.0 ** min(0, 1 - n_different)


def _randomization_p(
    ours: SentenceStatistics, theirs: SentenceStatistics, trials: int, seed: int
) -> float:
    differences = [
        ours.score_of(our_sums) - theirs.score_of(their_sums)
        for our_sums, their_sums in swapped_sums(ours, theirs, trials, seed)
    ]
    # Equal differences count (Noreen 1989), which sacrebleu does not do: they are common with TER
    # and with few sentences.
    return _p_value(np.abs(np.array(differences)), abs(ours.score - theirs.score) - ROUNDING)


def swapped_sums(
    ours: SentenceStatistics, theirs: SentenceStatistics, trials: int, seed: int
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """For each trial, the sums of both systems' counts, with each sentence swapped at random."""
    random, n_sentences = np.random.default_rng(seed), len(ours.rows)
    our_rows, their_rows = (np.array(system.rows, np.float64) for system in (ours, theirs))
    for start in range(0, trials, BLOCK_TRIALS):
        swaps = random.integers(
            2, size=(min(BLOCK_TRIALS, trials - start), n_sentences), dtype=bool
        )
        our_sums, their_sums = (
            swaps @ other + ~swaps @ own
            for own, other in ((our_rows, their_rows), (their_rows, our_rows))
        )
        yield from zip(our_sums, their_sums, strict=True)


def _bootstrap_p(
    ours: SentenceStatistics, theirs: SentenceStatistics, resamples: int, seed: int
) -> float:
    our_scores, their_scores = (
        np.array(statistics.bootstrap_scores(resamples, seed)) for statistics in (ours, theirs)
    )
    differences = np.abs(our_scores - their_scores)
    return _p_value(differences - differences.mean(), abs(ours.score - theirs.score))


def _p_value(differences: NDArray[Any], observed: float) -> float:
    """The share of random differences above the observed one, which itself counts as one of
    them.
    """
    return float((np.sum(differences > observed) + 1) / (len(differences) + 1))
