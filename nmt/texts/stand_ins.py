"""Words that take the place of items while a sentence is translated.

A model copies only what it knows. So an item is replaced by a word that the model surely copies, or
translates in one way only: by its lexical bias, without any training. Afterwards the item takes the
word's place. If a translation lacks the word, or has it twice, others are tried; in the end
attention tells where the item belongs.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from operator import itemgetter

import numpy as np

from nmt.decoding.translator import Translator
from nmt.text.tokenizers import NO_SPACES, Tokenizer
from nmt.text.vocabulary import UNK
from nmt.texts.items import KindOf
from nmt.texts.marked import Mark, Marked, Sign
from nmt.texts.patterns import NEXT_VALUE
from nmt.texts.word_weights import WORD, Range, WordWeights

# Least probabilities of a translation that counts as the only one.
MIN_COPIED, MIN_TRANSLATED, MIN_NUMBER = 0.8, 0.95, 0.2
MIN_LETTERS, MIN_DIGITS = 3, 2
MAX_STAND_INS = 30
# What may not stand beside a stand-in, and the letters of an ending: of numbers, of scripts that
# may write words without spaces, and of others.
_NUMBER, _SPACELESS, _SPACED = (
    (r"\d", r"\d"),
    (r"[^\s\S]", r"[^\s\S]"),
    (rf"[^\W{NO_SPACES}]", rf"[^\W\d_{NO_SPACES}]"),
)
MIN_WEIGHT = 0.5  # of the attention of a word that translates a stand-in


@dataclass(frozen=True)
class StandIn:
    """A word of the source language and its only translation."""

    source: str
    target: str

    def places(self, text: str) -> list[Range]:
        """Where the translation stands in a text, also with an ending of at most two letters."""
        sign, letter = _NUMBER if self.target.isdecimal() else _SPACED
        if not self.target.isascii() and self.target.lower() == self.target.upper():
            sign, letter = _SPACELESS
        pattern = rf"(?<!{sign}){re.escape(self.target)}{letter}{{0,2}}(?!{sign})"
        return [match.span() for match in re.finditer(pattern, text)]

    def is_kept(self, text: str) -> bool:
        """Whether a translation has it once, and without an ending."""
        return [text[start:end] for start, end in self.places(text)] == [self.target]


def choose(
    known: tuple[Sequence[StandIn], Sequence[StandIn]],
    text: Marked,
    attempt: int,
    *,
    numbers: bool,
    kind_of: KindOf | None,
) -> Iterator[StandIn]:
    """A word for each item; no word of the text begins with it. Other attempts choose other words.
    At first, what the text has once is in its own place if it is a number, or always copied.

    Args:
        known: as of `find`.
        numbers: whether numbers are in the places of numbers. kind_of: tells what is always copied.
    """
    items, words = text.items, {*WORD.findall(text.bare)}
    counts = Counter(item.written for item in items)
    further = (StandIn(f"Tom{i}", f"Tom{i}") for i in count(len(words)))
    names, digits = (
        [
            word
            for word in group
            if not any(each.startswith((word.source, word.target)) for each in words)
        ]
        for group in known
    )
    for item in items:
        is_number = numbers and item.kind == "number"
        free = (digits if is_number else names) or names or digits
        is_copied = (
            is_number
            or (
                item.kind == "item"
                # A name, which begins with a letter, is an item only because the model lost it.
                and not item.written[:1].isalpha()
                and kind_of is not None
                and kind_of(item.written) == "copied"
            )
        )
        if is_copied and attempt == 0 and counts[item.written] == 1:
            yield StandIn(item.written, item.written)
        elif free:
            yield free.pop(attempt % len(free))
        else:
            yield next(further)


def marks_of(
    items: Sequence[Mark],
    stand_ins: Sequence[StandIn],
    words: WordWeights,
) -> list[Mark]:
    """The items at their places in a translation, and what to remove so that each is there once. Of
    several stand-ins the one with the most attention to that of the source stays. A missing one
    takes the place of the word that translates it, or stands behind the word that attends most to
    it. Those that take the next value of a program keep their order.

    Args:
        items: of what the model read. stand_ins: one for each item.
    """
    text, surplus, kept = words.target.text, list[Mark](), list[Range]()
    found = [stand_in.places(text) for stand_in in stand_ins]
    taken = [place for places in found for place in places]
    for item, places in zip(items, found, strict=True):
        first, after = words.source.inside(item.position, item.end)
        weights = words.weights[:, first:after].sum(1)
        best = max(
            places,
            key=lambda place: weights[slice(*words.target.inside(*place))].max(initial=0),
            default=None,
        )
        if best is None:
            attention, start, end = words.readers(item.position, item.end, taken)
            taken.append((start, end))
            if attention < MIN_WEIGHT:
                surplus += [Sign(end, " ", "item")] if end else []
                start = end
            best = start, end
        kept.append(best)
        for start, end in places:
            if (start, end) != best:  # with a space beside it
                begin = start - (text[start - 1 : start] == " ")
                last = end + (start == 0 and text[end : end + 1] == " ")
                surplus.append(Sign(begin, "", "item", last - begin))
    moving = [index for index, item in enumerate(items) if NEXT_VALUE.search(item.written)]
    for index, place in zip(moving, sorted(kept[index] for index in moving), strict=True):
        kept[index] = place
    return surplus + [
        replace(item, position=start, covered=end - start)
        for item, (start, end) in zip(items, kept, strict=True)
    ]


def find(translator: Translator) -> tuple[list[StandIn], list[StandIn]]:
    """Names and numbers that the model copies; names, too, that it translates in one way only."""
    src_words, tgt_words = (
        [_word(token, tokenizer) for token in vocabulary]
        for tokenizer, vocabulary in zip(
            translator.tokenizers, translator.vocabularies, strict=True
        )
    )
    keeps_case = translator.src_tokenizer.normalize("A") == "A"
    counts = dict(zip(src_words, translator.src_vocabulary.counts, strict=True))
    copied, translated, numbers = (list[tuple[float, StandIn]]() for _ in range(3))
    for word, (own, best, index) in zip(src_words, _lexicon(translator), strict=True):
        translation = tgt_words[index]
        if word.isdecimal() and len(word) >= MIN_DIGITS and own >= MIN_NUMBER:
            numbers.append((own, StandIn(word, word)))
        # At the beginning of a sentence, other words have capital letters, too.
        is_usual = word == word.lower() or counts[word] > 2 * counts.get(word.lower(), 0)
        if not word.isalpha() or not is_usual or word.isupper() or (keeps_case and word.islower()):
            continue
        if own >= MIN_COPIED and len(word) >= MIN_LETTERS:
            copied.append((counts[word], StandIn(word, word)))
        elif best >= MIN_TRANSLATED and translation.isalpha() and not translation.islower():
            translated.append((counts[word], StandIn(word, translation)))
    names, others, digits = (
        [stand_in for _, stand_in in sorted(group, key=itemgetter(0), reverse=True)]
        for group in (copied, translated, numbers)
    )
    return [*names, *others][:MAX_STAND_INS], digits


def _lexicon(translator: Translator) -> list[tuple[float, float, int]]:
    """For each source token: how probable it is as its own translation; the probability and the id
    of its best translation. By the lexical bias or, without one, by what both vocabularies have.
    """
    source, target = translator.vocabularies
    own_ids = np.array(target.ids([*source]))
    own_ids[own_ids == UNK] = -1  # special tokens, too
    lexicon = translator.model.lexicon
    if lexicon is None:
        return [(float(index >= 0), 0.0, 0) for index in own_ids.tolist()]
    rows = lexicon.rows(np.arange(len(source))[:, None])[:, 0]
    ids, probabilities = lexicon.ids[rows], lexicon.probabilities[rows]
    own = (probabilities * (ids == own_ids[:, None])).sum(1)
    best, places = probabilities.max(1), probabilities.argmax(1)
    best_ids = ids[np.arange(len(ids)), places]
    return [*zip(own.tolist(), best.tolist(), best_ids.tolist(), strict=True)]


def _word(token: str, tokenizer: Tokenizer) -> str:
    """The word that a token is by itself; "" if it is a part of words."""
    word = tokenizer.join([token])
    return word if tokenizer.split(word) == [token] else ""
