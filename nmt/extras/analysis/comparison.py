"""Comparison with another system on the same sentences: differences with p-values, and the
sentences that changed most.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from nmt.data.evaluation_set import EvaluationSet
from nmt.extras.analysis.leaks import TrainingOverlap
from nmt.extras.analysis.significance import (
    Change,
    Difference,
    compare,
    difference_table,
    largest_changes,
)
from nmt.report.table import Table

N_CHANGES = 10  # sentences that gained most, and that lost most


@dataclass(frozen=True)
class OtherSystem:
    """A system to compare with.

    Attributes:
        subject: what it is, for the reader.
        outputs: its translations of the same sentences.
        facts: where they come from, for JSON.
        lowercase: whether it writes only lower-case letters.
        overlap: of the sentences with its training data; None if that data is the evaluated
            system's too, or not known.
    """

    subject: str
    outputs: list[str]
    facts: dict[str, Any]
    lowercase: bool = False
    overlap: TrainingOverlap | None = None


@dataclass(frozen=True)
class DifferentTrainingData:
    """The systems were trained on different data, so that each may know other test sentences.

    Attributes:
        exact, near: how many sentences are exactly, and nearly, in the other system's training
            data.
        clean: how many are in neither system's; 0 if the evaluated system's data is not known.
        differences: by metric, on the clean sentences; empty if all sentences are clean, or none.
    """

    exact: int
    near: int
    clean: int
    differences: list[Difference]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        differences = [difference.to_dict() for difference in self.differences]
        return {
            "exact": self.exact,
            "near": self.near,
            "clean": self.clean,
            "differences_without": differences,
        }


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        other: the system compared with.
        differences: by metric.
        changes: the sentences that gained most, then those that lost most.
        different_data: None if both systems were trained on the same data, or the other's data is
            not known.
        lowercase: whether case was ignored.
    """

    other: OtherSystem
    differences: list[Difference]
    changes: list[Change]
    different_data: DifferentTrainingData | None = None
    lowercase: bool = False

    @property
    def subject(self) -> str:
        """The other system, for the reader."""
        return f"{self.other.subject}, ignoring case" if self.lowercase else self.other.subject

    @property
    def remarks(self) -> list[str]:
        """Sentences for the reader, beside the tables."""
        data = self.different_data
        if data is None:
            return []
        return [
            (
                f"sentences in the other system's training data: {data.exact:,} exactly, "
                f"{data.near:,} nearly"
            )
        ]

    def tables(self) -> list[Table]:
        """The differences; then those on the sentences that neither system was trained on."""
        tables = [difference_table(self.differences)]
        if self.different_data is not None and self.different_data.differences:
            note = (
                f"on the {self.different_data.clean:,} sentences that are in neither system's "
                "training data"
            )
            tables.append(replace(difference_table(self.different_data.differences), note=note))
        return tables


def compare_systems(
    text: EvaluationSet,
    outputs: Sequence[str],
    other: OtherSystem,
    metrics: Sequence[str],
    *,
    overlap: TrainingOverlap | None = None,
    lowercase: bool = False,
) -> Comparison:
    """Compare the outputs with another system's.

    Args:
        overlap: of the sentences with the training data of the system that is evaluated; None if
            that is not known.
        lowercase: whether this system writes only lower-case letters. If one of the two does, the
            comparison ignores case.
    """
    lowercase = lowercase or other.lowercase
    ours, theirs, *references = (
        [line.lower() if lowercase else line for line in lines]
        for lines in (outputs, other.outputs, *text.references)
    )
    different_data = None
    if other.overlap is not None:
        clean = [] if overlap is None else sorted({*other.overlap.clean} & {*overlap.clean})
        differences: list[Difference] = []
        if 0 < len(clean) < len(text):
            ours_clean, theirs_clean, *clean_references = (
                [lines[i] for i in clean] for lines in (ours, theirs, *references)
            )
            differences = compare(
                ours_clean, theirs_clean, clean_references, metrics, lowercase=lowercase
            )
        different_data = DifferentTrainingData(
            sum(other.overlap.exact), sum(other.overlap.near), len(clean), differences
        )
    return Comparison(
        other,
        compare(ours, theirs, references, metrics, lowercase=lowercase),
        largest_changes(ours, theirs, references, N_CHANGES),
        different_data,
        lowercase,
    )
