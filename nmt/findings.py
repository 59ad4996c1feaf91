"""What an evaluation has found, for the screen and for machines."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

from nmt.report.gate import Gate
from nmt.report.scores import Score, format_table
from nmt.report.significance import Change, Difference, format_differences
from nmt.text.aligned import Aligned

CHANGES_SHOWN = 2  # sentences that differ most, in either direction, on the screen


@dataclass(frozen=True)
class Other:
    """Another system: in words, its translations of the same sentences, and where they come from."""

    subject: str
    outputs: list[str]
    facts: dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """With another system. differences: by metric. changes: the sentences that differ most."""

    other: Other
    differences: list[Difference]
    changes: list[Change]


@dataclass(frozen=True)
class Evaluation:
    """Scores, and what they are of.

    Attributes:
        subject: for the reader, in a few words.
        text: what was scored on. outputs: what was scored, a text for each sentence.
        facts: run, step, split, hashes and so on, for machines.
        scores: cased and detokenised.
        lowercase: the same scores ignoring case; empty if they were not wanted.
        tokenized: tokenised BLEU, if it was wanted.
        loss: nats per token of the references, teacher-forced; None for a file of translations.
        comparison: with another system, if it was wanted.
    """

    subject: str
    text: Aligned
    outputs: list[str]
    facts: dict[str, Any]
    scores: list[Score]
    lowercase: list[Score]
    tokenized: Score | None = None
    loss: float | None = None
    comparison: Comparison | None = None

    @property
    def exact(self) -> float:
        """The share of outputs that are a reference, letter by letter."""
        rows = zip(self.outputs, *self.text.references, strict=True)
        return sum(output in references for output, *references in rows) / len(self.outputs)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON knows them."""
        return {
            "scores": [score.to_dict() for score in self.scores],
            "lowercase_scores": [score.to_dict() for score in self.lowercase],
            "tokenized_scores": [] if self.tokenized is None else [self.tokenized.to_dict()],
            "exact_match": self.exact,
            **({} if self.loss is None else {"loss": self.loss, "perplexity": exp(self.loss)}),
            **self.facts,
            **({} if self.comparison is None else {"comparison": self._compared(self.comparison)}),
        }

    def to_table(self) -> str:
        """For the screen."""
        lines = [self.subject, format_table(self.scores)]
        if self.lowercase:
            lines += ["ignoring case", format_table(self.lowercase)]
        if self.tokenized is not None:
            lines += ["tokenised, as old papers have it: not to be compared with the scores above", format_table([self.tokenized])]
        loss = "" if self.loss is None else f"; of the references, a perplexity of {exp(self.loss):.2f} per token"
        lines.append(f"{100 * self.exact:.1f} % exactly as a reference{loss}")
        if self.comparison is not None:
            lines += ["", *self._comparison_lines(self.comparison)]
        return "\n".join(lines)

    def faults(self, gate: Gate) -> list[str]:
        """Where it does not meet the gate."""
        return gate.faults(self.scores, [] if self.comparison is None else self.comparison.differences)

    def _compared(self, comparison: Comparison) -> dict[str, Any]:
        return {
            "other": comparison.other.facts,
            "differences": [one.to_dict() for one in comparison.differences],
            "sentences": [self._changed(comparison, change) for change in comparison.changes],
        }

    def _changed(self, comparison: Comparison, change: Change) -> dict[str, Any]:
        """A sentence that differs, in full; sentences are counted from 1, as lines are."""
        i = change.index
        return {
            "sentence": i + 1,
            "gain": change.gain,
            **({} if self.text.sources is None else {"source": self.text.sources[i]}),
            "reference": self.text.references[0][i],
            "output": self.outputs[i],
            "other": comparison.other.outputs[i],
        }

    def _comparison_lines(self, comparison: Comparison) -> list[str]:
        gained = [change for change in comparison.changes if change.gain > 0]
        lost = [change for change in comparison.changes if change.gain < 0]
        lines = [f"against {comparison.other.subject}", format_differences(comparison.differences)]
        for change in [*gained[:CHANGES_SHOWN], *lost[:CHANGES_SHOWN]]:
            row = self._changed(comparison, change)
            lines.append(f"sentence {row['sentence']}, chrF {change.gain:+.1f}")
            lines += [f"  {name:<10}{row[name]}" for name in ("source", "reference", "output", "other") if name in row]
        return lines


@dataclass(frozen=True)
class Seeds:
    """Evaluations of runs that differ in their seed."""

    evaluations: Sequence[Evaluation]

    def to_dict(self) -> dict[str, Any]:
        """Plain values: mean and standard deviation of each metric, then each run."""
        rows = [{"metric": name, "mean": mean, "standard_deviation": deviation} for name, mean, deviation in self._rows()]
        return {"scores": rows, "runs": [evaluation.to_dict() for evaluation in self.evaluations]}

    def to_table(self) -> str:
        """For the screen."""
        table = [["", *(score.name for score in self.evaluations[0].scores)]]
        for number, evaluation in enumerate(self.evaluations, 1):
            table.append([f"run {number}", *(f"{score.value:.2f}" for score in evaluation.scores)])
        table.append(["mean", *(f"{mean:.2f}" for _, mean, _ in self._rows())])
        table.append(["standard deviation", *(f"{deviation:.2f}" for *_, deviation in self._rows())])
        rows = ["  ".join([f"{name:<18}", *(f"{cell:>7}" for cell in cells)]).rstrip() for name, *cells in table]
        return "\n".join([*(f"run {number}: {one.subject}" for number, one in enumerate(self.evaluations, 1)), *rows])

    def faults(self, gate: Gate) -> list[str]:
        """Where the means do not meet the gate."""
        return gate.faults([Score(name, mean, "mean") for name, mean, _ in self._rows()])

    def _rows(self) -> list[tuple[str, float, float]]:
        """Metric, mean, and standard deviation of the sample (n - 1)."""
        columns = [[score.value for score in column] for column in zip(*(one.scores for one in self.evaluations), strict=True)]
        names = [score.name for score in self.evaluations[0].scores]
        return [(name, statistics.mean(values), statistics.stdev(values)) for name, values in zip(names, columns, strict=True)]
