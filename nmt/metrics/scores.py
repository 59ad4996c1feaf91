"""Scores of translations, by sacrebleu: detokenised text in, a number with its signature out."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from typing import Any

from nmt.errors import DataError
from nmt.metrics.resampling import count

SEED = 12345  # sacrebleu's own: its command line gives the same intervals


@dataclass(frozen=True)
class MetricScore:
    """One number about a whole set of translations.

    Attributes:
        name: the metric, as in `METRICS`.
        value: 0..100; TER, where less is better, can be more.
        signature: all the settings that the number depends on, in sacrebleu's form.
        interval: 95 % confidence by bootstrap (lower, upper), or None if it was not asked for.
    """

    name: str
    value: float
    signature: str
    interval: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON knows them."""
        interval = None if self.interval is None else list(self.interval)
        return {"metric": self.name, "score": self.value, "signature": self.signature, "interval": interval}


@dataclass(frozen=True)
class _Recipe:
    """How sacrebleu is asked for a metric: a class of `sacrebleu.metrics`, and its options."""

    class_name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    lowercase: Mapping[str, Any] = field(default_factory=lambda: {"lowercase": True})
    less_is_better: bool = False


# The text is 13a-tokenised inside, as sacrebleu's command line does; TER ignores case in any case, as it does there.
# force: whether text looks as if it had been tokenised before is said elsewhere, once.
METRICS: Mapping[str, _Recipe] = {
    "BLEU": _Recipe("BLEU", {"force": True}),
    "chrF": _Recipe("CHRF"),
    "chrF++": _Recipe("CHRF", {"word_order": 2}),
    "TER": _Recipe("TER", lowercase={}, less_is_better=True),
}
# What old papers report, by multi-bleu.perl and its like: the words are parted already, and no metric parts them once more.
_TOKENIZED = _Recipe("BLEU", {"tokenize": "none", "force": True})


def score(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str] = ("BLEU", "chrF"),
    *,
    lowercase: bool = False,
    bootstrap: int = 0,
    seed: int = SEED,
) -> list[MetricScore]:
    """The corpus scores of detokenised `hypotheses`, in the order of `metrics`.

    Args:
        hypotheses: one text a sentence.
        references: streams of references, each with one text for each hypothesis; one stream where there is one reference.
        metrics: names of `METRICS`, in any case.
        lowercase: ignore case (the signature says so).
        bootstrap: resamples for the 95 % confidence interval; 0 for no interval.
        seed: of the resampling.

    Raises:
        DataError: an unknown metric, nothing to score, or counts of sentences that differ.
    """
    names = [canonical_name(name) for name in metrics]
    _check_counts(hypotheses, references)
    scores = []
    for name in names:
        metric = build_metric(name, lowercase=lowercase)
        scores.append(_score_one(name, metric, hypotheses, references, bootstrap=bootstrap, seed=seed))
    return scores


def score_tokenized(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    words: str,
    *,
    lowercase: bool = False,
    bootstrap: int = 0,
    seed: int = SEED,
) -> MetricScore:
    """BLEU of texts whose words are parted by spaces already: comparable with nothing but other scores of the same tokens.

    Args:
        words: what parted them, for the signature.
        lowercase: ignore case (the signature says so).

    Raises:
        DataError: nothing to score, or counts of sentences that differ.
    """
    _check_counts(hypotheses, references)
    metric = getattr(_metrics(), _TOKENIZED.class_name)(**_TOKENIZED.options, **(_TOKENIZED.lowercase if lowercase else {}))
    found = _score_one("tokenised BLEU", metric, hypotheses, references, bootstrap=bootstrap, seed=seed)
    return replace(found, signature=f"{found.signature}|words:{words.replace('|', ',')}")


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """The chrF of each sentence: of the metrics here, the one that is of use for a single sentence."""
    metric = build_metric("chrF")
    return [float(metric.sentence_score(one, list(its)).score) for one, *its in zip(hypotheses, *references, strict=True)]


def build_metric(name: str, *, lowercase: bool = False) -> Any:
    """sacrebleu's object for a metric of `METRICS`."""
    recipe = METRICS[name]
    return getattr(_metrics(), recipe.class_name)(**recipe.options, **(recipe.lowercase if lowercase else {}))


def canonical_name(name: str) -> str:
    """The metric as `METRICS` has it. Raises: DataError if it is unknown."""
    for known in METRICS:
        if name.casefold() == known.casefold():
            return known
    raise DataError(f"{name}: no such metric; known: {', '.join(METRICS)}")


def format_table(scores: Sequence[MetricScore]) -> str:
    """The scores as lines for the screen, with a heading; the column of intervals only if there are any."""
    intervals = ["" if one.interval is None else f"[{one.interval[0]:.2f}, {one.interval[1]:.2f}]" for one in scores]
    columns = [
        ["metric", *(one.name for one in scores)],
        ["score", *(f"{one.value:.2f}" for one in scores)],
        ["95 % interval", *intervals],
        ["signature", *(one.signature for one in scores)],
    ]
    if not any(intervals):
        del columns[2]
    widths = [max(map(len, column)) for column in columns]
    aligned = [
        [f"{cell:>{width}}" if column[0] == "score" else f"{cell:<{width}}" for cell in column]
        for column, width in zip(columns, widths, strict=True)
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*aligned, strict=True))


def _metrics() -> Any:
    from sacrebleu import metrics

    return metrics


def _score_one(
    name: str, metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, bootstrap: int, seed: int
) -> MetricScore:
    counted = count(metric, hypotheses, references)
    interval = None
    if bootstrap > 1:
        interval = _interval(counted.resample(bootstrap, seed))
        metric.n_bootstrap, metric.seed = bootstrap, seed
    return MetricScore(name, counted.score, str(metric.get_signature()), interval)


def _interval(values: Sequence[Any]) -> tuple[float, float]:
    """As sacrebleu has it: the middle 95 % of the values are wide, but the mean stands in the middle.

    It reckons with the type that the values have, and fails where that is not that of the 0 of a sample in which nothing is right.
    """
    kind, margin = type(max(values)), len(values) // 40
    ordered = sorted(map(kind, values))
    mean, half_width = statistics.mean(ordered), 0.5 * (ordered[-1 - margin] - ordered[margin])
    return float(mean) - float(half_width), float(mean) + float(half_width)


def _check_counts(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if not hypotheses:
        raise DataError("nothing to score: there are no hypotheses")
    if not references:
        raise DataError("nothing to score against: there are no references")
    for number, stream in enumerate(references, start=1):
        if len(stream) != len(hypotheses):
            which = f"reference {number}" if len(references) > 1 else "the reference"
            raise DataError(f"the hypotheses have {len(hypotheses)} lines, but {which} has {len(stream)}; they go line by line")


def perplexity(mean_loss: float) -> float:
    """exp of a mean negative log-likelihood in nats per token, limited to exp(700), near the largest float."""
    return exp(min(mean_loss, 700))
