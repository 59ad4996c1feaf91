"""What the parts of an analysis look at, and what they find."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from nmt.decoding.translation import Translation
from nmt.evaluation.results import Evaluation
from nmt.evaluation.scores import sentence_chrf
from nmt.extras.analysis.leaks import TrainingOverlap
from nmt.report.table import Table

N_EXTREMES = 10  # sentences with the highest, and with the lowest chrF


@dataclass(frozen=True)
class Translated:
    """Sentences that a system has translated.

    Attributes:
        sources, outputs: N texts each. references: streams of N texts.
        lowercase: whether the system writes only lower-case letters. Scores then ignore case.
        translations: of the system; empty for a file of translations.
        overlap: of the sentences with the training data; None if that is not known.
        other: a system to compare with; its overlap is None too if its training data is the same.
        language: of the outputs; "" if it is not known.
        subject, facts: of the other system: what it is, and where its outputs come from.
    """

    sources: Sequence[str]
    outputs: Sequence[str]
    references: Sequence[Sequence[str]]
    lowercase: bool = False
    translations: Sequence[Translation] = ()
    overlap: TrainingOverlap | None = None
    other: "Translated | None" = None
    language: str = ""
    subject: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def sentence(self, i: int) -> dict[str, Any]:
        """A sentence with all its texts; the sentence numbers start at 1, like line numbers."""
        source = {"source": self.sources[i]} if self.sources else {}
        reference, output = self.references[0][i], self.outputs[i]
        return {"sentence": i + 1, **source, "reference": reference, "output": output}

    @cached_property
    def extremes(self) -> tuple[list[int], list[int]]:
        """The sentences with the highest and the lowest chrF, none in both; of equal ones the
        longer first.
        """
        references = [
            [line.lower() if self.lowercase else line for line in stream]
            for stream in self.references
        ]
        chrf = sentence_chrf(self.outputs, references)
        order = sorted(range(len(chrf)), key=lambda i: (-chrf[i], -len(self.references[0][i])))
        n = min(N_EXTREMES, len(order) // 2)
        return order[:n], order[::-1][:n]


@dataclass(frozen=True)
class Section:
    """What a part of an analysis finds.

    Attributes:
        remarks: sentences for the reader, below the scores.
        tables: figures by group; in JSON under "breakdown".
        values: further values for JSON.
        text: further text for the screen.
        page: further parts of the page, as (heading, HTML).
        failures: that BLEU is significantly worse than the other system's.
    """

    remarks: Sequence[str] = ()
    tables: Sequence[Table] = ()
    values: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    page: Sequence[tuple[str, str]] = ()
    failures: Sequence[str] = ()


@dataclass(frozen=True)
class Analysis:
    """An evaluation, and what the parts of the analysis found beyond its scores.

    Attributes:
        sections: always shown. details: shown on the screen if requested; in JSON and on the page
            if there are any.
    """

    evaluation: Evaluation
    sections: Sequence[Section]
    details: Sequence[Section] = ()

    @property
    def remarks(self) -> list[str]:
        """Sentences for the reader, below the scores."""
        return [
            self.evaluation.remark,
            *(remark for section in self.sections for remark in section.remarks),
        ]

    def to_dict(self) -> dict[str, Any]:
        values = self.evaluation.to_dict()
        for section in (*self.sections, *self.details):
            for table in section.tables:
                values.setdefault("breakdown", {})[table.name] = table.to_dict()
            values.update(section.values)
        return values

    def to_text(self, *, details: bool) -> str:
        """For the screen, with the details if requested."""
        blocks = ["\n".join([self.evaluation.to_text(), *self.remarks[1:]])]
        for section in (*self.sections, *(self.details if details else ())):
            blocks += [table.to_text() for table in section.tables]
            blocks += [section.text] if section.text else []
        return "\n\n".join(blocks)


def sentence_text(sentence: dict[str, Any]) -> str:
    """A sentence for the screen, each text on a line."""
    return "\n".join(f"  {key:<10} {value}" for key, value in sentence.items() if key != "gain")
