"""Whether two systems differ: paired tests over the sentences that both have translated, as sacrebleu has them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.metrics.resampling import Statistics, count
from nmt.metrics.scores import METRICS, SEED, build_metric, canonical_name, sentence_chrf
from nmt.metrics.table import Table

TRIALS, RESAMPLES = 10_000, 1000  # sacrebleu's own
ENOUGH = 16  # sentences that differ: with more, the trials are what bounds p


@dataclass(frozen=True)
class Difference:
    """How much two systems differ in a metric, and whether chance explains it.

    Attributes:
        metric: as in `METRICS`.
        value, other: the scores of the system and of the one that it is compared with.
        p_randomisation: two-sided, by approximate randomisation (Noreen 1989); 5 % of pairs that do not differ are below 0.05.
            This one decides.
        p_bootstrap: by paired bootstrap (Koehn 2004) as sacrebleu and Moses have it. It calls twice as many such pairs different.
        signature: of the randomisation.
    """

    metric: str
    value: float
    other: float
    p_randomisation: float
    p_bootstrap: float
    signature: str

    @property
    def difference(self) -> float:
        return self.value - self.other

    def is_worse(self, alpha: float) -> bool:
        """Whether the system is worse than the other, and more so than chance explains at the level `alpha`."""
        worse = self.difference > 0 if METRICS[self.metric].less_is_better else self.difference < 0
        return worse and self.p_randomisation < alpha

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON knows them."""
        return {
            "metric": self.metric,
            "score": self.value,
            "other": self.other,
            "difference": self.difference,
            "p_randomisation": self.p_randomisation,
            "p_bootstrap": self.p_bootstrap,
            "signature": self.signature,
        }


@dataclass(frozen=True)
class Change:
    """A sentence that two systems translate differently. gain: its chrF less that of the other's."""

    index: int
    gain: float


def compare(
    hypotheses: Sequence[str],
    other: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str] = ("BLEU", "chrF"),
    *,
    lowercase: bool = False,
    trials: int = TRIALS,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[Difference]:
    """Compare two systems' translations of the same sentences, in the order of `metrics`, ignoring case or not.

    Raises:
        DataError: an unknown metric.
    """
    found = []
    for name in map(canonical_name, metrics):
        metric = build_metric(name, lowercase=lowercase)
        one, two = (count(metric, outputs, references) for outputs in (hypotheses, other))
        least = _least_p(name, hypotheses, other, references)
        p, p_bootstrap = max(_randomise(one, two, trials, seed), least), max(_resample(one, two, resamples, seed), least)
        signature = metric.get_signature()
        signature.update("seed", seed)
        signature.update("ar", trials)
        found.append(Difference(name, one.score, two.score, p, p_bootstrap, str(signature)))
    return found


def changes(hypotheses: Sequence[str], other: Sequence[str], references: Sequence[Sequence[str]], n: int) -> list[Change]:
    """The `n` sentences that have gained most against the other, then the `n` that have lost most; those first that differ most."""
    different = [i for i, (one, two) in enumerate(zip(hypotheses, other, strict=True)) if one != two]
    streams = [[stream[i] for i in different] for stream in references]
    ours, theirs = (
        (sentence_chrf([texts[i] for i in different], streams) for texts in (hypotheses, other)) if different else ([], [])
    )
    found = [Change(i, one - two) for i, one, two in zip(different, ours, theirs, strict=True)]
    gained = sorted((change for change in found if change.gain > 0), key=lambda change: -change.gain)
    lost = sorted((change for change in found if change.gain < 0), key=lambda change: change.gain)
    return gained[:n] + lost[:n]


def difference_table(differences: Sequence[Difference]) -> Table:
    """For the reader."""
    rows = [(one.metric, one.value, one.other, one.difference, one.p_randomisation, one.p_bootstrap) for one in differences]
    columns = ("metric", "score", "other", "difference", "p (randomisation)", "p (bootstrap)")
    formats = {"difference": "+.2f", "p (randomisation)": ".4f", "p (bootstrap)": ".4f"}
    return Table("differences", "", columns, rows, digits=2, formats=formats)


def _least_p(name: str, hypotheses: Sequence[str], other: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """What p cannot be below: with k sentences that differ to the metric there are 2^k ways to swap them.

    Two of these ways differ as much as the systems do. sacrebleu, which counts those that differ more, would find systems that are
    the same, or differ in one sentence, or in what the metric does not see, different beyond doubt.
    """
    metric, n_different = build_metric(name), 0
    for one, two, *gold in zip(hypotheses, other, *references, strict=True):
        if one != two:
            scores = [vars(metric.corpus_score([text], [[reference] for reference in gold])) for text in (one, two)]
            n_different += scores[0] != scores[1]
        if n_different == ENOUGH:
            break
    return 2.0 ** min(0, 1 - n_different)


def _randomise(one: Statistics, two: Statistics, trials: int, seed: int) -> float:
    ours, theirs = one.swap(two, trials, seed)
    return _p(np.abs(np.array(ours) - np.array(theirs)), abs(one.score - two.score))


def _resample(one: Statistics, two: Statistics, resamples: int, seed: int) -> float:
    ours, theirs = (np.array(system.resample(resamples, seed)) for system in (one, two))
    differences = np.abs(ours - theirs)
    return _p(differences - differences.mean(), abs(one.score - two.score))


def _p(differences: NDArray[Any], real: float) -> float:
    """The share of the differences by chance that are above the real one, which counts as one of them."""
    return float((np.sum(differences > real) + 1) / (len(differences) + 1))
