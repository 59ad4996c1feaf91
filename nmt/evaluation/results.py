"""What is evaluated, and the results: as text for the screen, as JSON, and against limits."""

import hashlib
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nmt.data.corpus import read_sentences
from nmt.errors import DataError
from nmt.evaluation.scores import METRICS, MetricScore, perplexity, score_table
from nmt.lines import read_text_lines
from nmt.report.table import Table, TableCell

# How a file of markup begins, such as the SGML of WMT.
_MARKUP = re.compile(
    r"\s*<(?:\?xml|!doctype|!--|(?:refset|tstset|srcset|mteval|dataset|doc|seg|tmx|xliff|html)\b)",
    re.IGNORECASE,
)
# A line of JSON lines, or of a table with quoted cells.
_RECORD = re.compile(r'\s*(?:\{\s*".*\}|"(?:[^"]|"")*"(?:,"(?:[^"]|"")*")+)\s*$')
MAX_TABS = 0.1  # share of lines with tabs; in text they are rare


@dataclass(frozen=True)
class EvaluationSet:
    """N sentences with references.

    Attributes:
        name: for the report.
        sources: N texts; None if only translations and references are given.
        references: streams of N texts; each stream is one set of references.
        split: of the prepared data; None for texts of files.
    """

    name: str
    sources: list[str] | None
    references: list[list[str]]
    split: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of all texts: scores with the same digest are comparable."""
        streams = [self.sources or [], *self.references]
        return hashlib.sha256(
            "\0".join("\n".join(stream) for stream in streams).encode()
        ).hexdigest()

    def __len__(self) -> int:
        return len(self.references[0])


def read_split(prepared: Path, split: str) -> EvaluationSet:
    """Dev or test of prepared data. Raises: DataError if it is missing or damaged."""
    return EvaluationSet(
        f"{split} split",
        read_sentences(prepared, split, "src"),
        [read_sentences(prepared, split, "tgt")],
        split,
    )


def read_files(first: Path, references: Sequence[Path]) -> tuple[list[str], list[list[str]]]:
    """Read the lines of a file, and the streams of references for them.

    Raises:
        DataError: as `read_texts`, or a file has another number of lines.
    """
    lines = read_texts(first)
    streams = [read_texts(path) for path in references]
    for path, stream in zip(references, streams, strict=True):
        if len(stream) != len(lines):
            raise DataError(f"{path} has {len(stream)} lines, but {first} has {len(lines)}")
    return lines, streams


def read_texts(path: Path) -> list[str]:
    """The lines of a UTF-8 file, which may be packed.

    Raises:
        DataError: it cannot be read, has no text, is markup, or seems to have columns.
    """
    lines = [*read_text_lines(path)]
    filled = [line for line in lines if line.strip()]
    if not filled:
        raise DataError(f"{path} has only empty lines; there is nothing to score")
    if _MARKUP.match(filled[0]):
        raise DataError(
            f"{path}: is SGML, XML or HTML; save it as text with a sentence in each line, as "
            "`sacrebleu -t` writes the test sets of WMT"
        )
    if all(_RECORD.match(line) for line in filled):
        raise DataError(
            f"{path}: has a JSON object or several quoted cells in each line; leave only the texts "
            "to score, one per line"
        )
    n_tabs = sum("\t" in line for line in filled)
    if n_tabs > MAX_TABS * len(filled):
        raise DataError(
            f"{path}: {n_tabs:,} of {len(filled):,} lines have tabs, so they seem to have several "
            "columns; leave only the column to score (`cut -f`)"
        )
    return lines


def pick_across_lengths(texts: Sequence[str], n: int) -> list[int]:
    """Indices of at most `n` texts from short to long, evenly spaced in the order of lengths."""
    by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    n = min(n, len(texts))
    return [by_length[(2 * k + 1) * len(texts) // (2 * n)] for k in range(n)]


@dataclass(frozen=True)
class Evaluation:
    """The scores of a run, an ensemble or a file of translations.

    Attributes:
        subject: what was scored, for the reader.
        text: the sentences. outputs: their translations.
        facts: run, step, split, hashes and so on, for JSON.
        scores: of the detokenized text, case-sensitive.
        lowercase_scores: the same, ignoring case; empty if not requested.
        loss: teacher-forced, in nats per token of the references; None for a file of translations.
    """

    subject: str
    text: EvaluationSet
    outputs: list[str]
    facts: dict[str, Any]
    scores: list[MetricScore]
    lowercase_scores: Sequence[MetricScore] = ()
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
        loss = {} if self.loss is None else {"loss": self.loss, "perplexity": perplexity(self.loss)}
        return {
            "scores": [score.to_dict() for score in self.scores],
            "lowercase_scores": [score.to_dict() for score in self.lowercase_scores],
            "exact_match": self.exact_match,
            **loss,
            **self.facts,
        }

    def to_text(self) -> str:
        lines = [self.subject, score_table(self.scores).to_text()]
        if self.lowercase_scores:
            lines += ["ignoring case", score_table(self.lowercase_scores).to_text()]
        return "\n".join([*lines, self.remark])


@dataclass(frozen=True)
class RunsSummary:
    """The scores of several runs that differ in the seed: mean and standard deviation."""

    evaluations: Sequence[Evaluation]

    @property
    def scores(self) -> list[MetricScore]:
        return [MetricScore(name, mean, "mean") for name, mean, _ in self._rows()]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: mean and standard deviation of each metric, then each run."""
        keys = ("metric", "score", "standard_deviation")
        return {
            "scores": [dict(zip(keys, row, strict=True)) for row in self._rows()],
            "runs": [evaluation.to_dict() for evaluation in self.evaluations],
        }

    def to_text(self) -> str:
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
    return [
        *evaluation.scores,
        *(replace(each, name=f"{each.name} (lower-case)") for each in evaluation.lowercase_scores),
    ]


def missed_limits(scores: Sequence[MetricScore], limits: Mapping[str, float]) -> list[str]:
    """The limits that the scores do not meet, and by how much.

    Args:
        limits: metric -> its minimum; its maximum for a metric where less is better.
    """
    values, missed = {score.name: score.value for score in scores}, []
    for metric, limit in limits.items():
        value, less_is_better = values[metric], METRICS[metric].trait("less_is_better")
        if not (value <= limit if less_is_better else value >= limit):  # NaN meets no limit
            side = "above" if less_is_better else "below"
            missed.append(f"{metric} {value:.2f} is {side} {limit:g}, by {abs(value - limit):.2f}")
    return missed
