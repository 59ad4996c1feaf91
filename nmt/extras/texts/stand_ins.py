"""Words that take the place of items while a sentence is translated.

A model copies only what it knows. So an item is replaced by a word that the model surely copies, or
translates in one way only: by its lexical bias, without any training. Afterwards the item takes the
word's place. If a translation lacks the word, or has it twice, others are tried; in the end
attention tells where the item belongs.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.decoding.translator import Translation, Translator
from nmt.extras.texts.edits import Edit
from nmt.extras.texts.passages import Item
from nmt.extras.texts.words import NO_SPACES, WORD, WordWeights
from nmt.model.lexical_bias import LexicalBias
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import SPECIALS, UNK

# Least probabilities of a translation that counts as the only one.
MIN_COPIED, MIN_TRANSLATED, MIN_NUMBER = 0.8, 0.95, 0.2
MIN_LETTERS, MIN_DIGITS = 3, 2
MAX_STAND_INS = 30
# Of a word, where there are spaces between words.
_SIGN, _LETTER = rf"[^\W{NO_SPACES}]", rf"[^\W\d_{NO_SPACES}]"
MIN_WEIGHT = 0.5  # of the attention of a word that translates a stand-in


@dataclass(frozen=True)
class StandIn:
    """A word of the source language and its only translation."""

    source: str
    target: str

    def places(self, text: str) -> list[tuple[int, int]]:
        """Where the translation stands in a text, also with an ending of at most two letters."""
        sign, letter = (r"\d", r"\d") if self.target.isdecimal() else (_SIGN, _LETTER)
        if not self.target.isascii() and self.target.lower() == self.target.upper():
            sign = letter = r"(?!)"  # such scripts may write no spaces
        pattern = rf"(?<!{sign}){re.escape(self.target)}{letter}{{0,2}}(?!{sign})"
        return [match.span() for match in re.finditer(pattern, text)]

    def is_kept(self, text: str) -> bool:
        """Whether a translation has it once, and without an ending."""
        return [text[start:end] for start, end in self.places(text)] == [self.target]


class StandIns:
    """Chooses the stand-ins of items, for a model."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator

    @cached_property
    def _found(self) -> tuple[list[StandIn], list[StandIn]]:
        """Names and numbers, best first; looked for when a text has items."""
        return _find(self._translator)

    def choose(self, text: str, items: Sequence[Item], attempt: int) -> list[StandIn]:
        """A word for each item; no word of the text begins with it. Other attempts choose other
        words. A number stands for itself at first.
        """
        taken = {*WORD.findall(text)}
        chosen = []
        for item in items:
            written = text[item.start : item.end]
            groups = self._found[:: -1 if item.is_number else 1]
            free = [
                [
                    word
                    for word in group
                    if not any(each.startswith((word.source, word.target)) for each in taken)
                ]
                for group in groups
            ]
            words = free[0] or free[1] or [StandIn(*[f"Tom{len(taken)}"] * 2)]
            if item.is_number and text.count(written) == 1:
                words = [StandIn(written, written), *words]
            chosen.append(words[attempt % len(words)])
            taken |= {chosen[-1].source, chosen[-1].target}
        return chosen


def edits_to_one(
    stand_ins: Sequence[StandIn],
    places: Sequence[tuple[int, int]],
    translation: Translation,
    words: WordWeights,
) -> list[Edit]:
    """What to change in a translation so that it has each stand-in once. Of several the one with
    the most attention to the stand-in of the source stays. A missing one takes the place of the
    word that translates it, or stands beside the word that attends most to it.

    Args:
        places: of the stand-ins in the source.
    """
    text, edits = translation.text, list[Edit]()
    found = [stand_in.places(text) for stand_in in stand_ins]
    occupied = {word for spans in found for each in spans for word in _inside(words.target, each)}
    free = [
        index
        for index, (start, end) in enumerate(words.target)
        if index not in occupied and any(map(str.isalnum, text[start:end]))
    ]
    for stand_in, place, spans in zip(stand_ins, places, found, strict=True):
        columns = _inside(words.source, place)
        weights = words.weights[:, columns].sum(1)
        if not spans:
            edits.append(_insertion(stand_in.target, columns, words, weights, free))
            continue
        kept = max(spans, key=lambda span: weights[_inside(words.target, span)].max())
        edits.append(Edit(*kept, stand_in.target))
        edits += [
            Edit(
                start - text[:start].endswith(" "),
                end + (start == 0 and text[end : end + 1] == " "),
                "",
            )
            for start, end in spans
            if (start, end) != kept
        ]
    return edits


def _insertion(
    word: str,
    columns: Sequence[int],
    words: WordWeights,
    weights: NDArray[np.float32],
    free: list[int],
) -> Edit:
    """Puts in a word. columns: those of its source. weights: of the words of the translation on
    them. free: words that it may replace, or stand beside; the one that it takes is removed.
    """
    if not free:
        end = words.target[-1][1] if words.target else 0
        return Edit(end, end, f" {word}" if end else word)
    if words.weights.any():
        index = max(free, key=weights.__getitem__)
    else:  # without attention: after the same share of the words
        share = min(columns, default=0) / max(len(words.source), 1)
        index = min(free, key=lambda index: abs(index - share * len(words.target)))
    free.remove(index)
    start, end = words.target[index]
    if weights[index] >= MIN_WEIGHT:
        return Edit(start, end, word)
    if words.weights[index].argmax() > max(columns, default=0):
        return Edit(start, start, f"{word} ")
    return Edit(end, end, f" {word}")


def _inside(words: Sequence[tuple[int, int]], span: tuple[int, int]) -> list[int]:
    """The words in which a part of a text is."""
    return [index for index, (start, end) in enumerate(words) if start < span[1] and end > span[0]]


def _find(translator: Translator) -> tuple[list[StandIn], list[StandIn]]:
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
    own_ids = torch.tensor(target.ids([*source]))
    own_ids[own_ids == UNK] = -1
    own_ids[: len(SPECIALS)] = -1
    biases = [module for module in translator.model.modules() if isinstance(module, LexicalBias)]
    if not biases:
        return [(float(index >= 0), 0.0, 0) for index in own_ids.tolist()]
    lexicon = biases[0]
    rows = lexicon.rows(torch.arange(len(source), device=lexicon.ids.device)[:, None])[:, 0]
    ids, probabilities = lexicon.ids[rows].cpu(), lexicon.probabilities[rows].float().cpu()
    own = (probabilities * (ids == own_ids[:, None])).sum(1)
    best, places = probabilities.max(1)
    best_ids = ids.gather(1, places[:, None])[:, 0]
    return [*zip(own.tolist(), best.tolist(), best_ids.tolist(), strict=True)]


def _word(token: str, tokenizer: Tokenizer) -> str:
    """The word that a token is by itself; "" if it is a part of words."""
    word = tokenizer.join([token])
    return word if tokenizer.split(word) == [token] else ""
