"""The translator of texts: it has a translator of sentences, and prepares what that one reads.

The way of a text:

1. known: a text that the user's memory has is translated as there.
2. split: placeholders, tags and numbers become marks, and the text becomes sentences.
3. prepare: the marks of lists and labels come off, and CAPITALS get their usual case. A sentence
   without words, one that is a term, and one of the memory need no search.
4. search: a word that the model surely copies stands in the place of each item. The translator of
   sentences translates, with the terms of the glossary. Of several hypotheses, the best is the
   first that keeps all these words; if none does, other words are tried.
5. again: a translation that lacks a number or a name, or has a wrong number, is searched for once
   more with these as items.
6. restore: items, tags, marks of lists, and CAPITALS.
7. join: the translations of the sentences become that of the text.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

import numpy as np

from nmt.decoding.alignment import written_tokens
from nmt.decoding.translation import Translation, copy_of
from nmt.decoding.translator import Translator, check_n_best
from nmt.errors import TextError
from nmt.text.tokenizers import has_letters
from nmt.texts import stand_ins
from nmt.texts.capitals import is_upper, usual_case
from nmt.texts.differences import has_wrong_number
from nmt.texts.glossary import Glossary
from nmt.texts.items import (
    NOUNS_IN_CAPITALS,
    WHOLE_NUMBER,
    kinds_of_words,
    names,
    with_items,
    without_edges,
    without_signs,
)
from nmt.texts.join import TranslatedText, join
from nmt.texts.marked import Marked, Sign, in_order
from nmt.texts.sentences import END_MARKS, has_ordinals, split
from nmt.texts.stand_ins import StandIn
from nmt.texts.tags import project
from nmt.texts.terms import N_BEST, bring_terms
from nmt.texts.warnings import LOW_CONFIDENCE, PLACED, WarningChecker
from nmt.texts.word_weights import Range, WordWeights

_LAST = re.compile(r"(?:\.{3}|--|[…:：—–])\s*$")
ATTEMPTS = 3  # with other stand-ins
MARGIN = 0.2  # by which the score must be better with a name in place of a number


class TranslationMemory(Protocol):
    """Translations that a user has already."""

    def exact(self, text: str) -> Translation | None:
        """That of the whole text."""

    def similar(self, translation: Translation) -> Mapping[str, Any]:
        """Facts of a translation: the most similar pairs."""


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
        number: of its text. source: with marks, and words in the places of items.
        usual: the same in its usual case. is_upper: whether to write the translation in capitals.
        results: its translations, best first. rank: of the best one, among attempts.
    """

    number: int
    source: Marked
    usual: Marked
    is_upper: bool
    results: list[TranslatedText] = field(default_factory=list)
    rank: tuple[int, float] = (-1, 0.0)


@dataclass(frozen=True)
class _Reading:
    """What the model reads of a sentence, with the words in the places of its items.

    handicap: by how much its translation must be better than others.
    """

    sentence: _Sentence
    text: Marked
    stand_ins: Sequence[StandIn] = ()
    handicap: float = 0.0

    def n_kept(self, translation: Translation) -> int:
        """How many stand-ins are kept."""
        return sum(each.is_kept(translation.text) for each in self.stand_ins)

    def rank(self, translation: Translation) -> int:
        """The same, less one if a number is wrong."""
        return self.n_kept(translation) - has_wrong_number(self.text.text, translation.text)


class TextTranslator:
    """A translator of texts of any number of sentences. Several threads may use it at once.

    Args:
        translator: of sentences.
        settings: how to treat texts.
        glossary: terms that must be translated as it says.
        memory: what the user has translated already.
        confidence: the probability that the translation of a sentence is good, for its `facts`.
    """

    def __init__(
        self,
        translator: Translator,
        settings: Settings | None = None,
        *,
        glossary: Glossary | None = None,
        memory: TranslationMemory | None = None,
        confidence: Callable[[Translation], float] | None = None,
    ) -> None:
        self.sentence_translator = translator
        self.settings = settings or Settings()
        self.glossary = glossary
        self.memory = memory
        self.confidence = confidence
        self._checker = WarningChecker(translator.tokenizers, translator.vocabularies)
        self._frequencies = self._checker.frequencies[0]
        self._stand_ins = cache(lambda: stand_ins.find(translator))  # when a text has items
        self._kind_of = kinds_of_words(translator)
        self.languages = translator.src_tokenizer.language, translator.tgt_tokenizer.language

    def with_glossary(self, glossary: Glossary) -> "TextTranslator":
        """The same translator with another glossary. Nothing is computed again."""
        other = copy(self)
        other.glossary = glossary
        return other

    def translate(self, texts: Sequence[str]) -> list[Translation]:
        """The translation of each text. Raises: TooLargeError: one does not fit into memory."""
        return [best[0] for best in self.translate_n_best(texts, 1)]

    def translate_n_best(
        self, texts: Sequence[str], n: int, prefixes: Sequence[str] | None = None
    ) -> list[list[Translation]]:
        """The n best translations of each text, best first, or n samples.

        Args:
            prefixes: the start of each translation; then each text is a sentence, and nothing is
                protected.

        Raises:
            As `Translator.translate_n_best`.
        """
        if prefixes is not None:
            found = self.sentence_translator.translate_n_best(texts, n, prefixes)
            return [[*map(self.judged, best)] for best in found]
        results = self.translate_marked([Marked(text) for text in texts], n)
        return [[each.translation for each in best] for best in results]

    def translate_marked(self, texts: Sequence[Marked], n: int = 1) -> list[list[TranslatedText]]:
        """The n best translations of each text, best first. `source` and `text` of a `Translation`
        have the markup in them. Equal texts are translated once.

        Raises:
            TooLargeError: a text does not fit into memory, even alone.
        """
        check_n_best(n, self.sentence_translator.options)
        results: dict[Marked, list[TranslatedText]] = {}
        divided: dict[Marked, tuple[list[_Sentence], list[Marked]]] = {}
        for number, text in enumerate(texts):
            if text in results or text in divided:
                continue
            if known := self._known(text):  # 1
                results[text] = known
            else:
                divided[text] = self._divided(number, text)  # 2, 3
        self._translate([each for sentences, _ in divided.values() for each in sentences], n)  # 3-6
        for text, (sentences, gaps) in divided.items():
            results[text] = self._joined(text, sentences, gaps)  # 7
        return [results[text] for text in texts]

    def warnings(self, translation: Translation) -> list[str]:
        """What is probably wrong with a translation: keys of `nmt.texts.warnings.DESCRIPTIONS`, or
        plain texts.
        """
        return self._checker.warnings(translation)

    def _known(self, text: Marked) -> list[TranslatedText]:
        """The translation of a text or sentence that is known as it stands, or without the marks
        around it: markup, "1. ". One with marks or line feeds inside is not known.
        """
        if self.memory is None:
            return []
        for each in (text.outer(), text):
            found = self.memory.exact(each.text)
            if found is None or "\n" in each.text:
                continue
            # Between marks, spaces stay.
            new = each.text.replace(each.text.strip(), found.text) if each.marks else found.text
            moved = {0: 0, len(each.text): len(new)}
            if all(mark.position in moved and not mark.covered for mark in each.marks):
                marks = (replace(mark, position=moved[mark.position]) for mark in each.marks)
                marked = Marked(new, tuple(marks)).outer()
                found = replace(found, source=each.written, text=marked.written)
                return [TranslatedText(found, marked)]
        return []

    def _divided(self, number: int, given: Marked) -> tuple[list[_Sentence], list[Marked]]:
        """The sentences of a text, and what stands between their translations."""
        text = without_signs(given, self.settings.keep)  # 2
        if not self.settings.split:
            return [_Sentence(number, text, text, is_upper=False)], []
        parts, gaps = split(text, *self.languages)  # 2
        in_capitals = len(parts) > 1 and self._frequencies.is_in_capitals(text.bare)
        ordinals = has_ordinals(self.languages[0])
        edged = (without_edges(part, ordinals=ordinals) for part in parts)
        return [self._prepared(number, part, in_capitals=in_capitals) for part in edged], gaps  # 3

    def _prepared(self, number: int, source: Marked, *, in_capitals: bool) -> _Sentence:
        """A sentence in its usual case. in_capitals: whether the whole text is."""
        words = source.bare
        is_whole = in_capitals or self._frequencies.is_in_capitals(words)
        text = source.text
        if is_whole or any(len(word) > 1 and word.isupper() for word in words.split()):
            text = usual_case(text, self._frequencies, is_whole=is_whole)
        is_written_so = is_whole and text != source.text and is_upper(words)
        return _Sentence(number, source, replace(source, text=text), is_written_so)

    def _translate(self, sentences: Sequence[_Sentence], n: int) -> None:
        """Set the results of each sentence. Raises: TooLargeError."""
        for sentence in sentences:
            sentence.results = self._without_search(sentence.source)  # 3
        plain = [each for each in sentences if not each.results and not each.source.items]
        with_marks = [each for each in sentences if not each.results and each.source.items]
        self._search([_Reading(each, each.usual) for each in plain], n, n)  # 4
        self._search_with_items(with_marks, n)
        if self.settings.keep is None:
            return
        lost = list[_Sentence]()
        for sentence in (*plain, *with_marks):
            source = self._with_lost(sentence)
            if source != sentence.source:
                # A search with further items.
                sentence.source = source
                sentence.usual = replace(sentence.usual, marks=source.marks)
                sentence.results = []
                lost.append(sentence)
        self._search_with_items(lost, n)  # 5

    def _without_search(self, source: Marked) -> list[TranslatedText]:
        """The translation of a sentence that has only marks, is known, or is a term."""
        translator = self.sentence_translator
        if source.marks and not has_letters(source.bare):
            tokens = translator.src_tokenizer.split(source.written)
            copied = copy_of(source.written, tokens[: translator.options.max_source_tokens])
            return [TranslatedText(copied, source.outer())]
        known = self._known(source)
        term = self.glossary.whole(source.written) if self.glossary else None
        if known or term is None:
            return known
        copied = copy_of(term, translator.tgt_tokenizer.split(term))
        src_tokens = tuple(translator.src_tokenizer.split(source.text))
        eye = np.eye(len(copied.tokens) + 1, len(src_tokens) + 1, dtype=np.float32)
        whole = replace(copied, source=source.text, src_tokens=src_tokens, attention=eye)
        return [TranslatedText(whole, Marked(term))]

    def _with_lost(self, sentence: _Sentence) -> Marked:
        """A sentence with the numbers and names as items that its translation lacks; but a term is
        translated as the glossary says, and a model that copies no names writes another script.
        """
        source = sentence.source
        translation = sentence.results[0].translation.text
        if has_wrong_number(source.written, translation):
            numbers = WHOLE_NUMBER.finditer(source.bare)
            source = with_items(source, (each.span() for each in numbers), "number")
        found = list[Range]()
        if self._kind_of and self.languages[0] not in NOUNS_IN_CAPITALS:
            found = names(sentence.usual.bare, self._kind_of)
        terms = self.glossary.terms_in(source.bare) if self.glossary else ()
        lost = [
            (start, end)
            for start, end in found
            if translation.count(name := source.text[start:end]) < source.written.count(name)
            and not any(term.start < end and start < term.end for term in terms)
        ]
        copies = lost and any(each.source == each.target for each in self._stand_ins()[0])
        return with_items(source, lost, "item") if copies else source

    def _search_with_items(self, pending: Sequence[_Sentence], n: int) -> None:
        """Set the results of each sentence. Raises: TooLargeError."""
        options = self.sentence_translator.options
        n_best = min(max(n, N_BEST), options.beam) if options.search == "beam" else n
        for attempt in range(ATTEMPTS):
            readings = [each for part in pending for each in self._readings(part, attempt)]
            self._search(readings, n_best, n)  # 4
            pending = [part for part in pending if part.rank[0] < len(part.source.items)]

    def _readings(self, sentence: _Sentence, attempt: int) -> Iterator[_Reading]:
        """With a name or number for each item; and with a name for each number, too, since it may
        be one: "Tell 007 the news".
        """
        has_numbers = any(item.kind == "number" for item in sentence.source.items)
        for numbers in (True, False) if has_numbers else (False,):
            chosen = stand_ins.choose(
                self._stand_ins(), sentence.usual, attempt, numbers=numbers, kind_of=self._kind_of
            )
            words = tuple(chosen)
            text = sentence.usual.with_words(word.source for word in words)
            handicap = MARGIN if has_numbers and not numbers else 0.0
            yield _Reading(sentence, text, words, handicap)

    def _search(self, readings: Sequence[_Reading], n_best: int, n: int) -> None:
        """Give each sentence the n best translations of its best reading. Raises: TooLargeError.

        n_best: hypotheses among which one with all stand-ins is looked for.
        """
        texts = [reading.text.text for reading in readings]
        try:
            found = self.sentence_translator.translate_n_best(texts, n_best)
            if self.glossary:
                protected = [
                    {word for each in reading.stand_ins for word in (each.source, each.target)}
                    for reading in readings
                ]
                bring_terms(
                    found, self.glossary, self.sentence_translator, texts, n_best, protected
                )
        except TextError as error:
            error.index = readings[error.index].sentence.number
            raise
        for reading, translations in zip(readings, found, strict=True):
            best = sorted(translations, key=reading.rank, reverse=True)  # as they were, if equal
            rank = reading.rank(best[0]), best[0].score - reading.handicap
            sentence = reading.sentence
            if rank > sentence.rank or not sentence.results:
                sentence.rank = rank
                sentence.results = [self._restored(reading, each) for each in best[:n]]  # 6

    def judged(self, translation: Translation) -> Translation:
        """The translation of a sentence with its facts: the confidence, the similar pairs of the
        memory, and whether a person should read it, with a warning.
        """
        if translation.is_known or not translation.src_tokens:
            return translation
        facts: dict[str, Any] = {}
        warnings = translation.warnings
        if self.confidence is not None:
            facts["confidence"] = self.confidence(translation)
        if self.memory is not None:
            facts |= self.memory.similar(translation)
        least = self.settings.least_confidence
        if least is not None and "confidence" in facts:
            facts["read"] = facts["confidence"] < least
            if facts["read"]:
                warnings = (*warnings, LOW_CONFIDENCE.format(least=least))
        return replace(translation, facts=facts, warnings=warnings) if facts else translation

    def _restored(self, reading: _Reading, found: Translation) -> TranslatedText:
        """A translation with the items and tags of its source, and in its case."""
        source, read = reading.sentence.source, reading.text
        translation = self.judged(found)
        tags = [mark for mark in read.marks if not mark.covered and mark.kind != "edge"]
        marks = [mark for mark in read.marks if mark.kind == "edge" and not mark.position]
        last = _LAST.search(read.text) or _LAST.search(source.written)
        if last and self.settings.split and not _LAST.search(translation.text):
            start = len(translation.text.rstrip(f"{END_MARKS} "))
            marks.append(Sign(start, last[0], "edge", len(translation.text) - start))
        if not read.marks and not marks and read == source:
            return TranslatedText(translation, Marked(translation.text))
        src_tokenizer, tgt_tokenizer = self.sentence_translator.tokenizers
        if read.marks:
            weights = WordWeights.of(translation, self.sentence_translator.tokenizers)
            marks += project(tags, weights)
            marks += stand_ins.marks_of(read.items, reading.stand_ins, weights)
        restored = Marked(translation.text, in_order(marks))
        marked = restored.outer(str.upper if reading.sentence.is_upper else str)
        is_lost = reading.n_kept(translation) < len(reading.stand_ins)
        translation = replace(
            translation,
            source=source.written,
            text=marked.written,
            src_tokens=read.tokens(translation.src_tokens, src_tokenizer.join),
            tokens=restored.tokens(written_tokens(translation), tgt_tokenizer.join),
            replaced=(),
            model_input=read.text,
            warnings=(*translation.warnings, *([PLACED] if is_lost else [])),
        )
        return TranslatedText(translation, marked)

    def _joined(
        self, text: Marked, sentences: Sequence[_Sentence], gaps: Sequence[Marked]
    ) -> list[TranslatedText]:
        """The translations of a text, best first: the n-th best ones of its sentences together."""
        n = max(len(each.results) for each in sentences)
        ranked = [[each.results[: rank + 1][-1] for each in sentences] for rank in range(n)]
        if gaps:
            tokenizers = self.sentence_translator.tokenizers
            return [join(text.written, parts, gaps, tokenizers) for parts in ranked]
        return [
            TranslatedText(replace(only.translation, source=text.written), only.marked)
            for (only,) in ranked
        ]
