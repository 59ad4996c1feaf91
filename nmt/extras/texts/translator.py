"""Translates texts: splits them into sentences, protects what must stay, and joins the results."""

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise

import numpy as np

from nmt.decoding.alignment import written_tokens
from nmt.decoding.batch_runner import TextError
from nmt.decoding.items import differences
from nmt.decoding.translator import (
    Translation,
    Translator,
    check_n_best,
    copy_of,
    has_letters,
)
from nmt.decoding.warnings import WordFrequencies
from nmt.extras.texts import stand_ins
from nmt.extras.texts.capitals import is_upper, usual_case
from nmt.extras.texts.confidence import marked_for_reading
from nmt.extras.texts.glossary import Glossary
from nmt.extras.texts.items import (
    NOUNS_IN_CAPITALS,
    kinds_of_words,
    names,
    with_items,
    with_numbers,
    without_edges,
    without_signs,
)
from nmt.extras.texts.joining import Translated, join
from nmt.extras.texts.marked import Edge, Mark, Marked, in_order
from nmt.extras.texts.sentences import sentences, writes_spaces
from nmt.extras.texts.tags import project
from nmt.extras.texts.terms import translate_with_terms
from nmt.extras.texts.words import Range, WordWeights
from nmt.text.sentences import END_MARKS, has_ordinals

_LAST = re.compile(r"(?:\.{3}|[…:：])\s*$")
_SEPARATOR = re.compile(r"\s+[•·|/]\s+")  # of elements
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
        number: of its text. source: with marks, and words in the places of items.
        usual: the same in its usual case. is_upper: whether to write the translation in capitals.
        results: its translations, best first. rank: of the best one, among attempts.
    """

    number: int
    source: Marked
    usual: Marked
    is_upper: bool
    results: list[Translated] = field(default_factory=list)
    rank: tuple[int, float] = (-1, 0.0)


@dataclass(frozen=True)
class _Reading:
    """What the model reads of a sentence, with the words in the places of its items.

    handicap: by how much its translation must be better than others.
    """

    sentence: _Sentence
    text: Marked
    stand_ins: Sequence[stand_ins.StandIn]
    handicap: float = 0.0

    def n_kept(self, translation: Translation) -> int:
        """How many stand-ins are kept."""
        return sum(each.is_kept(translation.text) for each in self.stand_ins)

    def rank(self, translation: Translation) -> int:
        """The same, less one if a number is wrong."""
        return self.n_kept(translation) - has_wrong_number(self.text.text, translation.text)


class TextTranslator(Translator):
    """A translator of texts of any number of sentences. Several threads may use it at once.

    Args:
        sentences: translates them.
        settings: how to treat texts.
        glossary: terms that must be translated as it says.
    """

    def __init__(
        self, sentences: Translator, settings: Settings, glossary: Glossary | None = None
    ) -> None:
        super().__init__(**sentences.arguments)
        self.sentences, self.settings, self.glossary = sentences, settings, glossary
        self._frequencies = WordFrequencies(self.src_tokenizer, self.src_vocabulary)
        self._stand_ins = cache(lambda: stand_ins.find(sentences))  # when a text has items
        self._kind_of = kinds_of_words(sentences)

    @classmethod
    def of(
        cls,
        translator: Translator,
        settings: Settings | None = None,
        *,
        glossary: Glossary | None = None,
    ) -> "TextTranslator":
        """The same model, for texts. Of a translator of texts, what is not given stays, and nothing
        is computed again.
        """
        if not isinstance(translator, TextTranslator):
            return cls(translator, settings or Settings(), glossary)
        other = copy(translator)
        other.settings = settings or translator.settings
        other.glossary = glossary or translator.glossary
        return other

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
        # Equal texts share a result, so that it is checked once.
        best = {id(ranked): (ranked[0][1], ranked[0][0]) for ranked in results}
        return [best[id(ranked)] for ranked in results]

    def translate_marked_n_best(self, texts: Sequence[Marked], n: int) -> list[list[Translated]]:
        """As `translate_marked`: the n best translations of each text."""
        all_parts: dict[Marked, tuple[list[_Sentence], list[Marked]]] = {}
        known = {text: self._known(text) for text in texts}
        results = {text: [found] for text, found in known.items() if found}
        for number, text in enumerate(texts):
            if text not in all_parts and text not in results:
                all_parts[text] = self._parts(number, without_signs(text, self.settings.keep))
        self._search_all([each for parts, _ in all_parts.values() for each in parts], n)
        for text, (parts, gaps) in all_parts.items():
            ranks = range(max(len(each.results) for each in parts))
            ranked = [[each.results[: rank + 1][-1] for each in parts] for rank in ranks]
            results[text] = [
                join(text.written, each, gaps, self.tokenizers)
                if gaps
                else (replace(each[0][0], source=text.written), each[0][1])
                for each in ranked
            ]
        return [results[text] for text in texts]

    def _known(self, text: Marked) -> Translated | None:
        """The translation of a text or sentence that is known as it stands, or without the marks
        around it: markup, "1. ". One with marks or line feeds inside is not known.
        """
        for each in (text.outer(), text):
            found = self.sentences.known(each.text)
            if found is None or "\n" in each.text:
                continue
            # Between marks, spaces stay.
            new = each.text.replace(each.text.strip(), found.text) if each.marks else found.text
            moved = {0: 0, len(each.text): len(new)}
            if all(mark.position in moved and not mark.covered for mark in each.marks):
                marks = (replace(mark, position=moved[mark.position]) for mark in each.marks)
                marked = Marked(new, tuple(marks)).outer()
                return replace(found, source=each.written, text=marked.written), marked
        return None

    def _parts(self, number: int, text: Marked) -> tuple[list[_Sentence], list[Marked]]:
        """The sentences of a text, and what stands between their translations."""
        if not self.settings.split:
            return [_Sentence(number, text, text, is_upper=False)], []
        starts = {mark.position for mark in text.marks if mark.kind == "open" or mark.parts}
        ends = {mark.end for mark in text.marks if mark.kind == "close" or mark.parts}
        listed = _SEPARATOR.sub(
            lambda found: (
                re.sub(".", "\t", found[0])
                if found.start() in ends and found.end() in starts
                else found[0]
            ),
            text.text,
        )
        places = sentences(listed, self.src_tokenizer.language)
        between = [border for (_, end), (start, _) in pairwise(places) for border in (end, start)]
        pieces = text.cut([0, *between, len(text.text)])
        parts, gaps = pieces[::2], pieces[1::2]
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
                if gap.text.strip(" ")
                else Marked("", tuple(replace(mark, position=0) for mark in gap.marks))
                for gap in gaps
            ]
        in_capitals = len(parts) > 1 and self._frequencies.is_in_capitals(text.bare)
        ordinals = has_ordinals(self.src_tokenizer.language)
        parts = [without_edges(part, ordinals=ordinals) for part in parts]
        return [self._sentence(number, part, in_capitals) for part in parts], gaps

    def _sentence(self, number: int, source: Marked, in_capitals: bool) -> _Sentence:
        """in_capitals: whether the whole text is."""
        words = source.bare
        is_whole = in_capitals or self._frequencies.is_in_capitals(words)
        text = source.text
        if is_whole or any(len(word) > 1 and word.isupper() for word in words.split()):
            text = usual_case(text, self._frequencies, is_whole=is_whole)
        is_written_so = is_whole and text != source.text and is_upper(words)
        return _Sentence(number, source, replace(source, text=text), is_written_so)

    def _search_all(self, parts: Sequence[_Sentence], n: int) -> None:
        """Set the results of each sentence. Raises: TooLargeError."""
        simple, pending = list[_Sentence](), list[_Sentence]()
        for part in parts:
            if part.source.marks and not has_letters(part.source.bare):
                written = part.source.written
                tokens = self.src_tokenizer.split(written)[: self.options.max_source_tokens]
                part.results = [(copy_of(written, tokens), part.source.outer())]
            elif known := self._known(part.source):
                part.results = [known]
            elif self.glossary and (term := self.glossary.whole(part.source.written)):
                copied = copy_of(term, self.tgt_tokenizer.split(term))
                src_tokens = tuple(self.src_tokenizer.split(part.source.text))
                eye = np.eye(len(copied.tokens) + 1, len(src_tokens) + 1, dtype=np.float32)
                whole = replace(
                    copied, source=part.source.text, src_tokens=src_tokens, attention=eye
                )
                part.results = [(whole, Marked(term))]
            else:
                (pending if part.source.items else simple).append(part)
        self._search([_Reading(part, part.usual, ()) for part in simple], n, n)
        self._search_with_items(pending, n)
        if self.settings.keep is not None:
            wrong = []
            for part in (*simple, *pending):
                source = self._with_lost(part)
                if source != part.source:
                    part.source, part.usual = source, replace(part.usual, marks=source.marks)
                    part.results = []
                    wrong.append(part)
            self._search_with_items(wrong, n)

    def _with_lost(self, part: _Sentence) -> Marked:
        """A sentence with the numbers and names as items that its translation lacks; but a term is
        translated as the glossary says, and a model that copies no names writes another script.
        """
        source, translation = part.source, part.results[0][0].text
        if has_wrong_number(source.written, translation):
            source = with_numbers(source)
        found = list[Range]()
        if self._kind_of and self.src_tokenizer.language not in NOUNS_IN_CAPITALS:
            found = names(part.usual.bare, self._kind_of)
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
        n_best = min(max(n, N_BEST), self.options.beam) if self.options.search == "beam" else n
        for attempt in range(ATTEMPTS):
            readings = [each for part in pending for each in self._readings(part, attempt)]
            self._search(readings, n_best, n)
            pending = [part for part in pending if part.rank[0] < len(part.source.items)]

    def _readings(self, sentence: _Sentence, attempt: int) -> list[_Reading]:
        """With a name or number for each item; and with a name for each number, too, since it may
        be one: "Tell 007 the news".
        """
        has_numbers = any(item.kind == "number" for item in sentence.source.items)
        readings = []
        for numbers in (True, False) if has_numbers else (False,):
            words = stand_ins.choose(
                self._stand_ins(), sentence.usual, attempt, numbers=numbers, kind_of=self._kind_of
            )
            text = sentence.usual.with_words(word.source for word in words)
            handicap = MARGIN if has_numbers and not numbers else 0.0
            readings.append(_Reading(sentence, text, words, handicap))
        return readings

    def _search(self, readings: Sequence[_Reading], n_best: int, n: int) -> None:
        """Give each sentence the n best translations of its best reading. Raises: TooLargeError.

        n_best: hypotheses among which one with all stand-ins is looked for.
        """
        texts = [reading.text.text for reading in readings]
        try:
            if self.glossary is None:
                found = self.sentences.translate_n_best(texts, n_best)
            else:
                protected = [
                    {word for each in reading.stand_ins for word in (each.source, each.target)}
                    for reading in readings
                ]
                found = translate_with_terms(
                    self.glossary, self.sentences, texts, n_best, protected
                )
        except TextError as error:
            error.index = readings[error.index].sentence.number
            error.args = (f"text {error.index + 1} {error.reason}",)
            raise
        for reading, translations in zip(readings, found, strict=True):
            best = sorted(translations, key=reading.rank, reverse=True)  # as they were, if equal
            rank = reading.rank(best[0]), best[0].score - reading.handicap
            if rank > reading.sentence.rank or not reading.sentence.results:
                reading.sentence.rank = rank
                reading.sentence.results = [self._restored(reading, each) for each in best[:n]]

    def _marked_for_reading(self, translation: Translation) -> Translation:
        least = self.settings.least_confidence
        if least is None or "confidence" not in translation.facts:
            return translation
        return marked_for_reading(translation, least)

    def _restored(self, reading: _Reading, translation: Translation) -> Translated:
        """A translation with the items and tags of its source, and in its case."""
        source, read = reading.sentence.source, reading.text
        translation = self._marked_for_reading(translation)
        edges = [mark for mark in read.marks if isinstance(mark, Edge)]
        tags = [mark for mark in read.marks if not mark.covered and mark not in edges]
        marks: list[Mark] = [mark for mark in edges if not mark.position]
        last = _LAST.search(read.text) or _LAST.search(source.written)
        if last and self.settings.split and not _LAST.search(translation.text):
            start = len(translation.text.rstrip(f"{END_MARKS} "))
            marks.append(Edge(start, last[0], "empty", len(translation.text) - start))
        if not read.marks and not marks and read == source:
            return translation, Marked(translation.text)
        if read.marks:
            weights = WordWeights.of(translation, self.tokenizers)
            marks += project(tags, weights)
            marks += stand_ins.marks_of(read.items, reading.stand_ins, weights)
        restored = Marked(translation.text, in_order(marks))
        marked = restored.outer(str.upper if reading.sentence.is_upper else str)
        is_lost = reading.n_kept(translation) < len(reading.stand_ins)
        return (
            replace(
                translation,
                source=source.written,
                text=marked.written,
                src_tokens=read.tokens(translation.src_tokens, self.src_tokenizer.join),
                tokens=restored.tokens(written_tokens(translation), self.tgt_tokenizer.join),
                replaced=(),
                read=read.text,
                warnings=(*translation.warnings, *([PLACED] if is_lost else [])),
            ),
            marked,
        )


def has_wrong_number(source: str, translation: str) -> bool:
    """Whether the translation lacks a number, or has one that the source has not."""
    if not any(map(str.isdecimal, source + translation)):
        return False
    return any(each.kind == "number" for each in differences(source, translation))
