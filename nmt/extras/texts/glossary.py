"""Terms that must be translated as a glossary says."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from nmt.decoding.alignment import written_tokens
from nmt.decoding.batch_runner import TextError
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.fast import replace_submodules
from nmt.decoding.translator import Translation, Translator
from nmt.decoding.unknown_words import Replacement
from nmt.errors import DataError
from nmt.extras.texts.edits import Edit, apply, apply_to_tokens
from nmt.extras.texts.words import WORD, word_weights, words_and_shares
from nmt.files import MAX_TEXT_BYTES
from nmt.lines import read_lines
from nmt.model.interface import TranslationModel
from nmt.model.lexical_bias import LexicalBias, Translations
from nmt.model.seq2seq import Seq2Seq
from nmt.text.tokenizers import normalize
from nmt.text.vocabulary import EOS, PAD, UNK

# p(term | each of its source words) for the lexical bias, tried in this order. Larger ones destroy
# the sentence.
WEIGHTS = 1, 10
N_BEST = 5  # hypotheses among which one with all terms is looked for
MAX_SUBWORDS = 3  # the bias does not know their order, so of longer terms it makes other words
# Of a word of the translation, on a term: it replaces no word that reads the term less.
MIN_ATTENTION = 0.1
# Of the attention of a word to a term: so much that the word beside it is replaced, too.
NEARLY = 0.9
# "Hunden" is the term "Hund", but "Handy" is not "Hand".
_ENDING = r"(?:e?[nms]|e)?"

Span = tuple[int, int]  # the first character, and the one after the last


@dataclass(frozen=True)
class TermMatch:
    """A term in a text: the characters from `start` up to `end`, and its translation.

    is_inflected: it is not the first form that the glossary has for it.
    """

    start: int
    end: int
    target: str
    is_inflected: bool

    def of(self, text: str) -> str:
        """The term as the text writes it."""
        return text[self.start : self.end]


class Glossary:
    """The translation of terms."""

    def __init__(self, entries: Iterable[tuple[str, str, str]]) -> None:
        """Entries: (place for messages, source, target). Raises: DataError."""
        self._terms: dict[str, tuple[str, bool]] = {}
        for place, forms, written in entries:
            target = normalize(written)
            for number, form in enumerate(forms.split("|")):
                source = " ".join(_words(form))
                if not source or not target:
                    raise DataError(f"{place}: a side of the term is empty")
                # "IT" is not "it".
                key = source if source.isupper() and len(source) > 1 else source.lower()
                known, _ = self._terms.setdefault(key, (target, number > 0))
                if known != target:
                    raise DataError(
                        f"{place}: {source!r} has two translations, {known!r} and {target!r}; keep "
                        "one"
                    )
        self._longest = max((len(key.split()) for key in self._terms), default=0)

    @classmethod
    def read(cls, path: Path) -> Self:
        """A file of lines "source<TAB>target"; "dog|dogs" are forms of a source; # comments.

        Raises:
            DataError: the file cannot be read, or a line is no term; the message has its number.
        """
        entries = []
        for number, line in enumerate(read_lines(path, max_bytes=MAX_TEXT_BYTES), 1):
            if line.strip() and not line.startswith("#"):
                source, *targets = line.split("\t")
                if len(targets) != 1:
                    raise DataError(
                        f"{path}, line {number}: expected a term, a tab and its translation, found "
                        f"{line!r}"
                    )
                entries.append((f"{path}, line {number}", source, targets[0]))
        return cls(entries)

    @classmethod
    def of(cls, terms: Mapping[str, str]) -> Self:
        """Source -> target. Raises: DataError if a side is empty, or forms contradict."""
        return cls((f"glossary, {source!r}", source, terms[source]) for source in terms)

    def terms_in(self, text: str) -> list[TermMatch]:
        """The terms of a source, in their order; of overlapping ones the longest."""
        spans, words = [match.span() for match in WORD.finditer(text)], _words(text)
        found = []
        for first, (start, _) in enumerate(spans):
            for after in range(first + 1, min(first + self._longest, len(words)) + 1):
                part = " ".join(words[first:after])
                entry = self._terms.get(part) or self._terms.get(part.lower())
                if entry is not None:
                    target, is_inflected = entry
                    end = spans[after - 1][1]
                    is_possessive = text[end : end + 1] in ("'", "’")
                    found.append(TermMatch(start, end, target, is_inflected or is_possessive))
        chosen: list[TermMatch] = []
        for match in sorted(found, key=lambda match: match.start - match.end):
            if all(match.end <= other.start or other.end <= match.start for other in chosen):
                chosen.append(match)
        return sorted(chosen, key=lambda match: match.start)

    def translate(
        self,
        translator: Translator,
        texts: Sequence[str],
        n: int,
        protected: Sequence[Collection[str]] | None = None,
    ) -> list[list[Translation]]:
        """As `Translator.translate_n_best`, with the terms of each sentence.

        A translation that lacks terms is searched for again with a lexical bias to them; where
        that does not help, they replace the words that belong to them. A warning of the translation
        names each that is missing even then. Nothing else that uses the model is changed.

        Args:
            protected: for each sentence, words that stay: they are neither terms nor replaced.
        """
        results = Translator.translate_n_best(translator, texts, n)
        kept = protected if protected is not None else [()] * len(texts)
        sentences = {
            i: _Sentence(translator, text, found)
            for i, text in enumerate(texts)
            if (
                found := [
                    match
                    for match in self.terms_in(text)
                    if not {*_words(match.of(text))}.intersection(kept[i])
                ]
            )
        }
        for weight in WEIGHTS:
            todo = [i for i, sentence in sentences.items() if sentence.n_lacking(results[i][0])]
            model = _biased(translator.model, [sentences[i] for i in todo], weight)
            if not todo or model is None:
                break
            biased = copy(translator)
            biased.model = model
            is_beam = translator.options.search == "beam"
            n_best = max(n, min(N_BEST, translator.options.beam)) if is_beam else n
            try:
                again = Translator.translate_n_best(biased, [texts[i] for i in todo], n_best)
            except TextError as error:
                error.index = todo[error.index]
                raise
            for i, translations in zip(todo, again, strict=True):
                n_wrong = sentences[i].n_wrong
                ordered = sorted(translations, key=n_wrong)[:n]
                results[i] = min(results[i], ordered, key=lambda best: n_wrong(best[0]))
        for i, sentence in sentences.items():
            results[i] = [sentence.replaced(each, kept[i]) for each in results[i]]
        return results


class _Sentence:
    """A source with terms.

    Attributes:
        ids: what the model reads.
        short: target -> the positions of its sources, and its ids, of terms for the lexical bias.
    """

    def __init__(self, translator: Translator, text: str, matches: Sequence[TermMatch]) -> None:
        self.text, self.matches, self.tokenizers = text, matches, translator.tokenizers
        tokenizer = translator.src_tokenizer
        tokens = tokenizer.split(text)[: translator.options.max_source_tokens]
        words, shares = words_and_shares(text, tokens, tokenizer, tokenizer.normalize)
        self.ids = tuple(translator.src_vocabulary.ids(tokens))
        self.short: dict[str, tuple[list[int], list[int]]] = {}
        for match in matches:
            ids = translator.tgt_vocabulary.ids(translator.tgt_tokenizer.split(match.target))
            if len(ids) <= MAX_SUBWORDS and UNK not in ids:
                inside = [start < match.end and end > match.start for start, end in words]
                positions, _ = self.short.setdefault(match.target, ([], ids))
                positions += np.flatnonzero(shares[inside].any(0)).tolist()

    def n_lacking(self, translation: Translation) -> int:
        """How many terms it lacks, in the form of the glossary, that the lexical bias may bring."""
        lacking = missing(self.matches, translation.text, is_exact=True)
        return sum(lacking[target] for target in self.short)

    def n_wrong(self, translation: Translation) -> int:
        """The same, and how many it has too often: the lexical bias may repeat them."""
        found = Counter(target for _, _, target in _present(self.short, translation.text))
        surplus = found - Counter(match.target for match in self.matches)
        return self.n_lacking(translation) + surplus.total()

    def replaced(self, translation: Translation, protected: Collection[str]) -> Translation:
        """The translation with each term that it lacks, in place of the words that belong to it."""
        for target in missing(self.matches, translation.text).elements():
            sources = [match for match in self.matches if match.target == target]
            places = [self._place(translation, match, protected) for match in sources]
            attention, start, end = max(places)
            if attention >= MIN_ATTENTION:
                translation = self._with_term(translation, target, start, end)
            else:
                warning = f"the glossary's {target!r} for {sources[0].of(self.text)!r} is missing"
                translation = replace(translation, warnings=(*translation.warnings, warning))
        return translation

    def _place(
        self, translation: Translation, match: TermMatch, protected: Collection[str]
    ) -> tuple[float, int, int]:
        """The attention to a term of the part of the translation that belongs to it, its first
        character and the one after the last.
        """
        weights = word_weights(translation, self.tokenizers)
        present = _present({each.target for each in self.matches}, translation.text)
        first, after = weights.inside(match.start, match.end)
        attention = weights.weights[:, first:after].sum(1)
        for index, (start, end) in enumerate(weights.target):
            word = translation.text[start:end]
            is_free = all(end <= begin or last <= start for begin, last, _ in present)
            if word in protected or not is_free or not any(map(str.isalnum, word)):
                attention[index] = 0
        if not attention.any():
            return 0.0, 0, 0
        best = low = high = int(attention.argmax())
        least, size = NEARLY * attention[best], after - first
        while low > 0 and high - low + 1 < size and attention[low - 1] >= least:
            low -= 1
        while high - low + 1 < size and attention[high + 1 : high + 2].sum() >= least:
            high += 1
        return float(attention[best]), weights.target[low][0], weights.target[high][1]

    def _with_term(self, translation: Translation, term: str, start: int, end: int) -> Translation:
        """The translation with a term in place of some characters."""
        text, term = translation.text, self.tokenizers[1].normalize(term)
        if text[start].isupper() and not any(map(str.isalnum, text[:start])):
            term = term[0].upper() + term[1:]
        edits, written = [Edit(start, end, term)], written_tokens(translation)
        new = apply_to_tokens(written, text, edits, self.tokenizers[1].join)
        changed = {position for position, token in enumerate(written) if token != new[position]}
        replaced = [each for each in translation.replaced if each.position not in changed]
        for position in sorted(changed):
            peak = int(translation.attention[position, :-1].argmax())
            replaced.append(Replacement(position, peak, new[position], "glossary"))
        return replace(translation, text=apply(text, edits).text, replaced=tuple(replaced))


def missing(matches: Sequence[TermMatch], text: str, *, is_exact: bool = False) -> Counter[str]:
    """How often a translation must have each term once more.

    is_exact: an ending may follow only those whose source is not the first form either.
    """
    wanted = Counter(match.target for match in matches)
    exact = {match.target for match in matches if is_exact and not match.is_inflected}
    return wanted - Counter(target for _, _, target in _present(wanted, text, exact))


def _present(
    targets: Iterable[str], text: str, exact: Collection[str] = ()
) -> list[tuple[int, int, str]]:
    """Where a translation has terms as whole words, the longest where they overlap, and which.

    exact: no ending may follow these.
    """
    spans = [match.span() for match in WORD.finditer(text)]
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    # All letters of some models, and of headings, have the same case.
    flags = re.IGNORECASE if text.islower() or text.isupper() else re.NOFLAG
    found: list[tuple[int, int, str]] = []
    for target in sorted(targets, key=len, reverse=True):
        ending = _ENDING if len(target) > 3 and target not in exact else ""
        written = rf"(?i:{re.escape(target[0])}){re.escape(target[1:])}{ending}"
        for match in re.finditer(written, text, flags):
            start, end = match.span()
            begins = re.search(r"(^|[.!?:])\W*$", text[:start])  # a sentence: in upper case
            if (
                (match[0][0] == target[0] or begins or flags)
                and start in starts
                and end in ends
                and all(end <= first or last <= start for first, last, _ in found)
            ):
                found.append((start, end, target))
    return found


def _words(text: str) -> list[str]:
    return [*map(normalize, WORD.findall(text))]


def _biased(
    model: TranslationModel, sentences: Sequence[_Sentence], weight: float
) -> TranslationModel | None:
    """A copy of a model whose lexical bias knows the terms; it shares everything else.

    None if it has no lexical bias, or is wrapped by an extra.
    """
    if model.choose_words is not None:
        return None
    if isinstance(model, Ensemble):
        members = [_biased(member, sentences, weight) for member in model.members]
        if not any(members):
            return None
        return Ensemble([new or old for new, old in zip(members, model.members, strict=True)])
    if not isinstance(model, Seq2Seq) or model.lexical_bias is None:
        return None
    return replace_submodules(model, lexical_bias=TermBias(model.lexical_bias, sentences, weight))


class TermBias(nn.Module):
    """A lexical bias in which terms have no other translations.

    Args:
        weight: of each subword of a term.
    """

    def __init__(self, bias: LexicalBias, sentences: Sequence[_Sentence], weight: float) -> None:
        super().__init__()
        self.bias, self.weight = bias, weight
        self.terms = {sentence.ids: [*sentence.short.values()] for sentence in sentences}

    def look_up(self, src: Tensor) -> Translations:
        """The translations of sentences [B, S]."""
        found = self.bias.look_up(src)
        ids = found.ids.tolist()
        terms = [
            self.terms.get(tuple(i for i in row if i not in (PAD, EOS)), ()) for row in src.tolist()
        ]
        for row, row_terms in zip(ids, terms, strict=True):
            wanted = {i: None for _, term in row_terms for i in term}
            row += [i for i in wanted if i not in row]
        width = max(map(len, ids))
        padded = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in ids])
        probabilities = functional.pad(found.probabilities, (0, width - found.ids.shape[1]))
        for number, row_terms in enumerate(terms):
            for positions, term in row_terms:
                probabilities[number, positions] = 0
                for i in term:
                    probabilities[number, positions, ids[number].index(i)] = self.weight
        return Translations(padded.to(src.device), probabilities)

    def forward(self, attention: Tensor, translations: Translations) -> Tensor:
        """The bias of each translation: [B, T, S] -> [B, T, U]."""
        return self.bias(attention, translations)  # type: ignore[no-any-return]
