"""The translator: raw text in, translations out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from nmt.config.schema import DecodingConfig
from nmt.data.batches import cut_batches
from nmt.decoding.batch_runner import run_batches
from nmt.decoding.hypothesis import Hypothesis
from nmt.decoding.search import search
from nmt.decoding.translation import Translation
from nmt.decoding.unknown_words import (
    UNKNOWN,
    Replacement,
    UnknownWords,
    replace_unknown,
    surface_forms,
    with_replacements,
)
from nmt.errors import ConfigError, DataError
from nmt.extras.lexicon.shortlist import Shortlist
from nmt.extras.ranking.mbr import rank_by_expected_utility
from nmt.model.interface import TranslationModel
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import Vocabulary

MAX_SEARCH_TOKENS = (
    1 << 15
)  # of a batch: sentences x beam x source length; limits the memory of search
RerankFn = Callable[
    [Sequence[Sequence[Translation]]], list[list[Translation]]
]  # see `nmt.extras.ranking.reverse`
# tokens; shorter sentences count as this long, which limits the hypotheses, and so the logits, of a
# step
MIN_LENGTH = 16


class Translator:
    """A model or an ensemble with the tokenizers and vocabularies of its two languages. Several
    threads may use it at once.

    Args:
        model: in evaluation mode.
        tokenizers, vocabularies: (source, target).
        options: how to search.
        unknown: how to replace unknown words.
        shortlist: limits the target words of each batch; None for all words.
        rerank: gives the hypotheses of the beam other scores; None for those of search.

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
        unknown: UnknownWords | None = None,
        shortlist: Shortlist | None = None,
        rerank: RerankFn | None = None,
    ) -> None:
        if model.training:
            raise ValueError("the model is in training mode; call model.eval() first")
        self.model = model
        self.tokenizers, self.vocabularies = tokenizers, vocabularies
        self.src_tokenizer, self.tgt_tokenizer = tokenizers
        self.src_vocabulary, self.tgt_vocabulary = vocabularies
        self.options, self.unknown, self.shortlist, self.rerank = (
            options,
            unknown or UnknownWords(),
            shortlist,
            rerank,
        )

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
        """The n best translations of each text, best first, or n samples; an empty text has one
        empty translation.

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
                "it "
                "may be empty"
            )
        return self.continue_prefixes(
            texts, [[] for _ in texts] if prefixes is None else self.prefix_ids(prefixes), n
        )

    def continue_prefixes(
        self, texts: Sequence[str], prefix_ids: Sequence[list[int]], n: int
    ) -> list[list[Translation]]:
        """As `translate_n_best`, from the target ids of the prefixes, one list per text."""
        all_tokens = self.src_tokenizer.split_all(texts)
        sources = [tokens[: self.options.max_source_tokens] for tokens in all_tokens]

        def translate_batch(indices: Sequence[int]) -> list[list[Translation]]:
            return self._translate_batch(
                [(texts[i], sources[i], prefix_ids[i]) for i in indices], n
            )

        results = [[Translation(text)] for text in texts]  # empty texts are in no batch
        n_hypotheses, key = _n_hypotheses(self.options, n)
        advice = f"lower {key} or decoding.max_source_tokens"
        batches = self._plan(list(map(len, sources)), n_hypotheses)
        for i, translations in run_batches(translate_batch, batches, advice, self.model.device):
            is_cut = len(all_tokens[i]) > len(sources[i])
            results[i] = (
                [replace(translation, src_cut=True) for translation in translations]
                if is_cut
                else translations
            )
        return results

    def prefix_ids(self, prefixes: Sequence[str]) -> list[list[int]]:
        """The target ids of each prefix. Raises: DataError if a prefix has a word that is not in
        the vocabulary.
        """
        all_tokens = self.tgt_tokenizer.split_all(prefixes)
        for prefix, tokens in zip(prefixes, all_tokens, strict=True):
            unknown = [token for token in tokens if token not in self.tgt_vocabulary]
            if unknown:
                word = self.tgt_tokenizer.join(unknown[:1])
                raise DataError(f"prefix {prefix!r}: {word!r} is not in the target vocabulary")
        return [self.tgt_vocabulary.ids(tokens) for tokens in all_tokens]

    def _plan(self, lengths: Sequence[int], n_hypotheses: int) -> list[list[int]]:
        """Batches of indices, by length, so that there is little padding. Empty sentences are left
        out.
        """
        order = sorted((i for i, length in enumerate(lengths) if length), key=lambda i: lengths[i])
        costs = [n_hypotheses * max(lengths[i], MIN_LENGTH) for i in order]
        return [
            order[part]
            for part in cut_batches(
                costs, max_items=self.options.batch, max_padded=MAX_SEARCH_TOKENS
            )
        ]

    def _translate_batch(
        self, batch: Sequence[tuple[str, list[str], list[int]]], n: int
    ) -> list[list[Translation]]:
        """The n best translations of each (text, its tokens, ids of its prefix)."""
        sources, prefixes = (
            [self.src_vocabulary.ids(tokens) for _, tokens, _ in batch],
            [prefix for _, _, prefix in batch],
        )
        words = (
            None
            if self.shortlist is None
            else self.shortlist.choose(sources, chain.from_iterable(prefixes))
        )
        needs_all = self.options.method == "mbr" or self.rerank is not None
        n_best = _n_hypotheses(self.options, n)[0] if needs_all else n
        all_hypotheses = search(
            self.model, sources, self.options, n_best=n_best, prefixes=prefixes, words=words
        )
        results = [
            [self._to_translation(text, tokens, hypothesis) for hypothesis in hypotheses]
            for (text, tokens, _), hypotheses in zip(batch, all_hypotheses, strict=True)
        ]
        if self.options.method == "sampling":
            return results
        if self.rerank is not None:
            results = self.rerank(results)
        if self.options.method == "mbr":
            reranked = self.rerank is not None
            return [
                rank_by_expected_utility(candidates, self.options, reranked=reranked)[:n]
                for candidates in results
            ]
        # Different tokens may be joined to the same text. If a sentence then has too few texts,
        # take them from the whole beam.
        results = [_without_duplicates(translations)[:n] for translations in results]
        too_few = (
            []
            if needs_all
            else [i for i, best in enumerate(results) if len(best) < n < self.options.beam]
        )
        if too_few:
            whole_beams = self._translate_batch([batch[i] for i in too_few], self.options.beam)
            for i, best in zip(too_few, whole_beams, strict=True):
                results[i] = best[:n]
        return results

    def _to_translation(
        self, source: str, src_tokens: Sequence[str], hypothesis: Hypothesis
    ) -> Translation:
        tokens = self.tgt_vocabulary.tokens(hypothesis.ids)
        replaced: tuple[Replacement, ...] = ()
        if self.unknown.replace and UNKNOWN in tokens:
            surfaces = surface_forms(source, src_tokens, self.src_tokenizer)
            replaced = replace_unknown(
                tokens, src_tokens, surfaces, hypothesis.attention, self.unknown.lexicon
            )
        return Translation(
            source=source,
            text=self.tgt_tokenizer.join(with_replacements(tokens, replaced)),
            src_tokens=tuple(src_tokens),
            tokens=tuple(tokens),
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            token_log_probs=tuple(hypothesis.token_log_probs),
            attention=hypothesis.attention,
            complete=hypothesis.complete,
            replaced=replaced,
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
    """How many hypotheses search follows in each sentence, to return the n best; and the key that
    sets their number.
    """
    if options.search == "beam":
        return options.beam, "decoding.beam"
    return (
        (options.mbr.samples, "decoding.mbr.samples")
        if options.method == "mbr"
        else (n, "the number of samples")
    )
