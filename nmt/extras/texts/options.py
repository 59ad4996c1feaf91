"""The options of `nmt translate` for texts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.commands.translate import Document, OutputOptions
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator


@dataclass(frozen=True)
class TextOptions:
    """How to treat texts: a field for each option."""

    least_confidence: Annotated[
        float | None,
        typer.Option(
            "--least-confidence",
            min=0,
            max=1,
            help="Mark translations for a person to read that are less probably good than this; "
            "`nmt runs calibrate` measures it.",
            metavar="P",
        ),
    ] = None

    def check(self, options: OutputOptions) -> None:
        """Raises: typer.BadParameter if options do not go together."""

    def open(self, options: OutputOptions) -> Document | None:
        """None: texts are lines."""
        return None

    def wrap(self, translator: "Translator") -> "Translator":
        """A translator of texts. Raises: ConfigError: the run has no confidence."""
        from nmt.extras.texts.translator import TextTranslator

        if self.least_confidence is not None and translator.confidence is None:
            raise ConfigError(
                "--least-confidence: the run has no confidence for its checkpoint and "
                "decoding.method; run `nmt runs calibrate RUN` first"
            )
        return TextTranslator.of(translator, least_confidence=self.least_confidence)
