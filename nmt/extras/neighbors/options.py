"""The option of `nmt translate` for a translation memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.commands.options import Document, OutputOptions

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator
    from nmt.run.load import WrapFn


@dataclass(frozen=True)
class MemoryOptions:
    """Which memory to use: a field for each option."""

    memory: Annotated[
        Path | None,
        typer.Option(
            "--memory",
            help="Translate as the pairs of this file: TMX, table, PO, ... (as for nmt init).",
            metavar="FILE",
        ),
    ] = None

    def check(self, options: OutputOptions) -> None:
        """Raises: typer.BadParameter if options do not go together."""
        if self.memory is not None and options.score:
            raise typer.BadParameter("--score does not search; remove --memory")

    def open(self, options: OutputOptions) -> Document | None:
        """None: texts are lines."""
        return None

    def instead(self) -> "Mapping[WrapFn, WrapFn]":
        """The model looks at the pairs of the memory, and not at those of the run."""
        if self.memory is None:
            return {}
        from nmt.extras.neighbors.memory import wrap_with
        from nmt.extras.neighbors.model import wrap

        return {wrap: partial(wrap_with, self.memory)}

    def wrap(self, translator: "Translator") -> "Translator":
        """A translator that knows the exact matches."""
        if self.memory is None:
            return translator
        from nmt.extras.neighbors.memory import MemoryTranslator

        return MemoryTranslator(translator)
