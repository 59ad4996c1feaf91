"""What an evaluation has found, for the screen and for machines."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from nmt.data.evaluation_set import EvaluationSet
from nmt.evaluation.gate import Gate
from nmt.evaluation.leaks import Seen
from nmt.metrics.alignment_error import AlignmentError
from nmt.metrics.scores import MetricScore, format_table
from nmt.metrics.significance import Change, Difference, difference_table
from nmt.metrics.table import Table
from nmt.training.console import perplexity

CHANGES_SHOWN = 2  # sentences that differ most, in either direction, on the screen
LISTED = 10  # sentences of a kind that are listed by number on the screen


@dataclass(frozen=True)
class Other:
    """Another system: in words, its translations of the same sentences, and where they come from.

    seen: what its training data has of the sentences, if that is known.
    """

    subject: str
    outputs: list[str]
    facts: dict[str, Any]
    seen: Seen | None = None


@dataclass(frozen=True)
class Unequal:
    """Two systems that were not trained on the same.

    Attributes:
        exact, near: how many sentences the other's training data has, and nearly has.
        clean: how many neither has; 0 too where it is not known. differences: by metric, on these alone, if not all are clean.
    """

    exact: int
    near: int
    clean: int
    differences: list[Difference]

    def __str__(self) -> str:
        return f"in the training data of the other: {self.exact:,} sentences, and {self.near:,} nearly so"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON knows them."""
        differences = [one.to_dict() for one in self.differences]
        return {"exact": self.exact, "near": self.near, "clean": self.clean, "differences_without": differences}


@dataclass(frozen=True)
class Comparison:
    """With another system.

    differences: by metric. changes: the sentences that differ most. unequal: if it is known to be trained on other data.
    """

    other: Other
    differences: list[Difference]
    changes: list[Change]
    unequal: Unequal | None = None

    @property
    def remarks(self) -> list[str]:
        """What else is to be known of it, a line each."""
        return [] if self.unequal is None else [str(self.unequal)]

    def tables(self) -> list[Table]:
        """The differences, then those without what either was trained on."""
        tables = [difference_table(self.differences)]
        if self.unequal is not None and self.unequal.differences:
            note = f"on the {self.unequal.clean:,} sentences that neither was trained on"
            tables.append(replace(difference_table(self.unequal.differences), note=note))
        return tables


@dataclass(frozen=True)
class Leaks:
    """How many sentences the training data has, and nearly has; and the scores of the others, none where there are no others."""

    exact: int
    near: int
    clean: list[MetricScore]

    def __str__(self) -> str:
        without = ", ".join(f"{score.name} {score.value:.2f}" for score in self.clean) or "nothing is left to score"
        rest = f"; without these {without}" if self.exact or self.near else ""
        return f"in the training data: {self.exact:,} sentences, and {self.near:,} nearly so{rest}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON knows them."""
        return {"exact": self.exact, "near": self.near, "scores_without": [score.to_dict() for score in self.clean]}


@dataclass(frozen=True)
class Details:
    """What the scores do not say.

    Attributes:
        tables: scores by group, attention, exposure bias.
        faults: kind -> sentences whose output is wrong at a glance.
        best, worst: sentences by chrF.
        alignment: how far the attention is from alignments by hand, where there are any.
    """

    tables: list[Table]
    faults: dict[str, list[int]]
    best: list[int]
    worst: list[int]
    alignment: AlignmentError | None = None


@dataclass(frozen=True)
class Evaluation:
    """Scores, and what they are of.

    Attributes:
        subject: for the reader, in a few words.
        text: what was scored on. outputs: what was scored, a text for each sentence.
        facts: run, step, split, hashes and so on, for machines.
        scores: cased and detokenised.
        lowercase: the same scores ignoring case; empty if they were not wanted.
        tokenized: tokenised BLEU, and ignoring case if the scores are too; empty if it was not wanted.
        loss: nats per token of the references, teacher-forced; None for a file of translations.
        comparison: with another system, if it was wanted.
        leaks: None where the training data is not there. details: if they were wanted.
    """

    subject: str
    text: EvaluationSet
    outputs: list[str]
    facts: dict[str, Any]
    scores: list[MetricScore]
    lowercase: list[MetricScore]
    tokenized: Sequence[MetricScore] = ()
    loss: float | None = None
    comparison: Comparison | None = None
    leaks: Leaks | None = None
    details: Details | None = None

    @property
    def exact(self) -> float:
        """The share of outputs that are a reference, letter by letter."""
        rows = zip(self.outputs, *self.text.references, strict=True)
        return sum(output in references for output, *references in rows) / len(self.outputs)

    @property
    def remarks(self) -> list[str]:
        """What else is to be known of the outputs, a line each."""
        loss = "" if self.loss is None else f"; of the references, a perplexity of {perplexity(self.loss):.2f} per token"
        lines = [f"{100 * self.exact:.1f} % exactly as a reference{loss}", *([] if self.leaks is None else [str(self.leaks)])]
        if self.details is not None and self.details.alignment is not None:
            error = self.details.alignment
            lines.append(f"alignment error rate {100 * error.rate:.1f} % on {error.sentences:,} sentences aligned by hand")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON knows them."""
        return {
            "scores": [score.to_dict() for score in self.scores],
            "lowercase_scores": [score.to_dict() for score in self.lowercase],
            "tokenized_scores": [score.to_dict() for score in self.tokenized],
            "exact_match": self.exact,
            **({} if self.loss is None else {"loss": self.loss, "perplexity": perplexity(self.loss)}),
            **self.facts,
            **({} if self.leaks is None else {"leaks": self.leaks.to_dict()}),
            **({} if self.details is None else self._detailed(self.details)),
            **({} if self.comparison is None else {"comparison": self._compared(self.comparison)}),
        }

    def to_table(self, *, details: bool = False) -> str:
        """For the screen, with the details if they are there."""
        lines = [self.subject, format_table(self.scores)]
        if self.lowercase:
            lines += ["ignoring case", format_table(self.lowercase)]
        if self.tokenized:
            lines += ["tokenised, as old papers have it: not to be compared with the scores above", format_table(self.tokenized)]
        lines += self.remarks
        if self.comparison is not None:
            lines += ["", *self._comparison_lines(self.comparison)]
        if details and self.details is not None:
            lines += ["", *self._detail_lines(self.details)]
        return "\n".join(lines)

    def faults(self, gate: Gate) -> list[str]:
        """Where it does not meet the gate."""
        return gate.faults(self.scores, [] if self.comparison is None else self.comparison.differences)

    def sentence(self, i: int) -> dict[str, Any]:
        """A sentence in full; sentences are counted from 1, as lines are."""
        source = {} if self.text.sources is None else {"source": self.text.sources[i]}
        return {"sentence": i + 1, **source, "reference": self.text.references[0][i], "output": self.outputs[i]}

    def _detailed(self, details: Details) -> dict[str, Any]:
        alignment = details.alignment
        return {
            "breakdown": {table.name: table.to_dict() for table in details.tables},
            "outputs": {kind: [i + 1 for i in found] for kind, found in details.faults.items()},
            "best": [self.sentence(i) for i in details.best],
            "worst": [self.sentence(i) for i in details.worst],
            **({} if alignment is None else {"alignment_error_rate": alignment.rate, "aligned_sentences": alignment.sentences}),
        }

    def _detail_lines(self, details: Details) -> list[str]:
        lines = [f"{table.to_text()}\n" for table in details.tables]
        for kind, found in details.faults.items():
            shown = f": {', '.join(str(i + 1) for i in found[:LISTED])}{' ...' if len(found) > LISTED else ''}" if found else ""
            lines.append(f"{f'{kind} outputs':<20}{len(found):>5,}{shown}")
        for heading, chosen in (("best", details.best), ("worst", details.worst)):
            lines.append(f"\nthe {len(chosen)} {heading} sentences, by chrF")
            lines += [line for i in chosen for line in _lines(self.sentence(i))]
        return lines

    def _compared(self, comparison: Comparison) -> dict[str, Any]:
        return {
            "other": comparison.other.facts,
            "differences": [one.to_dict() for one in comparison.differences],
            **({} if comparison.unequal is None else {"leaks_of_other": comparison.unequal.to_dict()}),
            "sentences": [self.changed(comparison, change) for change in comparison.changes],
        }

    def changed(self, comparison: Comparison, change: Change) -> dict[str, Any]:
        """A sentence that differs from the other's, in full."""
        return {**self.sentence(change.index), "other": comparison.other.outputs[change.index], "gain": change.gain}

    def _comparison_lines(self, comparison: Comparison) -> list[str]:
        gained = [change for change in comparison.changes if change.gain > 0]
        lost = [change for change in comparison.changes if change.gain < 0]
        lines = [f"against {comparison.other.subject}", *comparison.remarks, *(table.to_text() for table in comparison.tables())]
        for change in [*gained[:CHANGES_SHOWN], *lost[:CHANGES_SHOWN]]:
            row = self.changed(comparison, change)
            lines += [f"chrF {change.gain:+.1f}", *_lines(row)]
        return lines


@dataclass(frozen=True)
class Seeds:
    """Evaluations of runs that differ in their seed."""

    evaluations: Sequence[Evaluation]

    def to_dict(self) -> dict[str, Any]:
        """Plain values: mean and standard deviation of each metric, then each run."""
        rows = [{"metric": name, "score": mean, "standard_deviation": deviation} for name, mean, deviation in self._rows()]
        return {"scores": rows, "runs": [evaluation.to_dict() for evaluation in self.evaluations]}

    def to_table(self, *, details: bool = False) -> str:
        """For the screen; details are of a single run."""
        table = [["", *(name for name, *_ in self._rows())]]
        for number, evaluation in enumerate(self.evaluations, 1):
            table.append([f"run {number}", *(f"{score.value:.2f}" for score in _all_scores(evaluation))])
        table.append(["mean", *(f"{mean:.2f}" for _, mean, _ in self._rows())])
        table.append(["standard deviation", *(f"{deviation:.2f}" for *_, deviation in self._rows())])
        rows = ["  ".join([f"{name:<18}", *(f"{cell:>7}" for cell in cells)]).rstrip() for name, *cells in table]
        return "\n".join([*(f"run {number}: {one.subject}" for number, one in enumerate(self.evaluations, 1)), *rows])

    def faults(self, gate: Gate) -> list[str]:
        """Where the means do not meet the gate."""
        return gate.faults([MetricScore(name, mean, "mean") for name, mean, _ in self._rows()])

    def _rows(self) -> list[tuple[str, float, float]]:
        """Metric, mean, and standard deviation of the sample (n - 1)."""
        columns = [[score.value for score in column] for column in zip(*map(_all_scores, self.evaluations), strict=True)]
        names = [score.name for score in _all_scores(self.evaluations[0])]
        return [(name, statistics.mean(values), statistics.stdev(values)) for name, values in zip(names, columns, strict=True)]


def _all_scores(evaluation: Evaluation) -> list[MetricScore]:
    return [*evaluation.scores, *(replace(score, name=f"{score.name} (lower-case)") for score in evaluation.lowercase)]


def _lines(sentence: dict[str, Any]) -> list[str]:
    names = ("sentence", "source", "reference", "output", "other")
    return [f"  {name:<10} {sentence[name]}" for name in names if name in sentence]
