"""Translates sentences with the terms of a glossary."""

import re
from collections import Counter
from collections.abc import Sequence, Set
from copy import copy
from dataclasses import replace

from nmt.decoding.alignment import written_tokens
from nmt.decoding.translation import Replacement, Translation
from nmt.decoding.translator import Translator
from nmt.errors import TextError
from nmt.text.vocabulary import UNK
from nmt.texts.glossary import Glossary, Term, missing, present
from nmt.texts.marked import Marked, Sign
from nmt.texts.warnings import TERM_MISSING
from nmt.texts.word_weights import WORD, Words, WordWeights

# p(term | each of its source words) for the lexical bias, tried in this order. Larger ones destroy
# the sentence.
WEIGHTS = 1, 10
N_BEST = 5  # hypotheses among which one with all terms, or all stand-ins, is looked for
MAX_SUBWORDS = 3  # the bias does not know their order, so of longer terms it makes other words
# Of a word of the translation, on a term: it replaces no word that reads the term less.
MIN_ATTENTION = 0.1


def bring_terms(
    results: list[list[Translation]],
    glossary: Glossary,
    translator: Translator,
    texts: Sequence[str],
    n: int,
    protected: Sequence[Set[str]],
) -> None:
    """Bring the terms of each text into its translations.

    Translations that lack terms are searched for again with a lexical bias to them; where that does
    not help, they replace the words that belong to them. A warning of the translation names each
    that is missing even then. Nothing else that uses the model is changed.

    Args:
        results: of `translator.translate_n_best(texts, n)`, to be changed.
        protected: for each text, words that stay: they are neither terms nor replaced.
    """
    sentences: dict[int, _SentenceWithTerms] = {}
    for i, text in enumerate(texts):
        terms = [
            term
            for term in glossary.terms_in(text)
            if not protected[i] & {*WORD.findall(term.source)}
        ]
        if terms:
            sentences[i] = _SentenceWithTerms(translator, text, terms, protected[i])
    n_best = min(N_BEST, translator.options.beam) if translator.options.search == "beam" else n
    for weight in WEIGHTS:
        todo = [i for i, sentence in sentences.items() if sentence.n_lacking(results[i][0])]
        wanted = {sentences[i].ids: [*sentences[i].short.values()] for i in todo}
        model = translator.model.with_terms(wanted, weight) if wanted else None
        if model is None:
            break
        biased = copy(translator)
        biased.model = model
        try:
            again = biased.translate_n_best([texts[i] for i in todo], max(n, n_best))
        except TextError as error:
            error.index = todo[error.index]
            raise
        for i, found in zip(todo, again, strict=True):
            n_wrong = sentences[i].n_wrong
            ordered = sorted(found, key=n_wrong)[:n]
            results[i] = min(results[i], ordered, key=lambda best: n_wrong(best[0]))
    for i, sentence in sentences.items():
        results[i] = [*map(sentence.replaced, results[i])]


class _SentenceWithTerms:
    """A source with terms.

    Attributes:
        ids: what the model reads.
        short: target -> the positions of its sources, and its ids, of terms for the lexical bias.
    """

    def __init__(
        self,
        translator: Translator,
        text: str,
        terms: Sequence[Term],
        protected: Set[str],
    ) -> None:
        self.terms, self.protected, self.tokenizers = terms, protected, translator.tokenizers
        tokenizer = translator.src_tokenizer
        tokens = tokenizer.split(text)[: translator.options.max_source_tokens]
        words = Words(text, tokens, tokenizer, tokenizer.normalize)
        self.ids = tuple(translator.src_vocabulary.ids(tokens))
        self.short: dict[str, tuple[list[int], list[int]]] = {}
        for term in terms:
            ids = translator.tgt_vocabulary.ids(translator.tgt_tokenizer.split(term.target))
            if len(ids) <= MAX_SUBWORDS and UNK not in ids:
                positions, _ = self.short.setdefault(term.target, ([], ids))
                positions += words.tokens_of(term.start, term.end)

    def n_lacking(self, translation: Translation) -> int:
        """How many terms it lacks, in the form of the glossary, that the lexical bias may bring."""
        lacking = missing(self.terms, translation.text, is_exact=True)
        return sum(lacking[target] for target in self.short)

    def n_wrong(self, translation: Translation) -> int:
        """The same, and how many it has too often: the lexical bias may repeat them, also as parts
        of words that are none.
        """
        text = translation.text.lower()
        doubled = sum(
            len(re.findall(rf"{word}\w*\W*(?={word})", text))
            for word in (re.escape(target.lower()) for target in self.short)
        )
        found = Counter(target for _, _, target in present(self.short, translation.text))
        surplus = found - Counter(term.target for term in self.terms)
        return self.n_lacking(translation) + max(surplus.total(), doubled)

    def replaced(self, translation: Translation) -> Translation:
        """The translation with each term that it lacks, in place of the words that belong to it."""
        for target in missing(self.terms, translation.text).elements():
            sources = [term for term in self.terms if term.target == target]
            # No word that is a term, or stays, is replaced.
            found = present({term.target for term in self.terms}, translation.text)
            words = WORD.finditer(translation.text)
            taken = [(start, end) for start, end, _ in found]
            taken += [match.span() for match in words if match[0] in self.protected]
            weights = WordWeights.of(translation, self.tokenizers)
            attention, start, end = max(
                weights.readers(term.start, term.end, taken) for term in sources
            )
            if attention >= MIN_ATTENTION:
                translation = self._with_term(translation, target, start, end)
            else:
                warning = TERM_MISSING.format(target=target, source=sources[0].source)
                translation = replace(translation, warnings=(*translation.warnings, warning))
        return translation

    def _with_term(self, translation: Translation, term: str, start: int, end: int) -> Translation:
        """The translation with a term in place of some characters."""
        text, term = translation.text, self.tokenizers[1].normalize(term)
        if text[start].isupper() and not any(map(str.isalnum, text[:start])):
            term = term[0].upper() + term[1:]
        marked = Marked(text, (Sign(start, term, "item", end - start),))
        written = written_tokens(translation)
        new = marked.tokens(written, self.tokenizers[1].join)
        changed = {position for position, token in enumerate(written) if token != new[position]}
        replaced = [each for each in translation.replaced if each.position not in changed]
        replaced += (
            Replacement(
                position,
                int(translation.attention[position, :-1].argmax()),
                new[position],
                "glossary",
            )
            for position in sorted(changed)
        )
        return replace(translation, text=marked.written, replaced=tuple(replaced))
