"""Test sentences that are in the training data: their scores measure memory, not learning."""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from pathlib import Path

from nmt.data.corpus import Corpus, restore_pairs
from nmt.data.manifest import load_manifest
from nmt.data.splitting import sentence_key
from nmt.errors import DataError, NmtError
from nmt.evaluation.results import EvaluationSet
from nmt.run.evaluated import System
from nmt.run.folder import ancestors, check_same_data, load_run_config
from nmt.text.tokenizers import WORD_CHARACTERS, Tokenizer
from nmt.text.vocabulary import SPECIALS, UNK, Vocabulary

NGRAM_SIZE = 3  # words
MIN_SHARED_NGRAMS = 0.8  # share of a sentence's n-grams that a near-duplicate has
MIN_NGRAMS = 2  # shorter sentences are common phrases, no sign of a leak
# share of a sentence's tokens; with more, different sentences look the same
MAX_UNKNOWN_TOKENS = 0.25

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


def words(text: str) -> list[str]:
    """Sequences of letters and digits, lower-cased."""
    return _WORD.findall(text.casefold())


def training_overlap(
    text: EvaluationSet, system: System, prepared: Path | None
) -> TrainingOverlap | None:
    """The overlap of the text with the system's training data; None, with a warning, if the data is
    not where it was. `prepared`: where that of the first run is now, if it was moved.
    """
    tools = system.translator.tokenizers, system.translator.vocabularies
    try:
        corpora = [Corpus.load(folder, "train") for folder in _training_folders(system, prepared)]
    except DataError as error:
        _warn(f"{system.names[0]} ({error})")
        return None
    training = chain.from_iterable(restore_pairs(corpus, *tools) for corpus in corpora)
    sides = zip((text.sources or [], text.references[0]), *tools, strict=True)
    overlap = scan(training, *(text_variants(*side) for side in sides))
    for counts in (overlap.src_counts, overlap.tgt_counts):
        for word in words(SPECIALS[UNK]):  # stands for many different words, each of them rare
            del counts[word]
    return overlap


def data_hashes(system: System) -> list[str]:
    """The content hash of each member's training data."""
    return [load_manifest(run)["content"] for run in system.folders]


def _training_folders(system: System, prepared: Path | None) -> list[Path]:
    """The prepared folders of the members and of the runs that they start from, each content once.

    Raises:
        DataError: the folder of a member is missing or has changed. If another one is missing,
            there is only a warning.
    """
    folders: dict[str, Path] = {}  # by content hash
    for run, data_hash in zip(system.folders, data_hashes(system), strict=True):
        if data_hash not in folders:
            moved = None if folders else prepared
            folders[data_hash] = moved or load_run_config(run).prepared_folder
            check_same_data(run, folders[data_hash])
    for member in system.folders:
        try:
            for run in ancestors(member):
                folder = load_run_config(run).prepared_folder
                check_same_data(run, folder)
                folders.setdefault(load_manifest(run)["content"], folder)
        except NmtError as error:
            _warn(f"an earlier run ({error})")
    return [*folders.values()]


def _warn(problem: str) -> None:
    """Of training data that is not there. `problem`: whose, and why."""
    print(
        f"nmt: cannot look for the test sentences in the training data of {problem}",
        file=sys.stderr,
    )


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
        # (`exact` for the text, `near` for its other variants; sentence)
        self._keys: dict[str, list[tuple[list[bool], int]]] = defaultdict(list)
        # n-gram -> indices of `_variants`
        self._ngrams: dict[tuple[str, ...], list[int]] = defaultdict(list)
        # (sentence, number of shared n-grams that make a near-duplicate)
        self._variants: list[tuple[int, int]] = []
        for i, variants in enumerate(sentences):
            for variant, text in enumerate(variants):
                ngrams = _ngrams(words(text))
                self._keys[sentence_key(text)].append((self.near if variant else self.exact, i))
                for ngram in ngrams if len(ngrams) >= MIN_NGRAMS else ():
                    self._ngrams[ngram].append(len(self._variants))
                self._variants.append((i, ceil(MIN_SHARED_NGRAMS * len(ngrams))))

    def look_up(self, text: str) -> None:
        """Compare a training sentence with all test sentences."""
        training_words = words(text)
        self.counts.update(training_words)
        for found, i in self._keys.get(sentence_key(text), ()):
            found[i] = True
        shared = Counter(
            variant for ngram in _ngrams(training_words) for variant in self._ngrams.get(ngram, ())
        )
        for variant, n_shared in shared.items():
            i, min_shared = self._variants[variant]
            if n_shared >= min_shared:
                self.near[i] = True


def _ngrams(sequence: Sequence[str]) -> set[tuple[str, ...]]:
    return set(zip(*(sequence[start:] for start in range(NGRAM_SIZE)), strict=False))
