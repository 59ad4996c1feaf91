"""Test sentences that are in the training data: their scores measure memory, not learning."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any

from nmt.data.corpus import Corpus, restore_pairs
from nmt.data.evaluation_set import EvaluationSet
from nmt.data.splitting import sentence_key
from nmt.decoding.translator import Translator
from nmt.evaluation.scores import MetricScore, score
from nmt.text.normalization import WORD_CHARACTERS
from nmt.text.tokenizers import Tokenizer
from nmt.text.vocabulary import SPECIALS, UNK, Vocabulary

NGRAM_SIZE = 3  # words
MIN_SHARED_NGRAMS = 0.8  # share of a sentence's n-grams that a near-duplicate has
MIN_NGRAMS = 2  # shorter sentences are common phrases, no sign of a leak
MAX_UNKNOWN_TOKENS = (
    0.25  # share of a sentence's tokens; with more, different sentences look the same
)

_WORD = re.compile(rf"[{WORD_CHARACTERS}]+")


@dataclass(frozen=True)
class TrainingOverlap:
    """The overlap of N test sentences with the training data.

    Attributes:
        exact: [N], whether the source or the target is in the training data, ignoring case, spaces
            and punctuation.
        near: [N], whether the source or the target is nearly there, but not exactly: a training
            sentence has 80 % of its word trigrams, or differs only in unknown words.
        src_counts, tgt_counts: how often each word (lower-cased) is in the training data.
    """

    exact: list[bool]
    near: list[bool]
    src_counts: Counter[str]
    tgt_counts: Counter[str]

    @property
    def clean(self) -> list[int]:
        """Indices of the sentences that are neither exactly nor nearly in the training data."""
        return [
            i for i, leaked in enumerate(zip(self.exact, self.near, strict=True)) if not any(leaked)
        ]


@dataclass(frozen=True)
class Leaks:
    """How many test sentences are exactly, and nearly, in the training data; and the scores of the
    others.

    scores_without: empty if there are no leaks, or no other sentences. lowercase: whether they
    ignore case.
    """

    exact: int
    near: int
    scores_without: list[MetricScore]
    lowercase: bool = False

    def __str__(self) -> str:
        counts = (
            f"sentences that are in the training data: {self.exact:,} exactly, {self.near:,} nearly"
        )
        if not self.exact and not self.near:
            return counts
        scores = ", ".join(f"{score.name} {score.value:.2f}" for score in self.scores_without)
        without = "scores without them, ignoring case" if self.lowercase else "scores without them"
        return f"{counts}; {without}: {scores or 'none, no sentence is left'}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "exact": self.exact,
            "near": self.near,
            "scores_without": [score.to_dict() for score in self.scores_without],
        }


def words(text: str) -> list[str]:
    """Sequences of letters and digits, lower-cased."""
    return _WORD.findall(text.casefold())


def find_overlap(
    text: EvaluationSet, translator: Translator, prepared: Sequence[Path]
) -> TrainingOverlap:
    """Look the test sentences up in the training data of the prepared folders. Raises: DataError if
    it is damaged.
    """
    tools, corpora = (
        (translator.tokenizers, translator.vocabularies),
        [Corpus.load(folder, "train") for folder in prepared],
    )
    training = chain.from_iterable(restore_pairs(corpus, *tools) for corpus in corpora)
    sides = zip((text.sources or [], text.references[0]), *tools, strict=True)
    overlap = scan(training, *(text_variants(*side) for side in sides))
    for counts in (overlap.src_counts, overlap.tgt_counts):
        for word in words(SPECIALS[UNK]):  # stands for many different words, each of them rare
            del counts[word]
    return overlap


def score_leaks(
    overlap: TrainingOverlap,
    text: EvaluationSet,
    outputs: Sequence[str],
    metrics: Sequence[str],
    *,
    lowercase: bool = False,
) -> Leaks:
    """Count the leaks, and score the outputs of the other sentences; `lowercase`: ignoring case."""
    clean = overlap.clean
    scores: list[MetricScore] = []
    if 0 < len(clean) < len(text):
        references = [[stream[i] for i in clean] for stream in text.references]
        scores = score([outputs[i] for i in clean], references, metrics, lowercase=lowercase)
    return Leaks(sum(overlap.exact), sum(overlap.near), scores, lowercase)


def text_variants(
    texts: Sequence[str], tokenizer: Tokenizer, vocabulary: Vocabulary
) -> list[tuple[str, ...]]:
    """Each text, normalized like the training data; if a few of its tokens are unknown, also as
    `restore_texts` would give it.
    """
    variants: list[tuple[str, ...]] = []
    for text, tokens in zip(
        map(tokenizer.normalize, texts), tokenizer.split_all(texts), strict=True
    ):
        ids = vocabulary.ids(tokens)
        has_few_unknown = 0 < ids.count(UNK) <= MAX_UNKNOWN_TOKENS * len(ids)
        variants.append(
            (text, tokenizer.join(vocabulary.tokens(ids))) if has_few_unknown else (text,)
        )
    return variants


def scan(
    training: Iterable[tuple[str, str]],
    sources: Sequence[Sequence[str]],
    targets: Sequence[Sequence[str]],
) -> TrainingOverlap:
    """Read the training pairs once, and look up each test sentence.

    Args:
        training: (source, target) texts.
        sources, targets: variants of each test sentence. The first is its text; a match with any
            other variant, such as one with unknown words, counts as near, since the words behind
            <unk> are not known.
    """
    sides = _Side(sources), _Side(targets)
    for pair in training:
        for side, text in zip(sides, pair, strict=True):
            side.look_up(text)
    exact = [any(sides_exact) for sides_exact in zip(*(side.exact for side in sides), strict=True)]
    near = [
        any(sides_near) and not is_exact
        for is_exact, *sides_near in zip(exact, *(side.near for side in sides), strict=True)
    ]
    return TrainingOverlap(exact, near, sides[0].counts, sides[1].counts)


class _Side:
    """The test sentences of one language, indexed by their keys and by their n-grams."""

    def __init__(self, sentences: Sequence[Sequence[str]]) -> None:
        self.exact, self.near = [False] * len(sentences), [False] * len(sentences)
        self.counts: Counter[str] = Counter()
        self._text_keys: dict[str, list[int]] = defaultdict(list)
        self._variant_keys: dict[str, list[int]] = defaultdict(list)  # of the other variants
        self._ngrams: dict[tuple[str, ...], list[int]] = defaultdict(
            list
        )  # n-gram -> indices of `_variants`
        self._variants: list[
            tuple[int, int]
        ] = []  # (sentence, number of shared n-grams that make a near-duplicate)
        for i, variants in enumerate(sentences):
            for variant, text in enumerate(variants):
                ngrams = _ngrams(words(text))
                (self._variant_keys if variant else self._text_keys)[sentence_key(text)].append(i)
                for ngram in ngrams if len(ngrams) >= MIN_NGRAMS else ():
                    self._ngrams[ngram].append(len(self._variants))
                self._variants.append((i, ceil(MIN_SHARED_NGRAMS * len(ngrams))))

    def look_up(self, text: str) -> None:
        """Compare a training sentence with all test sentences."""
        training_words = words(text)
        self.counts.update(training_words)
        key = sentence_key(text)
        for i in self._text_keys.get(key, ()):
            self.exact[i] = True
        for i in self._variant_keys.get(key, ()):
            self.near[i] = True
        shared = Counter(
            variant for ngram in _ngrams(training_words) for variant in self._ngrams.get(ngram, ())
        )
        for variant, n_shared in shared.items():
            i, min_shared = self._variants[variant]
            if n_shared >= min_shared:
                self.near[i] = True


def _ngrams(sequence: Sequence[str]) -> set[tuple[str, ...]]:
    return set(zip(*(sequence[start:] for start in range(NGRAM_SIZE)), strict=False))
