"""The translator: raw text in, translations out, with their scores and attention."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nmt.config.parts import METHODS, VIEWS
from nmt.config.schema import DecodingConfig
from nmt.data.batches import cut_batches
from nmt.decoding.batch_runner import run_batches
from nmt.decoding.hypothesis import Hypothesis
from nmt.decoding.search import search
from nmt.decoding.unknown_words import (
    UNKNOWN,
    Replacement,
    WordFn,
    replace_unknown,
    surface_forms,
    with_replacements,
)
from nmt.errors import ConfigError, DataError
from nmt.model.interface import TranslationModel
from nmt.text.tokenizers import Tokenizer, normalize
from nmt.text.vocabulary import EOS, SPECIALS, Vocabulary

# Of a batch: sentences x beam x source length; limits the memory of search.
MAX_SEARCH_TOKENS = 1 << 15
# Tokens; shorter sentences count as this long, which limits the hypotheses, and so the logits, of a
# step.
MIN_LENGTH = 16


@dataclass(frozen=True)
class Translation:
    """The translation of a sentence; everything but `source` is empty if the source is.

    Attributes:
        source, text: raw.
        src_tokens: S - 1 tokens of the source; the model reads <eos> after them.
        tokens: tokens of the output, before unknown words are replaced.
        score: ranks the translations of a sentence. log_prob: of the tokens and <eos>, in nats.
        token_log_probs: one for each row of `attention`; `log_prob` is their sum.
        attention: [T, S], a row for each token (and one for <eos> if `complete`); the last column
            belongs to <eos>.
        complete: False if the output was truncated at the maximum length.
        src_cut: whether the source was truncated at decoding.max_source_tokens.
        replaced: the replacements of unknown words.
        read: what the model read, if it is not the source.
        warnings: what is wrong, beside what `WarningChecker` finds.
        facts: further ones, for JSON.
        is_known: whether it was known without search; it needs no warnings.
    """

    source: str
    text: str = ""
    src_tokens: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    score: float = 0.0
    log_prob: float = 0.0
    token_log_probs: tuple[float, ...] = ()
    attention: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 1), np.float32))
    complete: bool = True
    src_cut: bool = False
    replaced: tuple[Replacement, ...] = ()
    read: str | None = None
    warnings: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_known: bool = False

    @property
    def has_attention(self) -> bool:
        """False for an empty source, and for a model without attention, whose weights are all 0."""
        return bool(self.attention.any())

    @property
    def attention_labels(self) -> tuple[list[str], list[str]]:
        """The tokens of the columns and of the rows of `attention`, <eos> included."""
        eos = SPECIALS[EOS]
        return [*self.src_tokens, eos], [*self.tokens, *([eos] if self.complete else [])]

    def _repr_html_(self) -> str | None:
        """In a notebook; None shows it as text."""
        view = VIEWS.get("notebook")
        return None if view is None else view.load()(self)


class Ranker(Protocol):
    """Orders the hypotheses of each sentence anew, and may give them other scores.

    Attributes:
        runs: the other runs that it asks, by the name of their section in `decoding`.
    """

    runs: Mapping[str, Path]

    def __call__(self, results: Sequence[Sequence[Translation]]) -> list[list[Translation]]:
        """The hypotheses of each sentence, best first."""


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


class WordlessLines:
    """Knows which lines are copied: those without letters.

    Two kinds are translated after all: all lines, if the training data is mostly numbers or signs;
    and a line with a character beyond ASCII that the source language has and the target language
    lacks, such as "。" on the way into English.

    Args:
        source, target: with the counts of the training data.

    Attributes:
        are_copied: False if the training data is mostly numbers or signs.
        only_source: the characters that the source language has and the target language lacks.
    """

    def __init__(self, source: Vocabulary, target: Vocabulary) -> None:
        counted = zip(source, source.counts, strict=True)
        n_words = sum(count for token, count in counted if has_letters(token))
        self.are_copied = n_words >= sum(source.counts) / 2
        self.only_source = {*"".join(source)} - {*"".join(target)}

    def __contains__(self, text: str) -> bool:
        if not self.are_copied or has_letters(text):
            return False
        return text.isascii() or self.only_source.isdisjoint(text)


class Translator:
    """A model or an ensemble with the tokenizers and vocabularies of its two languages. Several
    threads may use it at once. Lines without words are copied, see `WordlessLines`.

    Args:
        model: in evaluation mode.
        tokenizers, vocabularies: (source, target).
        options: how to search.
        words: translates a source word in place of <unk>; without it, the word is copied.
        rankers: order all hypotheses of the beam, one after the other.
        confidence: the probability that a translation is good, for its `facts`.

    Raises:
        ValueError: the model is in training mode, in which dropout would change the translations.
    """

    def __init__(
        self,
        model: TranslationModel,
        *,
        tokenizers: tuple[Tokenizer, Tokenizer],
        vocabularies: tuple[Vocabulary, Vocabulary],
        options: DecodingConfig,
        words: WordFn | None = None,
        rankers: Sequence[Ranker] = (),
        confidence: Callable[[Translation], float] | None = None,
    ) -> None:
        if model.training:
            raise ValueError("the model is in training mode; call model.eval() first")
        self.model = model
        self.tokenizers, self.vocabularies = tokenizers, vocabularies
        self.src_tokenizer, self.tgt_tokenizer = tokenizers
        self.src_vocabulary, self.tgt_vocabulary = vocabularies
        self.options, self.words, self.rankers = options, words, rankers
        self.confidence = confidence
        self._wordless = WordlessLines(*vocabularies)

    @property
    def arguments(self) -> dict[str, Any]:
        """What makes this translator: for a translator of another class in its place."""
        return {
            "model": self.model,
            "tokenizers": self.tokenizers,
            "vocabularies": self.vocabularies,
            "options": self.options,
            "words": self.words,
            "rankers": self.rankers,
            "confidence": self.confidence,
        }

    def translate(
        self, texts: Sequence[str], prefixes: Sequence[str] | None = None
    ) -> list[Translation]:
        """One translation per text, in the same order; an empty text gives an empty one.

        Args:
            prefixes: the start of each translation, as raw text.

        Raises:
            DataError: a prefix has a word that is not in the vocabulary.
            TooLargeError: a text does not fit into memory, even alone.
        """
        return [translations[0] for translations in self.translate_n_best(texts, 1, prefixes)]

    def translate_n_best(
        self, texts: Sequence[str], n: int, prefixes: Sequence[str] | None = None
    ) -> list[list[Translation]]:
        """The n best translations of each text, best first, or n samples.

        Of translations with the same text only the best is kept, so there may be fewer than n. With
        method sampling all are kept.

        Raises:
            ConfigError: there are fewer than `n` hypotheses or candidates.
            DataError: a prefix has a word that is not in the vocabulary.
            TooLargeError: a text does not fit into memory, even alone.
        """
        check_n_best(n, self.options)
        if prefixes is not None and len(prefixes) != len(texts):
            raise DataError(
                f"{len(prefixes)} prefixes for {len(texts)} texts: give one prefix per text; "
                "it may be empty"
            )
        return self.continue_prefixes(
            texts, [[] for _ in texts] if prefixes is None else self.prefix_ids(prefixes), n
        )

    def known(self, text: str) -> Translation | None:
        """The translation of a whole text, or of a sentence, that needs no search."""
        return None

    def continue_prefixes(
        self, texts: Sequence[str], prefix_ids: Sequence[list[int]], n: int
    ) -> list[list[Translation]]:
        """As `translate_n_best`, from the target ids of the prefixes, one list per text.

        Equal texts with equal prefixes are translated once.
        """
        all_tokens = self.src_tokenizer.split_all(texts)
        sources = [tokens[: self.options.max_source_tokens] for tokens in all_tokens]

        def translate_batch(indices: Sequence[int]) -> list[list[Translation]]:
            found = self._translate_batch(
                [(texts[i], sources[i], prefix_ids[i]) for i in indices], n
            )
            return [[self._judged(translation) for translation in best] for best in found]

        results = [[Translation(text)] for text in texts]  # empty texts are in no batch
        first: dict[tuple[str, tuple[int, ...]], int] = {}
        same = [
            first.setdefault((text, tuple(prefix)), i)
            for i, (text, prefix) in enumerate(zip(texts, prefix_ids, strict=True))
        ]
        searched = []
        for i in first.values():
            if sources[i] and not prefix_ids[i] and texts[i] in self._wordless:
                results[i] = [copy_of(texts[i], sources[i])]
            elif sources[i]:
                searched.append(i)
        n_hypotheses, key = _n_hypotheses(self.options, n)
        advice = f"lower {key} or decoding.max_source_tokens"
        # By length, so that there is little padding.
        order = sorted(searched, key=lambda i: len(sources[i]))
        costs = [n_hypotheses * max(len(sources[i]), MIN_LENGTH) for i in order]
        batches = [
            order[part]
            for part in cut_batches(
                costs, max_items=self.options.batch, max_padded=MAX_SEARCH_TOKENS
            )
        ]
        for i, translations in run_batches(translate_batch, batches, advice, self.model.device):
            is_cut = len(all_tokens[i]) > len(sources[i])
            results[i] = (
                [replace(translation, src_cut=True) for translation in translations]
                if is_cut
                else translations
            )
        return [results[i] for i in same]

    def prefix_ids(self, prefixes: Sequence[str]) -> list[list[int]]:
        """The target ids of each prefix. Raises: DataError if a word is not in the vocabulary."""
        all_tokens = self.tgt_tokenizer.split_all(prefixes)
        for prefix, tokens in zip(prefixes, all_tokens, strict=True):
            unknown = [token for token in tokens if token not in self.tgt_vocabulary]
            if unknown:
                word = self.tgt_tokenizer.join(unknown[:1])
                raise DataError(f"prefix {prefix!r}: {word!r} is not in the target vocabulary")
        return [self.tgt_vocabulary.ids(tokens) for tokens in all_tokens]

    def _translate_batch(
        self, batch: Sequence[tuple[str, list[str], list[int]]], n: int
    ) -> list[list[Translation]]:
        """The n best translations of each (text, its tokens, ids of its prefix)."""
        sources = [self.src_vocabulary.ids(tokens) for _, tokens, _ in batch]
        prefixes = [prefix for _, _, prefix in batch]
        n_best = _n_hypotheses(self.options, n)[0] if self.rankers else n
        beams = search(self.model, sources, self.options, n_best=n_best, prefixes=prefixes)
        results = [
            [self._to_translation(text, tokens, hypothesis) for hypothesis in beam]
            for (text, tokens, _), beam in zip(batch, beams, strict=True)
        ]
        if self.options.search == "sampling" and not self.rankers:
            return results
        for rank in self.rankers:
            results = rank(results)
        results = [_without_duplicates(translations)[:n] for translations in results]
        too_few = [i for i, best in enumerate(results) if len(best) < n < self.options.beam]
        if too_few and not self.rankers:
            # Different tokens were joined to the same text: take more from the whole beam.
            whole_beams = self._translate_batch([batch[i] for i in too_few], self.options.beam)
            for i, best in zip(too_few, whole_beams, strict=True):
                results[i] = best[:n]
        return results

    def _judged(self, translation: Translation) -> Translation:
        if self.confidence is None:
            return translation
        return replace(translation, facts={"confidence": self.confidence(translation)})

    def _to_translation(
        self, source: str, src_tokens: Sequence[str], hypothesis: Hypothesis
    ) -> Translation:
        tokens = written = self.tgt_vocabulary.tokens(hypothesis.ids)
        replaced: tuple[Replacement, ...] = ()
        if self.options.replace_unknown and UNKNOWN in tokens:
            surfaces = surface_forms(source, src_tokens, self.src_tokenizer)
            replaced = replace_unknown(
                tokens, src_tokens, surfaces, hypothesis.attention, self.words
            )
            written = with_replacements(tokens, replaced)
        return Translation(
            source=source,
            text=self.tgt_tokenizer.join(written),
            src_tokens=tuple(src_tokens),
            tokens=tuple(tokens),
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            token_log_probs=tuple(hypothesis.token_log_probs),
            attention=hypothesis.attention,
            complete=hypothesis.complete,
            replaced=replaced,
        )


def copy_of(text: str, tokens: Sequence[str]) -> Translation:
    """The text as its own translation, each token aligned with itself."""
    size = len(tokens) + 1
    return Translation(
        source=text,
        text=text if text.isprintable() else normalize(text),
        src_tokens=tuple(tokens),
        tokens=tuple(tokens),
        token_log_probs=(0.0,) * size,
        attention=np.eye(size, dtype=np.float32),
    )


def _without_duplicates(translations: Sequence[Translation]) -> list[Translation]:
    """The first translation of each text."""
    first: dict[str, Translation] = {}
    for translation in translations:
        first.setdefault(translation.text, translation)
    return [*first.values()]


def check_n_best(n: int, options: DecodingConfig) -> None:
    """Raises: ConfigError if search cannot return `n` translations of a sentence."""
    if n < 1:
        raise ConfigError(f"{n} translations per sentence: ask for at least one")
    available, key = _n_hypotheses(options, n)
    if n > available:
        limit = (
            f"the beam is {available}"
            if options.search == "beam"
            else f"there are {available} samples"
        )
        raise ConfigError(f"{n} translations per sentence: {limit}; set {key} to {n} or more")


def _n_hypotheses(options: DecodingConfig, n: int) -> tuple[int, str]:
    """How many hypotheses search follows to return the n best, and the key of their number."""
    if options.search == "beam":
        return options.beam, "decoding.beam"
    key = METHODS[options.method].trait("samples")
    if key is None:
        return n, "the number of samples"
    return attrgetter(key)(options), f"decoding.{key}"
