"""Word alignment of sentence pairs, and the lexicon of `model.lexical_bias` that is learned by it.
The aligner is IBM model 1 with a preference for the diagonal (Dyer 2013), in both directions.

A target word t_i comes from a source word s_j, or from the empty word:

    p(t_i, a_i = j | s) = delta(j | i) p(t_i | s_j),  delta(0 | i) = p_0,  delta(j | i) ~ (1 - p_0)
    exp(-lambda |i / m - j / n|)

for i = 1..m and j = 1..n (Dyer 2013, section 2). The expectation-maximization algorithm learns p(t
| s), with a sparse Dirichlet prior, and the tension lambda. The other direction is the same model
with source and target exchanged. The product of the posteriors of both directions is high for links
on which they agree (after Liang 2006).

Sentence pairs of equal lengths form one array. Shapes: N pairs of sentences, m target words, n
source words, P pairs of words.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.config.schema import Config
from nmt.data.batches import divide_epoch
from nmt.data.corpus import Corpus, Sequences
from nmt.model.lexical_bias import LexicalBias, WordKeys
from nmt.model.lexicon import LAST_KEY
from nmt.run.folder import load_vocabularies
from nmt.text.vocabulary import PAD, Vocabulary

EMPTY_WORD = PAD  # no sentence contains this id
P_EMPTY = 0.08  # p_0
CONCENTRATION = 0.01  # of the Dirichlet prior of p(. | s): a small value favors few translations
FIRST_TENSION, MIN_TENSION, MAX_TENSION = 4.0, 0.1, 14.0
TENSION_STEPS, TENSION_RATE = 8, 20.0  # gradient ascent on lambda, after the first iteration
MIN_PROBABILITY = 0.001  # of a translation
MAX_CELLS = 1 << 20  # of a block
MAX_RANGES = 256  # 262,144 pairs; with 17 tokens a side, aligning them takes 2 GB and 75 s
PRIOR = 10.0  # links that the translations of a trained lexicon count as
WORD_TRANSLATIONS = 10  # of a whole word, before they are divided into tokens

Indices = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
# Of N sentence pairs of equal lengths: [N, m + 1, n + 1], the index of the pair of words (target
# word i, source word j); row 0 and column 0 are for the empty word.
Cells = NDArray[np.int32]


class WordAligner:
    """Aligns the words of a corpus.

    Args:
        src_size, tgt_size: of the vocabularies.

    Attributes:
        src, tgt: [P], the ids of all pairs of words that occur in the same sentence pair, sorted by
            source id, then by target id.
    """

    def __init__(self, corpus: Corpus, src_size: int, tgt_size: int) -> None:
        keys, self._blocks = _number_cells(corpus, tgt_size)
        self.src, self.tgt = np.divmod(keys, tgt_size)
        self._src_size = src_size
        self._directions = _Direction(self.src, tgt_size), _Direction(self.tgt, src_size)

    def fit(self, iterations: int = 5) -> None:
        """Make `iterations` of expectation-maximization in each direction."""
        transposed = [cells.transpose(0, 2, 1) for cells in self._blocks]
        for direction, blocks in zip(self._directions, (self._blocks, transposed), strict=True):
            for iteration in range(iterations if blocks else 0):
                direction.update(blocks, fit_tension=iteration > 0)

    def counts(self) -> Floats:
        """[P], expected links of each pair of words, on which both directions agree."""
        counts, (forward, backward) = np.zeros(len(self.src)), self._directions
        for cells in self._blocks:
            sources = forward.posteriors(cells)[:, :, 1:]
            targets = backward.posteriors(cells.transpose(0, 2, 1))[:, :, 1:]
            agreement = sources * targets.transpose(0, 2, 1)  # [N, m, n]
            np.add.at(counts, cells[:, 1:, 1:].ravel(), agreement.ravel())
        return counts

    def translations(self, size: int) -> tuple[Indices, Floats, Floats]:
        """The most probable translations of each source id and p(translation | source), most
        probable first, from `counts`.

        Returns:
            ids and probabilities [number of source ids, `size`]; both are 0 where a word has fewer.
            Then the number of links of each source id.
        """
        counts = self.counts()
        totals = np.bincount(self.src, counts, minlength=self._src_size).astype(np.float64)
        probabilities = counts / np.maximum(totals[self.src], np.finfo(float).tiny)
        order = np.lexsort((-probabilities, self.src))
        # Ids are sorted, so this is the rank within the source id.
        rank = np.arange(len(order)) - np.searchsorted(self.src, self.src)
        is_kept = (rank < size) & (probabilities[order] >= MIN_PROBABILITY)
        kept, rank = order[is_kept], rank[is_kept]
        ids, best = np.zeros((self._src_size, size), np.int64), np.zeros((self._src_size, size))
        for part, values in ((ids, self.tgt), (best, probabilities)):
            part[self.src[kept], rank] = values[kept]
        return ids, best, totals


class _Direction:
    """One direction of the model.

    Args:
        given: [P], the word of each pair that the other one comes from.
        size: of the vocabulary of the other one.
    """

    def __init__(self, given: Indices, size: int) -> None:
        self._given, self._size, self._tension = given, size, FIRST_TENSION
        self._table = np.full(len(given), 1 / size)  # p(generated | given), [P]

    def posteriors(self, cells: Cells) -> Floats:
        """p(a_i = j | s, t) of cells [N, m + 1, n + 1]: [N, m, n + 1]."""
        attraction = np.exp(-self._tension * _distances(cells))
        prior = np.full((len(attraction), cells.shape[2]), P_EMPTY)
        prior[:, 1:] = (1 - P_EMPTY) * attraction / attraction.sum(1, keepdims=True)
        joint: Floats = self._table[cells[:, 1:]] * prior
        joint /= joint.sum(2, keepdims=True)
        return joint

    def update(self, blocks: Sequence[Cells], *, fit_tension: bool) -> None:
        """One iteration of expectation-maximization over blocks of cells."""
        counts, linked = np.zeros(len(self._given)), []
        for cells in blocks:
            posteriors = self.posteriors(cells)
            np.add.at(counts, cells[:, 1:].ravel(), posteriors.ravel())
            linked.append(posteriors[:, :, 1:].sum(0))
        if fit_tension:
            self._fit_tension([_distances(cells) for cells in blocks], linked)
        # Variational Bayes: exp(digamma(c + alpha)) in place of c (Riley & Gildea 2012).
        totals: Floats = np.bincount(self._given, counts) + CONCENTRATION * self._size
        self._table = np.exp(_digamma(counts + CONCENTRATION) - _digamma(totals)[self._given])

    def _fit_tension(self, distances: Sequence[Floats], linked: Sequence[Floats]) -> None:
        """Gradient ascent on the expected log-likelihood per link, given distances and expected
        links [m, n] of each block.
        """
        n_links = sum(float(links.sum()) for links in linked)
        observed = sum(
            float((links * distance).sum())
            for links, distance in zip(linked, distances, strict=True)
        )
        for _ in range(TENSION_STEPS):
            expected = 0.0
            for links, distance in zip(linked, distances, strict=True):
                attraction = np.exp(-self._tension * distance)
                expected += float(
                    links.sum(1) @ ((attraction * distance).sum(1) / attraction.sum(1))
                )
            step = TENSION_RATE * (expected - observed) / n_links
            self._tension = min(max(self._tension + step, MIN_TENSION), MAX_TENSION)


def _number_cells(corpus: Corpus, tgt_size: int) -> tuple[Indices, list[Cells]]:
    """The keys src * tgt_size + tgt of all pairs of words, ascending, and the blocks; pairs with an
    empty sentence are left out.
    """
    groups: list[tuple[Indices, Cells]] = []  # the keys of a block, the index of each cell in them
    for pairs in _equal_lengths(corpus):
        src, tgt = (
            np.pad(side.rows(pairs), ((0, 0), (1, 0)), constant_values=EMPTY_WORD)
            for side in (corpus.src, corpus.tgt)
        )
        keys = src[:, np.newaxis, :].astype(np.int64) * tgt_size + tgt[:, :, np.newaxis]
        unique, cells = np.unique(keys, return_inverse=True)
        groups.append((unique, cells.reshape(keys.shape).astype(np.int32)))
    keys = np.unique(np.concatenate([np.zeros(0, np.int64), *(unique for unique, _ in groups)]))
    return keys, [np.searchsorted(keys, unique).astype(np.int32)[cells] for unique, cells in groups]


def _equal_lengths(corpus: Corpus) -> Iterator[Indices]:
    """Sentence pairs in groups of equal lengths, of at most `MAX_CELLS` cells or of one pair."""
    lengths = np.stack([corpus.tgt.lengths, corpus.src.lengths])
    order = np.lexsort(lengths)
    order = order[lengths[:, order].all(0)]
    for group in np.split(order, np.flatnonzero(np.diff(lengths[:, order]).any(0)) + 1):
        if len(group):
            n_cells = int((lengths[:, group[0]] + 1).prod())
            yield from np.split(
                group, range(step := max(1, MAX_CELLS // n_cells), len(group), step)
            )


def _distances(cells: Cells) -> Floats:
    """|i / m - j / n| for the words of cells [N, m + 1, n + 1]: [m, n]."""
    m, n = cells.shape[1] - 1, cells.shape[2] - 1
    return np.asarray(np.abs(np.arange(1, m + 1)[:, np.newaxis] / m - np.arange(1, n + 1) / n))


def _digamma(x: Floats) -> Floats:
    """d/dx log Gamma(x) for x > 0, to 1e-9: the asymptotic series at x + 6 (Abramowitz 1964,
    6.3.18) and 6 steps back (6.3.5).
    """
    steps = sum(1 / (x + step) for step in range(6))
    x = x + 6
    square = 1 / (x * x)
    return np.asarray(
        np.log(x)
        - 0.5 / x
        - square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
        - steps
    )


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
