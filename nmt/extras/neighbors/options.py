"""The option of `nmt translate` for a translation memory."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from nmt.commands.options import Extension, OutputOptions


@dataclass(frozen=True)
class MemoryOptions(Extension):
    """Which memory to use: a field for each option."""

    memory: Annotated[
        Path | None,
        typer.Option(
            "--memory",
            help="Translate as the pairs of this file: TMX, table, PO, ... (as for nmt init).",
            metavar="FILE",
        ),
    ] = None

    @property
    def overrides(self) -> Sequence[str]:
        """The model looks at the pairs of the memory, with a weight that suits most of them."""
        if self.memory is None:
            return ()
        values = {
            "memory": json.dumps(str(self.memory), ensure_ascii=False),
            "pairs": 16,
            "weight": 0.8,
        }
        return [f"decoding.neighbors.{key}={value}" for key, value in values.items()]

    def check(self, options: OutputOptions) -> None:
        """Raises: typer.BadParameter if options do not go together."""
        if self.memory is not None and options.score:
            raise typer.BadParameter("--score does not search; remove --memory")
