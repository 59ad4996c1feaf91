"""Translates texts: splits them into sentences, protects what must stay, and joins the results."""

from collections.abc import Sequence
from typing import Self

from nmt.decoding.translator import Translation, Translator
from nmt.extras.texts.marked import Marked


class TextTranslator(Translator):
    """A translator of texts of any number of sentences."""

    @classmethod
    def of(cls, translator: Translator) -> Self:
        """The same model, for texts."""
        return cls(
            translator.model,
            tokenizers=translator.tokenizers,
            vocabularies=translator.vocabularies,
            options=translator.options,
            words=translator.words,
            rankers=translator.rankers,
            confidence=translator.confidence,
        )

    def translate_marked(self, texts: Sequence[Marked]) -> list[tuple[Marked, Translation]]:
        """The translation of each text with its markup, and all about it.

        Raises:
            TooLargeError: a text does not fit into memory, even alone.
        """
        best = [
            translations[0]
            for translations in self.translate_n_best([each.text for each in texts], 1)
        ]
        return [(Marked(each.text), each) for each in best]
