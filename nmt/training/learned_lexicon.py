"""The lexicon of `model.lexical_bias`, learned from the training data by word alignment."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt.config.schema import Config
from nmt.data.batches import divide_epoch
from nmt.data.corpus import Corpus, Sequences
from nmt.model.lexical_bias import LexicalBias, WordKeys
from nmt.run.folder import load_vocabularies
from nmt.text.vocabulary import PAD, Vocabulary
from nmt.training.word_alignment import EMPTY_WORD, Indices, WordAligner

MAX_RANGES = 256  # 262,144 pairs; with 17 tokens a side, aligning them takes 2 GB and 75 s
WORD_TRANSLATIONS = 10  # of a whole word, before they are divided into tokens


class WholeWords(NamedTuple):
    """Translations of w whole source words, the most frequent first.

    Attributes:
        tokens: of the source vocabulary.
        keys: [w], see `WordKeys`. ids, probabilities: [w, k], of target tokens.
    """

    tokens: Sequence[str]
    keys: Tensor
    ids: Tensor
    probabilities: Tensor


@dataclass(frozen=True)
class LearnedLexicon:
    """Translations.

    Attributes:
        ids, probabilities: [V_s, k], of each source token.
        words: None without `model.lexical_words`.
    """

    ids: Tensor
    probabilities: Tensor
    words: WholeWords | None

    @classmethod
    def learn(cls, config: Config) -> "LearnedLexicon":
        """Align the training data; if it has several parts, some ranges only, to save memory."""
        src, tgt = load_vocabularies(config.prepared_folder)
        corpus = Corpus.load(config.prepared_folder, "train")
        part = next(divide_epoch(len(corpus), seed=config.seed, epoch=0))
        if part.n_parts > 1:
            part = replace(part, ranges=part.ranges[:: -(-len(part.ranges) // MAX_RANGES)])
        corpus, size = part.select(corpus), config.model.lexical_bias
        aligner = WordAligner(corpus, len(src), len(tgt))
        aligner.fit()
        ids, probabilities = map(torch.from_numpy, aligner.translations(size))
        words = (
            _learn_words(corpus, src, tgt, size, config.model.lexical_words)
            if config.model.lexical_words
            else None
        )
        return cls(ids, probabilities, words)

    def fill(self, bias: LexicalBias) -> dict[str, int]:
        """Set the lexicon of a model. Returns: its numbers of translations, tokens and words."""
        bias.fill(self.ids, self.probabilities)
        figures = {
            "translations": int(self.probabilities.gt(0).sum()),
            "tokens": int(self.probabilities.gt(0).any(1).sum()),
        }
        if self.words is not None:
            bias.fill_words(*self.words)
            figures["words"] = len(self.words.keys)
        return figures


def _learn_words(
    corpus: Corpus, src: Vocabulary, tgt: Vocabulary, size: int, n_words: int
) -> WholeWords:
    """Align whole words; the probability of a target token is that of all translations that contain
    it.
    """
    src_tokens, tgt_tokens = (words.tokens(range(len(words))) for words in (src, tgt))
    src_words = _Words(corpus.src, src_tokens, lowercase=True)
    tgt_words = _Words(corpus.tgt, tgt_tokens, lowercase=False)
    aligner = WordAligner(
        Corpus(src_words.sentences, tgt_words.sentences), src_words.n_numbers, tgt_words.n_numbers
    )
    aligner.fit()
    frequent = src_words.frequent(n_words)
    words = [numbers[frequent] for numbers in aligner.translations(WORD_TRANSLATIONS)]
    ids = torch.zeros(len(frequent), size, dtype=torch.long)
    probabilities = torch.zeros(len(frequent), size)
    for row, translations in enumerate(zip(*words, strict=True)):
        sums: Counter[int] = Counter()
        for number, probability in zip(*(values.tolist() for values in translations), strict=True):
            sums.update(
                dict.fromkeys(tgt_words.tokens_of(number), probability) if probability else {}
            )
        for column, (token, probability) in enumerate(sums.most_common(size)):
            ids[row, column], probabilities[row, column] = token, probability
    return WholeWords(src_tokens, torch.from_numpy(src_words.keys[frequent]), ids, probabilities)


class _Words:
    """The sentences of one side in whole words, which have numbers from 1 on in place of ids.

    Attributes:
        sentences: the numbers. keys: by number.
    """

    def __init__(self, sentences: Sequences, tokens: Sequence[str], *, lowercase: bool) -> None:
        word_keys = WordKeys(len(tokens))
        word_keys.fill(tokens, lowercase=lowercase)
        # One long sentence, in which a word between the others ends each sentence.
        ends = np.cumsum(sentences.lengths)
        self._ids = np.insert(np.concatenate([ids for ids, _ in sentences.blocks()]), ends, PAD)
        ids = torch.from_numpy(self._ids.astype(np.int64))[None]
        numbers, keys = (part[0].numpy() for part in word_keys(ids))
        self._starts = np.flatnonzero(np.diff(numbers, prepend=-1))  # of the words
        is_end = self._ids[self._starts] == PAD
        unique, first, inverse = np.unique(
            keys[self._starts[~is_end]], return_index=True, return_inverse=True
        )
        self.keys = np.concatenate([[0], unique])
        self._first = np.flatnonzero(~is_end)[first]  # the word at which a number occurs first
        word_ends = np.flatnonzero(is_end) - np.arange(is_end.sum())
        self._inverse = inverse + 1
        self.sentences = Sequences(
            (self._inverse.astype(np.int32), np.concatenate([[0], word_ends]))
        )

    @property
    def n_numbers(self) -> int:
        return len(self.keys)

    def tokens_of(self, number: int) -> list[int]:
        """The ids of the tokens of a word."""
        word = self._first[number - 1]
        return [*set(self._ids[self._starts[word] : self._starts[word + 1]].tolist())]

    def frequent(self, n_words: int) -> Indices:
        """The numbers of the most frequent words that have a key."""
        counts = np.bincount(self._inverse, minlength=self.n_numbers)
        counts[(self.keys == 0) | (np.arange(self.n_numbers) == EMPTY_WORD)] = 0
        return np.argsort(-counts, kind="stable")[: min(n_words, np.count_nonzero(counts))]
