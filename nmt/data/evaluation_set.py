"""Sources and references to evaluate on, from prepared data or from line-aligned files."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.data.corpus import read_sentences
from nmt.errors import DataError
from nmt.lines import read_lines


@dataclass(frozen=True)
class EvaluationSet:
    """N sentences with references.

    Attributes:
        name: for the report.
        sources: N texts; None if only translations and references are given.
        references: streams of N texts; each stream is one set of references.
    """

    name: str
    sources: list[str] | None
    references: list[list[str]]

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
    )


def read_files(
    first: Path, references: Sequence[Path], columns: int = 1
) -> tuple[list[str], list[list[str]]]:
    """Read the lines of a file, and the streams of references for them.

    Args:
        columns: the number of references in each line of a reference file, separated by tabs.

    Raises:
        DataError: a file cannot be read, has only empty lines, or has another number of lines or
            columns.
    """
    lines = read_texts(first)
    streams: list[list[str]] = []
    for path in references:
        stream = read_texts(path)
        if len(stream) != len(lines):
            raise DataError(f"{path} has {len(stream)} lines, but {first} has {len(lines)}")
        rows = [line.split("\t") if columns > 1 else [line] for line in stream]
        for number, row in enumerate(rows, 1):
            if len(row) != columns:
                raise DataError(
                    f"{path}, line {number}: {len(row)} columns, expected {columns} references "
                    "separated by tabs"
                )
        streams += map(list, zip(*rows, strict=True))
    return lines, streams


def read_texts(path: Path) -> list[str]:
    """The lines of a UTF-8 file. Raises: DataError if it cannot be read, or has no text."""
    lines = read_lines(path)
    if not any(line.strip() for line in lines):
        raise DataError(f"{path} has only empty lines; there is nothing to score")
    return lines


def pick_across_lengths(texts: Sequence[str], n: int) -> list[int]:
    """Indices of at most `n` texts from short to long, evenly spaced in the order of lengths."""
    by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    n = min(n, len(texts))
    return [by_length[(2 * k + 1) * len(texts) // (2 * n)] for k in range(n)]
