"""Translates texts: splits them into sentences, protects what must stay, and joins the results."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

from nmt.decoding.alignment import written_tokens
from nmt.decoding.batch_runner import TextError
from nmt.decoding.frequencies import WordFrequencies
from nmt.decoding.items import NEXT_VALUE, differences
from nmt.decoding.translator import Translation, Translator, check_n_best, copy_of
from nmt.extras.texts.capitals import is_upper, usual_case
from nmt.extras.texts.confidence import marked_for_reading
from nmt.extras.texts.edits import Edit, apply, apply_to_tokens
from nmt.extras.texts.glossary import Glossary
from nmt.extras.texts.joining import Translated, join
from nmt.extras.texts.marked import Marked
from nmt.extras.texts.passages import Passage, passage_of
from nmt.extras.texts.sentences import sentences, writes_spaces
from nmt.extras.texts.stand_ins import StandIn, StandIns, edits_to_one
from nmt.extras.texts.tags import project
from nmt.extras.texts.words import word_weights
from nmt.text.tokenizers import Tokenizer

N_BEST = 5  # hypotheses of which one may have all stand-ins
ATTEMPTS = 3  # with other stand-ins
MARGIN = 0.2  # by which the score must be better with a name in place of a number
PLACED = (
    "the model lost a placeholder, address, name or number; it now stands where it seems to "
    "belong; check its place"
)


@dataclass(frozen=True)
class Settings:
    """How to treat texts.

    Attributes:
        split: whether to translate each sentence by itself, and in its usual case.
        keep: finds further items; None protects none, and leaves tags to the model.
        least_confidence: translations with less get a warning, and are marked in `facts`.
    """

    split: bool = True
    keep: tuple[re.Pattern[str], ...] | None = ()
    least_confidence: float | None = None


@dataclass(eq=False)
class _Sentence:
    """A sentence on its way.

    Attributes:
        number: of its text.
        passage: its text, items and tags. usual: the text in its usual case.
        is_upper: whether to write the translation in capitals.
        results: its translations, best first. rank: of the best one, among attempts.
    """

    number: int
    passage: Passage
    usual: str
    is_upper: bool
    results: list[Translated] = field(default_factory=list)
    rank: tuple[int, float] = (-1, 0.0)

    @property
    def is_plain(self) -> bool:
        """Whether the model reads it as it is given."""
        return self.passage.is_plain and self.usual == self.passage.text


class _Reading:
    """What the model reads of a sentence: words in the places of its items, and no tags.

    Attributes:
        text: without tags. stand_ins: the words. places: theirs, in `text`. marks: the tags.
        handicap: by how much its translation must be better than others.
    """

    def __init__(
        self, sentence: _Sentence, stand_ins: Sequence[StandIn] = (), handicap: float = 0.0
    ) -> None:
        self.sentence, self.stand_ins, self.handicap = sentence, stand_ins, handicap
        edits = [
            Edit(item.start, item.end, stand_in.source)
            for item, stand_in in zip(sentence.passage.items, stand_ins, strict=True)
        ]

        def moved(place: int) -> int:
            before = [edit for edit in edits if edit.end <= place]
            return place + sum(len(edit.written) - edit.end + edit.start for edit in before)

        self.text = apply(sentence.usual, edits).text
        self.places = [(moved(edit.start), moved(edit.end)) for edit in edits]
        self.marks = [
            replace(mark, position=moved(mark.position)) for mark in sentence.passage.marks
        ]

    def n_kept(self, translation: Translation) -> int:
        """How many stand-ins are kept."""
        return sum(each.is_kept(translation.text) for each in self.stand_ins)

    def rank(self, translation: Translation) -> int:
        """The same, less one if a number is wrong."""
        return self.n_kept(translation) - has_wrong_number(self.text, translation.text)


class TextTranslator(Translator):
    """A translator of texts of any number of sentences. Several threads may use it at once.

    Args:
        sentences: translates them.
        settings: how to treat texts.
        glossary: terms that must be translated as it says.
        known: of the same model; what it knows of words is taken over.
    """

    def __init__(
        self,
        sentences: Translator,
        settings: Settings,
        glossary: Glossary | None = None,
        known: "TextTranslator | None" = None,
    ) -> None:
        super().__init__(
            sentences.model,
            tokenizers=sentences.tokenizers,
            vocabularies=sentences.vocabularies,
            options=sentences.options,
            words=sentences.words,
            rankers=sentences.rankers,
            confidence=sentences.confidence,
        )
        self.sentences, self.settings, self.glossary = sentences, settings, glossary
        if known is None:
            self._stand_ins = StandIns(sentences)
            self._frequencies = WordFrequencies(self.src_tokenizer, self.src_vocabulary)
        else:
            self._stand_ins, self._frequencies = known._stand_ins, known._frequencies

    @classmethod
    def of(
        cls,
        translator: Translator,
        settings: Settings | None = None,
        *,
        glossary: Glossary | None = None,
    ) -> Self:
        """The same model, for texts. Of a translator of texts, what is not given stays, and nothing
        is computed again.
        """
        if not isinstance(translator, TextTranslator):
            return cls(translator, settings or Settings(), glossary)
        settings, glossary = settings or translator.settings, glossary or translator.glossary
        return cls(translator.sentences, settings, glossary, translator)

    def translate_n_best(
        self, texts: Sequence[str], n: int, prefixes: Sequence[str] | None = None
    ) -> list[list[Translation]]:
        """As of sentences. With prefixes, each text is a sentence, and nothing is protected."""
        if prefixes is not None:
            found = self.sentences.translate_n_best(texts, n, prefixes)
            return [[*map(self._marked_for_reading, best)] for best in found]
        check_n_best(n, self.options)
        results = self.translate_marked_n_best([Marked(text) for text in texts], n)
        return [[translation for translation, _ in ranked] for ranked in results]

    def translate_marked(self, texts: Sequence[Marked]) -> list[tuple[Marked, Translation]]:
        """The translation of each text with its markup, and all about it. `source` and `text` of a
        `Translation` have the markup in them.

        Raises:
            TooLargeError: a text does not fit into memory, even alone.
        """
        results = self.translate_marked_n_best(texts, 1)
        return [(marked, translation) for ((translation, marked), *_) in results]

    def translate_marked_n_best(self, texts: Sequence[Marked], n: int) -> list[list[Translated]]:
        """As `translate_marked`: the n best translations of each text."""
        all_parts = {}
        for number, text in enumerate(texts):
            if text not in all_parts:
                all_parts[text] = self._parts(number, passage_of(text, self.settings.keep))
        self._search_all([each for parts, _ in all_parts.values() for each in parts], n)
        results = {}
        for text, (parts, gaps) in all_parts.items():
            ranks = range(max(len(each.results) for each in parts))
            results[text] = [
                self._joined(text, [each.results[: rank + 1][-1] for each in parts], gaps)
                for rank in ranks
            ]
        return [results[text] for text in texts]

    def _parts(self, number: int, passage: Passage) -> tuple[list[_Sentence], list[Marked]]:
        """The sentences of a text, and what stands between their translations."""
        if not self.settings.split:
            return [_Sentence(number, passage, passage.text, is_upper=False)], []
        places = sentences(passage.masked(), self.src_tokenizer.language)
        parts = [passage.part(*place) for place in places]
        gaps = [passage.gap(end, start) for (_, end), (start, _) in pairwise(places)]
        if writes_spaces(self.tgt_tokenizer.language):
            # None after a line feed that is written as two signs.
            glued = [any(mark.position == len(part.text) for mark in part.marks) for part in parts]
            gaps = [
                gap if gap.written or is_glued else Marked(" ")
                for gap, is_glued in zip(gaps, glued, strict=False)
            ]
        else:
            gaps = [
                gap
                if "\n" in gap.text
                else Marked("", tuple(replace(mark, position=0) for mark in gap.marks))
                for gap in gaps
            ]
        in_capitals = len(parts) > 1 and self._frequencies.is_in_capitals(passage.masked(" "))
        return [self._sentence(number, part, in_capitals) for part in parts], gaps

    def _sentence(self, number: int, passage: Passage, in_capitals: bool) -> _Sentence:
        """in_capitals: whether the whole text is."""
        words = passage.masked(" ")
        usual = passage.text
        if in_capitals or self._frequencies.is_in_capitals(words):
            usual = usual_case(passage.text, self._frequencies)
        return _Sentence(number, passage, usual, usual != passage.text and is_upper(words))

    def _search_all(self, parts: Sequence[_Sentence], n: int) -> None:
        """Set the results of each sentence. Raises: TooLargeError."""
        copied = [
            part for part in parts if not part.passage.is_plain and not part.passage.has_words
        ]
        for part in copied:
            written = part.passage.marked.written
            tokens = self.src_tokenizer.split(written)[: self.options.max_source_tokens]
            copy = copy_of(written, tokens)
            part.results = [(copy, part.passage.marked)]
        to_translate = [part for part in parts if not part.results]
        simple = [_Reading(part) for part in to_translate if not part.passage.items]
        for reading, best in zip(simple, self._search(simple, n), strict=True):
            reading.sentence.results = [self._restored(reading, each) for each in best]
        pending = [part for part in to_translate if part.passage.items]
        self._search_with_items(pending, n)
        if self.settings.keep is not None:
            wrong = [
                part
                for part in to_translate
                if has_wrong_number(part.passage.text, part.results[0][0].text)
            ]
            for part in wrong:
                part.passage, part.results = part.passage.with_numbers(), []
                part.rank = (-1, 0.0)
            self._search_with_items(wrong, n)

    def _search_with_items(self, pending: Sequence[_Sentence], n: int) -> None:
        """Set the results of each sentence. Raises: TooLargeError."""
        n_best = min(max(n, N_BEST), self.options.beam) if self.options.search == "beam" else n
        for attempt in range(ATTEMPTS):
            readings = [each for part in pending for each in self._readings(part, attempt)]
            for reading, found in zip(readings, self._search(readings, n_best), strict=True):
                best = sorted(found, key=reading.rank, reverse=True)  # as they were, if equal
                rank = reading.rank(best[0]), best[0].score - reading.handicap
                if rank > reading.sentence.rank or not reading.sentence.results:
                    reading.sentence.rank = rank
                    reading.sentence.results = [self._restored(reading, each) for each in best[:n]]
            pending = [part for part in pending if part.rank[0] < len(part.passage.items)]

    def _readings(self, sentence: _Sentence, attempt: int) -> Iterator[_Reading]:
        """With a name or number for each item; and with a name for each number, too, since it may
        be one: "Tell 007 the news".
        """
        text, items = sentence.usual, sentence.passage.items
        yield _Reading(sentence, self._stand_ins.choose(text, items, attempt))
        if any(item.is_number for item in items):
            names = [replace(item, is_number=False) for item in items]
            yield _Reading(sentence, self._stand_ins.choose(text, names, attempt), MARGIN)

    def _search(self, readings: Sequence[_Reading], n: int) -> list[list[Translation]]:
        """The n best translations of each. Raises: TooLargeError."""
        texts = [reading.text for reading in readings]
        try:
            if self.glossary is None:
                found = self.sentences.translate_n_best(texts, n)
            else:
                protected = [
                    [word for each in reading.stand_ins for word in (each.source, each.target)]
                    for reading in readings
                ]
                found = self.glossary.translate(self.sentences, texts, n, protected)
        except TextError as error:
            error.index = readings[error.index].sentence.number
            error.args = (f"text {error.index + 1} {error.reason}",)
            raise
        return [[*map(self._marked_for_reading, best)] for best in found]

    def _marked_for_reading(self, translation: Translation) -> Translation:
        least = self.settings.least_confidence
        if least is None or "confidence" not in translation.facts:
            return translation
        return marked_for_reading(translation, least)

    def _restored(self, reading: _Reading, translation: Translation) -> Translated:
        """A translation with the items and tags of its source, and in its case."""
        sentence, stand_ins = reading.sentence, reading.stand_ins
        if sentence.is_plain:
            return translation, Marked(translation.text)
        src_tokenizer, tgt_tokenizer = self.tokenizers
        weights = word_weights(translation, self.tokenizers)
        if reading.n_kept(translation) < len(stand_ins):
            edits = edits_to_one(stand_ins, reading.places, translation, weights)
            translation = replace(
                translation,
                text=apply(translation.text, edits).text,
                tokens=_edited(written_tokens(translation), translation.text, edits, tgt_tokenizer),
                replaced=(),
                warnings=(*translation.warnings, PLACED),
            )
            weights = word_weights(translation, self.tokenizers)
        sources = [Edit.of(mark) for mark in reading.marks]
        targets = [Edit.of(mark) for mark in project(reading.marks, translation, weights)]
        items = sentence.passage.items
        texts = [sentence.passage.text[item.start : item.end] for item in items]
        end = len(translation.text)
        places = [[*word.places(translation.text), (end, end)][0] for word in stand_ins]
        in_order = [index for index, written in enumerate(texts) if NEXT_VALUE.search(written)]
        for index, place in zip(in_order, sorted(places[i] for i in in_order), strict=True):
            places[index] = place
        for item, written, source, target in zip(items, texts, reading.places, places, strict=True):
            sources.append(Edit(*source, written, item.mark))
            targets.append(Edit(*target, written, item.mark))
        marked = apply(translation.text, targets, str.upper if sentence.is_upper else str)
        restored = replace(
            translation,
            source=sentence.passage.marked.written,
            text=marked.written,
            src_tokens=_edited(translation.src_tokens, reading.text, sources, src_tokenizer),
            tokens=_edited(written_tokens(translation), translation.text, targets, tgt_tokenizer),
            replaced=(),
            read=reading.text,
        )
        return restored, marked

    def _joined(
        self, text: Marked, parts: Sequence[Translated], gaps: Sequence[Marked]
    ) -> Translated:
        """The translation of a whole text."""
        if gaps:
            return join(text.written, parts, gaps, self.tokenizers)
        [(translation, marked)] = parts
        if translation.source != text.written:  # a mark stood inside an item
            translation = replace(translation, source=text.written)
        return translation, marked


def has_wrong_number(source: str, translation: str) -> bool:
    """Whether the translation lacks a number, or has one that the source has not."""
    if not any(map(str.isdecimal, source)):
        return False
    return any(each.kind == "number" for each in differences(source, translation))


def _edited(
    tokens: Sequence[str], text: str, edits: Sequence[Edit], tokenizer: Tokenizer
) -> tuple[str, ...]:
    return tuple(apply_to_tokens(tokens, text, edits, tokenizer.join))
