"""The results of an evaluation, as text for the screen and as JSON."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from nmt.data.evaluation_set import EvaluationSet
from nmt.evaluation.gate import Gate
from nmt.evaluation.scores import MetricScore, format_table, perplexity
from nmt.extras.analysis.alignment_error import AlignmentErrorRate
from nmt.extras.analysis.comparison import Comparison
from nmt.extras.analysis.leaks import Leaks
from nmt.extras.analysis.significance import Change
from nmt.extras.analysis.warnings import DESCRIPTIONS
from nmt.report.table import Table

MAX_CHANGES_SHOWN = 2  # sentences that gained most, and that lost most, on the screen
MAX_LISTED = 10  # sentence numbers per kind of warning on the screen


@dataclass(frozen=True)
class Details:
    """Analyses beyond the scores.

    Attributes:
        tables: scores by group, attention, exposure bias.
        warnings: kind -> indices of the sentences whose output looks wrong.
        best, worst: indices of the sentences with the highest and the lowest chrF.
        alignment_error: of the attention; None without reference alignments.
    """

    tables: list[Table]
    warnings: dict[str, list[int]]
    best: list[int]
    worst: list[int]
    alignment_error: AlignmentErrorRate | None = None


@dataclass(frozen=True)
class Evaluation:
    """The scores of a run, an ensemble or a file of translations.

    Attributes:
        subject: what was scored, for the reader.
        text: the sentences. outputs: their translations.
        facts: run, step, split, hashes and so on, for JSON.
        scores: of the detokenized text, case-sensitive.
        lowercase_scores: the same, ignoring case; empty if not requested.
        tokenized_scores: tokenized BLEU, also ignoring case if `lowercase_scores` does, and BLEU as
            papers count it with Moses; empty if not requested.
        loss: teacher-forced, in nats per token of the references; None for a file of translations.
        comparison: with another system, if requested.
        leaks: None if the training data is not known.
        details: None if not requested.
    """

    subject: str
    text: EvaluationSet
    outputs: list[str]
    facts: dict[str, Any]
    scores: list[MetricScore]
    lowercase_scores: Sequence[MetricScore] = ()
    tokenized_scores: Sequence[MetricScore] = ()
    loss: float | None = None
    comparison: Comparison | None = None
    leaks: Leaks | None = None
    details: Details | None = None

    @property
    def exact_match(self) -> float:
        """The share of outputs that equal a reference."""
        rows = zip(self.outputs, *self.text.references, strict=True)
        return sum(output in references for output, *references in rows) / len(self.outputs)

    @property
    def remarks(self) -> list[str]:
        """Sentences for the reader, below the scores."""
        lines = [f"{100 * self.exact_match:.1f} % of the outputs equal a reference"]
        if self.loss is not None:
            lines[0] += f"; perplexity of the references {perplexity(self.loss):.2f} per token"
        if self.leaks is not None:
            lines.append(str(self.leaks))
        if self.details is not None and self.details.alignment_error is not None:
            error = self.details.alignment_error
            lines.append(
                f"alignment error rate {100 * error.rate:.1f} % on {error.sentences:,} "
                "sentences "
                "with reference alignments"
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "scores": [score.to_dict() for score in self.scores],
            "lowercase_scores": [score.to_dict() for score in self.lowercase_scores],
            "tokenized_scores": [score.to_dict() for score in self.tokenized_scores],
            "exact_match": self.exact_match,
            **(
                {}
                if self.loss is None
                else {"loss": self.loss, "perplexity": perplexity(self.loss)}
            ),
            **self.facts,
            **({} if self.leaks is None else {"leaks": self.leaks.to_dict()}),
            **({} if self.details is None else self._details_to_dict(self.details)),
            **(
                {}
                if self.comparison is None
                else {"comparison": self._comparison_to_dict(self.comparison)}
            ),
        }

    def to_table(self, *, details: bool = False) -> str:
        """Text for the screen, with the details if requested."""
        lines = [self.subject, format_table(self.scores)]
        if self.lowercase_scores:
            lines += ["ignoring case", format_table(self.lowercase_scores)]
        if self.tokenized_scores:
            lines += [
                "tokenized, as in old papers: do not compare with the scores above",
                format_table(self.tokenized_scores),
            ]
        lines += self.remarks
        if self.comparison is not None:
            lines += ["", *self._comparison_lines(self.comparison)]
        if details and self.details is not None:
            lines += ["", *self._detail_lines(self.details)]
        return "\n".join(lines)

    def failures(self, gate: Gate) -> list[str]:
        """The conditions of the gate that are not met."""
        return gate.failures(
            self.scores, [] if self.comparison is None else self.comparison.differences
        )

    def sentence(self, i: int) -> dict[str, Any]:
        """A sentence with all its texts; the sentence numbers start at 1, like line numbers."""
        source = {} if self.text.sources is None else {"source": self.text.sources[i]}
        return {
            "sentence": i + 1,
            **source,
            "reference": self.text.references[0][i],
            "output": self.outputs[i],
        }

    def changed_sentence(self, comparison: Comparison, change: Change) -> dict[str, Any]:
        """As `sentence`, with the other system's output and the gain in chrF."""
        return {
            **self.sentence(change.index),
            "other": comparison.other.outputs[change.index],
            "gain": change.gain,
        }

    def _details_to_dict(self, details: Details) -> dict[str, Any]:
        error = details.alignment_error
        return {
            "breakdown": {table.name: table.to_dict() for table in details.tables},
            "outputs": {
                kind: [i + 1 for i in indices] for kind, indices in details.warnings.items()
            },
            "best": [self.sentence(i) for i in details.best],
            "worst": [self.sentence(i) for i in details.worst],
            **(
                {}
                if error is None
                else {"alignment_error_rate": error.rate, "aligned_sentences": error.sentences}
            ),
        }

    def _comparison_to_dict(self, comparison: Comparison) -> dict[str, Any]:
        data = comparison.different_data
        return {
            "other": comparison.other.facts,
            "differences": [difference.to_dict() for difference in comparison.differences],
            **({} if data is None else {"leaks_of_other": data.to_dict()}),
            "sentences": [
                self.changed_sentence(comparison, change) for change in comparison.changes
            ],
        }

    def _detail_lines(self, details: Details) -> list[str]:
        lines = [f"{table.to_text()}\n" for table in details.tables]
        for kind, indices in details.warnings.items():
            numbers = ", ".join(str(i + 1) for i in indices[:MAX_LISTED]) + (
                " ..." if len(indices) > MAX_LISTED else ""
            )
            lines.append(
                f"{f'{kind} outputs':<20}{len(indices):>5,}  {DESCRIPTIONS[kind]}"
                + (f": {numbers}" if indices else "")
            )
        for heading, indices in (("best", details.best), ("worst", details.worst)):
            lines.append(f"\nthe {len(indices)} {heading} sentences, by chrF")
            lines += [line for i in indices for line in _sentence_lines(self.sentence(i))]
        return lines

    def _comparison_lines(self, comparison: Comparison) -> list[str]:
        gained = [change for change in comparison.changes if change.gain > 0]
        lost = [change for change in comparison.changes if change.gain < 0]
        lines = [
            f"compared with {comparison.subject}",
            *comparison.remarks,
            *(table.to_text() for table in comparison.tables()),
        ]
        if comparison.changes:
            lines.append("\nthe sentences that changed most, by chrF")
        for change in [*gained[:MAX_CHANGES_SHOWN], *lost[:MAX_CHANGES_SHOWN]]:
            lines += [
                f"chrF {change.gain:+.1f}",
                *_sentence_lines(self.changed_sentence(comparison, change)),
            ]
        return lines


@dataclass(frozen=True)
class RunsSummary:
    """The scores of several runs that differ in the seed: mean and standard deviation."""

    evaluations: Sequence[Evaluation]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: mean and standard deviation of each metric, then each run."""
        rows = [
            {"metric": name, "score": mean, "standard_deviation": deviation}
            for name, mean, deviation in self._rows()
        ]
        return {"scores": rows, "runs": [evaluation.to_dict() for evaluation in self.evaluations]}

    def to_table(self, *, details: bool = False) -> str:
        """Text for the screen; only a single run has details."""
        table = [["", *(name for name, *_ in self._rows())]]
        for number, evaluation in enumerate(self.evaluations, 1):
            table.append(
                [f"run {number}", *(f"{score.value:.2f}" for score in _all_scores(evaluation))]
            )
        table.append(["mean", *(f"{mean:.2f}" for _, mean, _ in self._rows())])
        table.append(
            ["standard deviation", *(f"{deviation:.2f}" for *_, deviation in self._rows())]
        )
        widths = [max(7, len(name)) for name, *_ in self._rows()]
        rows = [
            "  ".join(
                [
                    f"{name:<18}",
                    *(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)),
                ]
            ).rstrip()
            for name, *cells in table
        ]
        return "\n".join(
            [
                *(f"run {number}: {run.subject}" for number, run in enumerate(self.evaluations, 1)),
                *rows,
            ]
        )

    def failures(self, gate: Gate) -> list[str]:
        """The conditions of the gate that the means do not meet."""
        return gate.failures([MetricScore(name, mean, "mean") for name, mean, _ in self._rows()])

    def _rows(self) -> list[tuple[str, float, float]]:
        """Metric, mean, and standard deviation of the sample (n - 1)."""
        columns = [
            [score.value for score in column]
            for column in zip(*map(_all_scores, self.evaluations), strict=True)
        ]
        names = [score.name for score in _all_scores(self.evaluations[0])]
        return [
            (name, statistics.mean(values), statistics.stdev(values))
            for name, values in zip(names, columns, strict=True)
        ]


def _all_scores(evaluation: Evaluation) -> list[MetricScore]:
    lowercase = (
        replace(score, name=f"{score.name} (lower-case)") for score in evaluation.lowercase_scores
    )
    return [*evaluation.scores, *lowercase, *evaluation.tokenized_scores]


def _sentence_lines(sentence: dict[str, Any]) -> list[str]:
    names = ("sentence", "source", "reference", "output", "other")
    return [f"  {name:<10} {sentence[name]}" for name in names if name in sentence]
