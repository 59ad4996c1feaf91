"""The options of `nmt translate` for texts."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.commands.options import Extension, OutputOptions
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator


@dataclass(frozen=True)
class TextOptions(Extension):
    """How to treat texts: a field for each option."""

    no_split: Annotated[
        bool,
        typer.Option(
            "--no-split",
            help="Translate each line as one sentence, and ALL CAPITALS as they are.",
        ),
    ] = False
    no_protect: Annotated[
        bool,
        typer.Option(
            "--no-protect",
            help="Leave placeholders, tags, addresses and numbers to the model.",
        ),
    ] = False
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            help="Keep what this regular expression finds, too; may be repeated.",
            metavar="REGEX",
        ),
    ] = None
    glossary: Annotated[
        Path | None,
        typer.Option(
            "--glossary",
            help="Translate terms as this file says: in each line a term, a tab, its translation.",
            metavar="FILE",
        ),
    ] = None
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
        if self.keep and self.no_protect:
            raise typer.BadParameter("--keep protects; remove --no-protect")
        for pattern in self.keep or ():
            try:
                re.compile(pattern)
            except re.error as error:
                raise typer.BadParameter(
                    f"--keep {pattern!r}: no regular expression ({error})"
                ) from None

    def wrap(self, translator: "Translator") -> "Translator":
        """A translator of texts.

        Raises:
            ConfigError: the run has no confidence.
            DataError: the glossary cannot be read.
        """
        from nmt.extras.texts.glossary import Glossary
        from nmt.extras.texts.translator import Settings, TextTranslator

        if self.least_confidence is not None and translator.confidence is None:
            raise ConfigError(
                "--least-confidence: the run has no confidence for its checkpoint and "
                "decoding.method; run `nmt runs calibrate RUN` first"
            )
        keep = None if self.no_protect else tuple(map(re.compile, self.keep or ()))
        settings = Settings(not self.no_split, keep, self.least_confidence)
        glossary = None if self.glossary is None else Glossary.read(self.glossary)
        return TextTranslator.of(translator, settings, glossary=glossary)
