"""Word alignment of sentence pairs: IBM model 1 with a preference for the diagonal (Dyer 2013), in
both directions.

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

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.data.corpus import Corpus
from nmt.data.splitting import Mask
from nmt.text.vocabulary import PAD

EMPTY_WORD = PAD  # no sentence contains this id
P_EMPTY = 0.08  # p_0
CONCENTRATION = 0.01  # of the Dirichlet prior of p(. | s): a small value favors few translations
FIRST_TENSION, MIN_TENSION, MAX_TENSION = 4.0, 0.1, 14.0
TENSION_STEPS, TENSION_RATE = 8, 20.0  # gradient ascent on lambda, after the first iteration
MIN_PROBABILITY = 0.001  # of a translation
MAX_CELLS = 1 << 20  # of a block

Indices = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
# Of N sentence pairs of equal lengths: [N, m + 1, n + 1], the index of the pair of words (target
# word i, source word j); row 0 and column 0 are for the empty word.
Cells = NDArray[np.int32]


class WordAligner:
    """Aligns the words of a corpus.

    Args:
        src_size, tgt_size: of the vocabularies.
        is_learned: [N], the pairs to learn from; None: all.

    Attributes:
        src, tgt: [P], the ids of all pairs of words that occur in the same sentence pair, sorted by
            source id, then by target id.
        forward, backward: the two directions; backward, a source word comes from a target word.
    """

    def __init__(
        self, corpus: Corpus, src_size: int, tgt_size: int, is_learned: Mask | None = None
    ) -> None:
        keys, self._blocks = _number_cells(corpus, tgt_size, is_learned)
        self.src, self.tgt = np.divmod(keys, tgt_size)
        self._src_size = src_size
        self.forward = Direction(self.src, tgt_size)
        self.backward = Direction(self.tgt, src_size)

    def fit(self, iterations: int = 5) -> None:
        """Make `iterations` of expectation-maximization in each direction."""
        for direction, blocks in self._blocks_by_direction():
            for iteration in range(iterations if blocks else 0):
                direction.update(blocks, fit_tension=iteration > 0)

    def expected_links(self) -> list[Floats]:
        """[P], how often the words of each pair are linked: forward, then backward."""
        return [direction.links(blocks) for direction, blocks in self._blocks_by_direction()]

    def _blocks_by_direction(self) -> Iterator[tuple["Direction", list[Cells]]]:
        yield self.forward, self._blocks
        yield self.backward, [cells.transpose(0, 2, 1) for cells in self._blocks]

    def counts(self) -> Floats:
        """[P], expected links of each pair of words, on which both directions agree."""
        counts = np.zeros(len(self.src))
        for cells in self._blocks:
            sources = self.forward.posteriors(cells)[:, :, 1:]
            targets = self.backward.posteriors(cells.transpose(0, 2, 1))[:, :, 1:]
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


class Direction:
    """One direction of the model.

    Args:
        given: [P], the word of each pair that the other one comes from.
        size: of the vocabulary of the other one.

    Attributes:
        table: p(generated | given), [P]. tension: lambda.
    """

    def __init__(self, given: Indices, size: int) -> None:
        self._given, self._size, self.tension = given, size, FIRST_TENSION
        self.table = np.full(len(given), 1 / size)

    def posteriors(self, cells: Cells) -> Floats:
        """p(a_i = j | s, t) of cells [N, m + 1, n + 1]: [N, m, n + 1]."""
        joint: Floats = self.table[cells[:, 1:]] * self.prior(cells, self.tension)
        joint /= joint.sum(2, keepdims=True)
        return joint

    def prior(self, cells: Cells, tension: float) -> Floats:
        """delta(j | i), [m, n + 1]."""
        attraction = np.exp(-tension * _distances(cells))
        prior = np.full((len(attraction), cells.shape[2]), P_EMPTY)
        prior[:, 1:] = (1 - P_EMPTY) * attraction / attraction.sum(1, keepdims=True)
        return prior

    def links(self, blocks: Sequence[Cells]) -> Floats:
        """The sum of the posteriors of each pair of words, [P]."""
        counts = np.zeros(len(self._given))
        for cells in blocks:
            np.add.at(counts, cells[:, 1:].ravel(), self.posteriors(cells).ravel())
        return counts

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
        self.table = np.exp(_digamma(counts + CONCENTRATION) - _digamma(totals)[self._given])

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
                attraction = np.exp(-self.tension * distance)
                expected += float(
                    links.sum(1) @ ((attraction * distance).sum(1) / attraction.sum(1))
                )
            tension = self.tension + TENSION_RATE * (expected - observed) / n_links
            self.tension = min(max(tension, MIN_TENSION), MAX_TENSION)


def _number_cells(
    corpus: Corpus, tgt_size: int, is_wanted: Mask | None
) -> tuple[Indices, list[Cells]]:
    """The keys of all pairs of words, ascending, and the blocks; pairs with an empty sentence are
    left out.
    """
    groups: list[tuple[Indices, Cells]] = []  # the keys of a block, the index of each cell in them
    for pairs in equal_lengths(corpus, is_wanted):
        keys = cell_keys(corpus, pairs, tgt_size)
        unique, cells = np.unique(keys, return_inverse=True)
        groups.append((unique, cells.reshape(keys.shape).astype(np.int32)))
    keys = np.unique(np.concatenate([np.zeros(0, np.int64), *(unique for unique, _ in groups)]))
    return keys, [np.searchsorted(keys, unique).astype(np.int32)[cells] for unique, cells in groups]


def cell_keys(corpus: Corpus, pairs: Indices, tgt_size: int) -> Indices:
    """src * tgt_size + tgt of the cells of pairs of equal lengths, [N, m + 1, n + 1]."""
    src, tgt = (
        np.pad(side.rows(pairs), ((0, 0), (1, 0)), constant_values=EMPTY_WORD)
        for side in (corpus.src, corpus.tgt)
    )
    return src[:, np.newaxis, :].astype(np.int64) * tgt_size + tgt[:, :, np.newaxis]


def equal_lengths(corpus: Corpus, is_wanted: Mask | None = None) -> Iterator[Indices]:
    """Sentence pairs in groups of equal lengths, of at most `MAX_CELLS` cells or of one pair; all
    without an empty sentence, or those that are wanted.
    """
    lengths = np.stack([corpus.tgt.lengths, corpus.src.lengths])
    order = np.lexsort(lengths)
    order = order[lengths[:, order].all(0) & (True if is_wanted is None else is_wanted[order])]
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
