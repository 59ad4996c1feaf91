"""Translates texts: splits them into sentences, protects what must stay, and joins the results."""

from collections.abc import Sequence
from typing import Self

from nmt.decoding.translator import Translation, Translator
from nmt.extras.texts.confidence import marked_for_reading
from nmt.extras.texts.marked import Marked


class TextTranslator(Translator):
    """A translator of texts of any number of sentences.

    Attributes:
        least_confidence: translations with less get a warning, and are marked in `facts`.
    """

    least_confidence: float | None = None

    @classmethod
    def of(cls, translator: Translator, *, least_confidence: float | None = None) -> Self:
        """The same model, for texts."""
        texts = cls(
            translator.model,
            tokenizers=translator.tokenizers,
            vocabularies=translator.vocabularies,
            options=translator.options,
            words=translator.words,
            rankers=translator.rankers,
            confidence=translator.confidence,
        )
        texts.least_confidence = least_confidence
        return texts

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

    def _judged(self, translation: Translation) -> Translation:
        judged = super()._judged(translation)
        least = self.least_confidence
        return judged if least is None else marked_for_reading(judged, least)
