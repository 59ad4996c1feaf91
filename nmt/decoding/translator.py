"""The translator of sentences: raw text in, translations out, with their scores and attention.

Batches run in threads on a CPU, and in halves where memory does not hold a whole one.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

from nmt.config.schema import DecodingConfig
from nmt.data.padding import cut_batches
from nmt.decoding.hypothesis import Hypothesis
from nmt.decoding.model import TranslationModel
from nmt.decoding.search import search
from nmt.decoding.translation import (
    UNKNOWN,
    Replacement,
    Translation,
    copy_of,
    replace_unknown,
    surface_forms,
    with_replacements,
)
from nmt.errors import ConfigError, DataError, TooLargeError, lacks_memory
from nmt.text.tokenizers import Tokenizer, has_letters
from nmt.text.vocabulary import Vocabulary

# Of a batch: sentences x beam x source length; limits the memory of search.
MAX_SEARCH_TOKENS = 1 << 15
# Tokens; shorter sentences count as this long, which limits the hypotheses, and so the logits, of a
# step.
MIN_LENGTH = 16
MAX_THREADS = 4  # batches at a time: each needs memory, and all share one Python interpreter

BatchT = TypeVar("BatchT")
ResultT = TypeVar("ResultT")


class Ranker(Protocol):
    """Orders the hypotheses of each sentence anew, and may give them other scores.

    Attributes:
        runs: the other runs that it asks, by the name of their section in `decoding`.
    """

    runs: Mapping[str, Path]

    def __call__(self, results: Sequence[Sequence[Translation]]) -> list[list[Translation]]:
        """The hypotheses of each sentence, best first."""


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
        n_words = sum(
            count for token, count in zip(source, source.counts, strict=True) if has_letters(token)
        )
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
        tokenizers, vocabularies: (source, target).
        options: how to search.
        rankers: order all hypotheses of the beam, one after the other.
    """

    def __init__(
        self,
        model: TranslationModel,
        *,
        tokenizers: tuple[Tokenizer, Tokenizer],
        vocabularies: tuple[Vocabulary, Vocabulary],
        options: DecodingConfig,
        rankers: Sequence[Ranker] = (),
    ) -> None:
        self.model = model
        self.tokenizers, self.vocabularies = tokenizers, vocabularies
        self.src_tokenizer, self.tgt_tokenizer = tokenizers
        self.src_vocabulary, self.tgt_vocabulary = vocabularies
        self.options = options
        self.rankers = rankers
        self._wordless = WordlessLines(*vocabularies)

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
            ConfigError: the beam has fewer than `n` hypotheses.
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

    def continue_prefixes(
        self, texts: Sequence[str], prefix_ids: Sequence[list[int]], n: int
    ) -> list[list[Translation]]:
        """As `translate_n_best`, from the target ids of the prefixes, one list per text.

        Equal texts with equal prefixes are translated once.
        """
        all_tokens = self.src_tokenizer.split_all(texts)
        sources = [tokens[: self.options.max_source_tokens] for tokens in all_tokens]
        results = [[Translation(text)] for text in texts]  # empty texts are in no batch
        first: dict[tuple[str, tuple[int, ...]], int] = {}
        same = [
            first.setdefault((text, tuple(prefix)), i)
            for i, (text, prefix) in enumerate(zip(texts, prefix_ids, strict=True))
        ]
        searched = []
        for i in first.values():
            if sources[i] and not prefix_ids[i] and texts[i] in self._wordless:
                results[i] = [replace(copy_of(texts[i], sources[i]), is_known=True)]
            elif sources[i]:
                searched.append(i)

        def translate_batch(indices: Sequence[int]) -> list[list[Translation]]:
            return self._translate_batch(
                [(texts[i], sources[i], prefix_ids[i]) for i in indices], n
            )

        width = n_hypotheses(self.options, n)
        key = "decoding.beam" if self.options.search == "beam" else "the number of samples"
        advice = f"lower {key} or decoding.max_source_tokens"
        # By length: there is little padding.
        searched.sort(key=lambda i: len(sources[i]))
        costs = [width * max(len(sources[i]), MIN_LENGTH) for i in searched]
        batches = [
            searched[part]
            for part in cut_batches(
                costs, max_items=self.options.batch, max_padded=MAX_SEARCH_TOKENS
            )
        ]
        for i, translations in run_batches(translate_batch, batches, advice, self.model.threads):
            results[i] = [
                replace(each, src_cut=len(all_tokens[i]) > len(sources[i])) for each in translations
            ]
        return [results[i] for i in same]

    def prefix_ids(self, prefixes: Sequence[str]) -> list[list[int]]:
        """The target ids of each prefix. Raises: DataError if a word is not in the vocabulary."""
        all_tokens = self.tgt_tokenizer.split_all(prefixes)
        for prefix, tokens in zip(prefixes, all_tokens, strict=True):
            unknown = [token for token in tokens if token not in self.tgt_vocabulary]
            if unknown:
                raise DataError(
                    f"prefix {prefix!r}: {self.tgt_tokenizer.join(unknown[:1])!r} is not in the "
                    "target vocabulary"
                )
        return [self.tgt_vocabulary.ids(tokens) for tokens in all_tokens]

    def _translate_batch(
        self, batch: Sequence[tuple[str, list[str], list[int]]], n: int
    ) -> list[list[Translation]]:
        """The n best translations of each (text, its tokens, ids of its prefix)."""
        sources = [self.src_vocabulary.ids(tokens) for _, tokens, _ in batch]
        prefixes = [prefix for _, _, prefix in batch]
        n_best = n_hypotheses(self.options, n) if self.rankers else n
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

    def _to_translation(
        self, source: str, src_tokens: Sequence[str], hypothesis: Hypothesis
    ) -> Translation:
        tokens = written = self.tgt_vocabulary.tokens(hypothesis.ids)
        replaced: tuple[Replacement, ...] = ()
        if self.options.replace_unknown and UNKNOWN in tokens:
            surfaces = surface_forms(source, src_tokens, self.src_tokenizer)
            replaced = replace_unknown(tokens, surfaces, hypothesis.attention)
            written = [token for token in with_replacements(tokens, replaced) if token]
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
    if n > n_hypotheses(options, n):
        raise ConfigError(
            f"{n} translations per sentence: the beam is {options.beam}; set decoding.beam to {n} "
            "or more"
        )


def n_hypotheses(options: DecodingConfig, n: int) -> int:
    """How many hypotheses search follows to return the n best."""
    return options.beam if options.search == "beam" else n


def run_batches(
    fn: Callable[[Sequence[int]], list[ResultT]],
    batches: Iterable[Sequence[int]],
    advice: str,
    threads: int,
) -> Iterator[tuple[int, ResultT]]:
    """Each index of the batches with its result.

    Args:
        fn: takes indices, returns a result for each.
        batches: of indices, shortest sentences first.
        advice: what the user can do about a text that does not fit into memory.

    Raises:
        TooLargeError: a single text does not fit into memory.
    """
    longest_first = [*batches][::-1]  # so that all threads finish at about the same time
    all_results = map_in_threads(
        lambda indices: run_or_split_on_oom(fn, indices, advice), longest_first, threads
    )
    for indices, results in zip(longest_first, all_results, strict=True):
        yield from zip(indices, results, strict=True)


def run_or_split_on_oom(
    fn: Callable[[Sequence[int]], list[ResultT]], indices: Sequence[int], advice: str
) -> list[ResultT]:
    """`fn(indices)`; if that runs out of memory, `fn` of each half.

    Raises:
        TooLargeError: a single index does not fit into memory.
    """
    try:
        return fn(indices)
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
    # Outside of `except`: the error holds the arrays of the failed attempt until here.
    if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
    if len(indices) == 1:
        raise TooLargeError(indices[0], advice)
    half = len(indices) // 2
    return [
        *run_or_split_on_oom(fn, indices[:half], advice),
        *run_or_split_on_oom(fn, indices[half:], advice),
    ]


def map_in_threads(
    fn: Callable[[BatchT], ResultT], batches: Sequence[BatchT], threads: int
) -> Iterator[ResultT]:
    """`fn` of each batch, in order; several at a time, in at most `MAX_THREADS` threads.

    A step of search is many small operations, so two batches with one thread each finish sooner
    than one after the other with two threads each. onnxruntime releases the interpreter lock while
    it computes. A GPU gains nothing from threads.

    Raises:
        Exception: the first that `fn` raised; batches that have not started are dropped.
    """
    n_workers = min(threads, len(batches), MAX_THREADS)
    if n_workers < 2:
        yield from map(fn, batches)
        return
    with ThreadPoolExecutor(n_workers, "batch") as pool:
        yield from pool.map(fn, batches)
