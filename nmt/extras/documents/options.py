"""The options of `nmt translate` for documents."""

from dataclasses import dataclass

from nmt.commands.translate import Document, OutputOptions
from nmt.decoding.translator import Translator


@dataclass(frozen=True)
class DocumentOptions:
    """Which document to translate: a field for each option."""

    def check(self, options: OutputOptions) -> None:
        """Raises: typer.BadParameter if options do not go together."""

    def open(self, options: OutputOptions) -> Document | None:
        """The document, if the file is one by its suffix or by --format."""
        return None

    def wrap(self, translator: Translator) -> Translator:
        """The same translator."""
        return translator
