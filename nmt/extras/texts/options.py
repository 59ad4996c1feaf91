"""The options of `nmt translate` for texts."""

from dataclasses import dataclass

from nmt.commands.translate import Document, OutputOptions
from nmt.decoding.translator import Translator


@dataclass(frozen=True)
class TextOptions:
    """How to treat texts: a field for each option."""

    def check(self, options: OutputOptions) -> None:
        """Raises: typer.BadParameter if options do not go together."""

    def open(self, options: OutputOptions) -> Document | None:
        """None: texts are lines."""
        return None

    def wrap(self, translator: Translator) -> Translator:
        """A translator of texts."""
        from nmt.extras.texts.translator import TextTranslator

        return TextTranslator.of(translator)
