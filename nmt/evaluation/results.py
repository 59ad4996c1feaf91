"""The results of an evaluation: as text for the screen, as JSON, and against limits."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nmt.data.evaluation_set import EvaluationSet
from nmt.evaluation.scores import METRICS, MetricScore, perplexity, score_table
from nmt.report.table import Table, TableCell

TOKENIZED_WARNING = "tokenized, as in old papers: do not compare with the scores above"


@dataclass(frozen=True)
class Evaluation:
    """The scores of a run, an ensemble or a file of translations.

    Attributes:
        subject: what was scored, for the reader.
        text: the sentences. outputs: their translations.
        facts: run, step, split, hashes and so on, for JSON.
        scores: of the detokenized text, case-sensitive.
        lowercase_scores: the same, ignoring case; empty if not requested.
        tokenized_scores: BLEU of tokenized text, as old papers count it; empty if not requested.
        loss: teacher-forced, in nats per token of the references; None for a file of translations.
    """

    subject: str
    text: EvaluationSet
    outputs: list[str]
    facts: dict[str, Any]
    scores: list[MetricScore]
    lowercase_scores: Sequence[MetricScore] = ()
    tokenized_scores: Sequence[MetricScore] = ()
    loss: float | None = None

    @property
    def exact_match(self) -> float:
        """The share of outputs that equal a reference."""
        rows = zip(self.outputs, *self.text.references, strict=True)
        return sum(output in references for output, *references in rows) / len(self.outputs)

    @property
    def remark(self) -> str:
        """A sentence for the reader, below the scores."""
        text = f"{100 * self.exact_match:.1f} % of the outputs equal a reference"
        if self.loss is None:
            return text
        return f"{text}; perplexity of the references {perplexity(self.loss):.2f} per token"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        loss = {} if self.loss is None else {"loss": self.loss, "perplexity": perplexity(self.loss)}
        return {
            "scores": [score.to_dict() for score in self.scores],
            "lowercase_scores": [score.to_dict() for score in self.lowercase_scores],
            "tokenized_scores": [score.to_dict() for score in self.tokenized_scores],
            "exact_match": self.exact_match,
            **loss,
            **self.facts,
        }

    def to_text(self) -> str:
        """For the screen."""
        lines = [self.subject, score_table(self.scores).to_text()]
        if self.lowercase_scores:
            lines += ["ignoring case", score_table(self.lowercase_scores).to_text()]
        if self.tokenized_scores:
            lines += [
                TOKENIZED_WARNING,
                score_table(self.tokenized_scores).to_text(),
            ]
        return "\n".join([*lines, self.remark])


@dataclass(frozen=True)
class RunsSummary:
    """The scores of several runs that differ in the seed: mean and standard deviation."""

    evaluations: Sequence[Evaluation]

    @property
    def scores(self) -> list[MetricScore]:
        """The means."""
        return [MetricScore(name, mean, "mean") for name, mean, _ in self._rows()]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: mean and standard deviation of each metric, then each run."""
        keys = ("metric", "score", "standard_deviation")
        return {
            "scores": [dict(zip(keys, row, strict=True)) for row in self._rows()],
            "runs": [evaluation.to_dict() for evaluation in self.evaluations],
        }

    def to_text(self) -> str:
        """For the screen."""
        names, means, deviations = zip(*self._rows(), strict=True)
        subjects = []
        rows: list[tuple[TableCell, ...]] = []
        for number, evaluation in enumerate(self.evaluations, 1):
            subjects.append(f"run {number}: {evaluation.subject}")
            rows.append((f"run {number}", *(score.value for score in _scores(evaluation))))
        rows += [("mean", *means), ("standard deviation", *deviations)]
        return "\n".join([*subjects, Table("runs", "", ("", *names), rows, digits=2).to_text()])

    def _rows(self) -> list[tuple[str, float, float]]:
        """Metric, mean, and standard deviation of the sample (n - 1)."""
        rows = []
        for scores in zip(*map(_scores, self.evaluations), strict=True):
            values = [score.value for score in scores]
            rows.append((scores[0].name, statistics.mean(values), statistics.stdev(values)))
        return rows


def _scores(evaluation: Evaluation) -> list[MetricScore]:
    """The scores, and those that ignore case, with names that tell them apart."""
    lowercase = (
        replace(score, name=f"{score.name} (lower-case)") for score in evaluation.lowercase_scores
    )
    return [*evaluation.scores, *lowercase]


def missed_limits(scores: Sequence[MetricScore], limits: Mapping[str, float]) -> list[str]:
    """The limits that the scores do not meet, and by how much.

    Args:
        limits: metric -> its minimum; its maximum for a metric where less is better.
    """
    values, missed = {score.name: score.value for score in scores}, []
    for metric, limit in limits.items():
        value, less_is_better = values[metric], METRICS[metric].less_is_better
        if not (value <= limit if less_is_better else value >= limit):  # NaN meets no limit
            side = "above" if less_is_better else "below"
            missed.append(f"{metric} {value:.2f} is {side} {limit:g}, by {abs(value - limit):.2f}")
    return missed
