"""The lexicon of `model.lexical_bias`, learned from the training data by the word aligner."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from nmt.config.schema import Config
from nmt.data.batches import divide_epoch
from nmt.data.corpus import Corpus, Sequences
from nmt.data.word_alignment import EMPTY_WORD, Indices, WordAligner
from nmt.model.lexical_bias import LexicalBias, WordKeys
from nmt.model.lexicon import LAST_KEY
from nmt.run.folder import load_vocabularies
from nmt.text.vocabulary import PAD, Vocabulary

MAX_RANGES = 256  # 262,144 pairs; with 17 tokens a side, aligning them takes 2 GB and 75 s
PRIOR = 10.0  # links that the translations of a trained lexicon count as
WORD_TRANSLATIONS = 10  # of a whole word, before they are divided into tokens


class Table(NamedTuple):
    """Translations of n source tokens or words.

    Attributes:
        ids, probabilities: [n, k], of target tokens, most probable first; both are 0 where there
            are fewer.
        counts: [n], how many links the training data has of the token or word.
    """

    ids: Tensor
    probabilities: Tensor
    counts: Tensor

    def with_prior(self, ids: Tensor, probabilities: Tensor) -> "Table":
        """The translations after those of an earlier lexicon, which count as `PRIOR` links: p =
        (count p_here + PRIOR p_earlier) / (count + PRIOR), the maximum a posteriori with a
        Dirichlet prior.

        Args:
            ids, probabilities: [n, k'], of the earlier one; 0 where it does not know the token.
        """
        weight = self.counts / (self.counts + PRIOR)
        weight = torch.where(probabilities.any(1), weight, 1.0)[:, None]
        both = torch.cat([self.probabilities * weight, probabilities * (1 - weight)], 1)
        in_order, order = torch.cat([self.ids, ids], 1).sort(1)
        column = torch.zeros_like(in_order)  # the same for the same id
        column[:, 1:] = in_order.diff(dim=1).ne(0).cumsum(1)
        sums = torch.zeros_like(both).scatter_add_(1, column, both.gather(1, order))
        unique = torch.zeros_like(in_order).scatter_(1, column, in_order)
        most_probable, places = sums.topk(self.ids.shape[1])
        return Table(unique.gather(1, places), most_probable, self.counts)


class WholeWords(NamedTuple):
    """Translations of w whole source words, the most frequent first.

    Attributes:
        tokens: of the source vocabulary.
        keys: [w], see `WordKeys`. table: of the words.
    """

    tokens: Sequence[str]
    keys: Tensor
    table: Table


@dataclass(frozen=True)
class LearnedLexicon:
    """The probable translations of source tokens and words, for the lexical bias.

    Attributes:
        table: of each source token. words: None without `model.lexical_words`.
    """

    table: Table
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
        table = Table(*map(torch.from_numpy, aligner.translations(size)))
        words = (
            _learn_words(corpus, src, tgt, size, config.model.lexical_words)
            if config.model.lexical_words
            else None
        )
        return cls(table, words)

    def after(self, trained: LexicalBias) -> "LearnedLexicon":
        """With the lexicon of a trained model as prior: what it has of words that are rare or
        missing in the training data stays, as the other weights depend on it.

        Args:
            trained: of the same vocabularies or of their beginnings.
        """
        first_word, words = trained.src_size, self.words
        new_tokens = (0, 0, 0, len(self.table.ids) - first_word)
        table = self.table.with_prior(
            nn.functional.pad(trained.ids[:first_word], new_tokens),
            nn.functional.pad(trained.probabilities[:first_word], new_tokens),
        )
        if words is not None and trained.n_words:
            known = trained.word_keys
            missing = known[~torch.isin(known, words.keys) & (known != LAST_KEY)]
            keys = torch.cat([words.keys, missing])
            ids, probabilities, counts = (
                nn.functional.pad(part, (0, 0) * (part.ndim - 1) + (0, len(missing)))
                for part in words.table
            )
            places = torch.searchsorted(known, keys).clamp(max=len(known) - 1)
            is_known = (known[places] == keys)[:, None]
            rows = first_word + places
            earlier = trained.ids[rows] * is_known, trained.probabilities[rows] * is_known
            words = WholeWords(
                words.tokens, keys, Table(ids, probabilities, counts).with_prior(*earlier)
            )
        return LearnedLexicon(table, words)

    def fill(self, bias: LexicalBias) -> dict[str, int]:
        """Set the lexicon of a model. Returns: its numbers of translations, tokens and words."""
        ids, probabilities, _ = self.table
        bias.fill(ids, probabilities)
        figures = {
            "translations": int(probabilities.gt(0).sum()),
            "tokens": int(probabilities.gt(0).any(1).sum()),
        }
        if self.words is not None:
            tokens, keys, (ids, probabilities, _) = self.words
            bias.fill_words(tokens, keys, ids, probabilities)
            figures["words"] = min(len(keys), bias.n_words)
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
        Corpus(src_words.sentences, tgt_words.sentences), len(src_words.keys), len(tgt_words.keys)
    )
    aligner.fit()
    frequent = src_words.frequent(n_words)
    *words, counts = [part[frequent] for part in aligner.translations(WORD_TRANSLATIONS)]
    ids = torch.zeros(len(frequent), size, dtype=torch.long)
    probabilities = torch.zeros(len(frequent), size)
    for row, translations in enumerate(zip(*words, strict=True)):
        sums: Counter[int] = Counter()
        for number, probability in zip(*(values.tolist() for values in translations), strict=True):
            if probability:
                sums.update(dict.fromkeys(tgt_words.tokens_of(number), probability))
        for column, (token, probability) in enumerate(sums.most_common(size)):
            ids[row, column], probabilities[row, column] = token, probability
    table = Table(ids, probabilities, torch.from_numpy(counts))
    return WholeWords(src_tokens, torch.from_numpy(src_words.keys[frequent]), table)


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

    def tokens_of(self, number: int) -> list[int]:
        """The ids of the tokens of a word."""
        word = self._first[number - 1]
        return [*set(self._ids[self._starts[word] : self._starts[word + 1]].tolist())]

    def frequent(self, n_words: int) -> Indices:
        """The numbers of the most frequent words that have a key."""
        counts = np.bincount(self._inverse, minlength=len(self.keys))
        counts[(self.keys == 0) | (np.arange(len(self.keys)) == EMPTY_WORD)] = 0
        return np.argsort(-counts, kind="stable")[: min(n_words, np.count_nonzero(counts))]
