"""Results as a table, for the screen, for a page and for JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TableCell = str | int | float
LISTED = 3  # line numbers, for each reason


def label_rows(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """A row (label, text) for each text; only the first row has the label."""
    for i, text in enumerate(texts):
        yield ("" if i else label), text


def counts_by_name(numbers: dict[str, int], lines: dict[str, list[int | str]]) -> str:
    """The sum of some counts, then those above 0, with the first lines of some of them."""
    places = {
        name: f" (at {', '.join(map(str, listed[:LISTED]))}{' ...' * (numbers[name] > LISTED)})"
        for name, listed in lines.items()
    }
    parts = [f"{count:,} {name}{places.get(name, '')}" for name, count in numbers.items() if count]
    return f"{sum(numbers.values()):,}" + (f": {', '.join(parts)}" if parts else "")


@dataclass(frozen=True)
class Table:
    """A row of figures for each group.

    Attributes:
        name: the key in JSON. heading, note: for readers; the note explains the figures.
        columns: their headings, and keys in JSON; the first one is that of the groups.
        rows: a cell for each column.
        digits: decimals of floats. formats: format specifications by column, in place of `digits`.
    """

    name: str
    heading: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[TableCell, ...]]
    note: str = ""
    digits: int = 1
    formats: Mapping[str, str] = field(default_factory=dict)

    def formatted_rows(self) -> list[tuple[str, ...]]:
        return [
            tuple(
                self._format(cell, column) for cell, column in zip(row, self.columns, strict=True)
            )
            for row in self.rows
        ]

    def numeric_columns(self) -> list[bool]:
        """For each column, whether it holds numbers, which are right-aligned."""
        return (
            [not isinstance(cell, str) for cell in self.rows[0]]
            if self.rows
            else [False] * len(self.columns)
        )

    def _format(self, cell: TableCell, column: str) -> str:
        if isinstance(cell, float):
            return format(cell, self.formats.get(column, f",.{self.digits}f"))
        return f"{cell:,}" if isinstance(cell, int) else cell

    def to_text(self) -> str:
        """For the screen: words are left-aligned, numbers right-aligned."""
        rows = [self.columns, *self.formatted_rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                f"{cell:>{width}}" if is_number else f"{cell:<{width}}"
                for cell, width, is_number in zip(row, widths, self.numeric_columns(), strict=True)
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*filter(None, (self.heading, self.note)), *lines])

    def to_dict(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]
