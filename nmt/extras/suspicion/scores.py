"""How well the sides of each pair explain each other, by what a word aligner learns from the pairs.

A word t_i of one side is explained by the other side s by the factor

    r_i = p_u + (1 - p_u) sum_j delta(j | i) p(t_i | s_j) / p(t_i)

where p(t | s) comes from the expected links of all other pairs: those of the pair itself are taken
away, and the unigram p(t) counts as one link. log r_i is positive for a translation, 0 for a word
of which s says nothing, and at least log p_u. See nmt/data/word_alignment.py for delta and the
shapes: N pairs of equal lengths, m target words, n source words.

A logistic regression separates the real pairs from pairs that are made wrong on purpose. Its score
z gives the share pi of wrong pairs among the real ones, without any clean data: pi <= F(t) / N(t)
for each threshold t, where F and N are the shares of the real and the made pairs beyond t. A pair
is wrong with the chance pi n(z) / f(z), with the densities n of the made and f of the real pairs.
"""

from typing import Literal

import numpy as np

from nmt.data.corpus import Corpus, Ids, Sequences
from nmt.data.splitting import Mask
from nmt.data.word_alignment import (
    P_EMPTY,
    Cells,
    Direction,
    Floats,
    Indices,
    WordAligner,
    cell_keys,
    equal_lengths,
)

P_UNEXPLAINED = 0.1  # p_u
ITERATIONS = 4
# lambda of delta: the words of a part of a sentence are not on the diagonal of the whole.
MAX_TENSION = 4.0
MAX_LEARNED, MAX_CELLS = 60_000, 12_000_000  # pairs, and pairs of words in them
USUAL = 0.4  # log r of a word that makes a run of unexplained words neither longer nor shorter
NEVER = 1e-9  # p(t | s) of words that were never together
Kind = Literal["misaligned", "partial"]
MADE, MIN_MADE, MAX_MADE = 0.04, 500, 5000  # of each kind
SURE: dict[Kind, float] = {"misaligned": 0.3, "partial": 0.5}  # least chance of what is dropped
# Only so far out: real wrong pairs are less extreme than made ones, as words that only they have
# were learned from them.
LEAST_BEYOND = 0.4
# The slope of the bounds of the share, from 80 % of the made pairs on, is 1 if all pairs there are
# wrong. With a large one, good pairs look like made ones, as where translations are often free.
MAX_SLOPE, LEAST_SHARE_BY_SLOPE = 1.6, 0.008
MAX_FITTED = 40_000  # real pairs in a regression
RIDGE, STEPS = 1.0, 12
EDGES = np.linspace(0.035, 0.9, 36)  # quantiles of the made pairs


N_KNOWN = 6  # the row with it of what `explain` says


def explain(corpus: Corpus, is_learnable: Mask, random: np.random.Generator) -> Floats:
    """Learn from pairs of numbered words, and explain all.

    Args:
        is_learnable: which pairs to learn from; a random part of many.

    Returns:
        [7, N], NaN for pairs without words: the mean log r of the target words and of the source
        words that other pairs have, too, nearer to 0 for few words; the worst run of unexplained
        words of each side, the largest sum of 0.4 - log r; the number of target and source words;
        the number of those that other pairs have, of the side with fewer.
    """
    sides = [_renumber(corpus.src), _renumber(corpus.tgt)]
    sizes = [1 + max(0, *(ids.max(initial=0) for ids, _ in side.blocks())) for side in sides]
    corpus = Corpus(*sides)
    lengths = np.stack([side.lengths for side in sides]).astype(np.int64)
    chosen = random.permutation(np.flatnonzero(is_learnable))[:MAX_LEARNED]
    chosen = chosen[(lengths[:, chosen] + 1).prod(0).cumsum() <= MAX_CELLS]
    is_learned = np.isin(np.arange(len(is_learnable)), chosen)
    aligner = WordAligner(corpus, sizes[0], sizes[1], is_learned)
    aligner.fit(ITERATIONS)
    keys = aligner.src * sizes[1] + aligner.tgt
    links = aligner.expected_links()
    forward = _Learned(aligner.forward, links[0], aligner.src, *sides)
    backward = _Learned(aligner.backward, links[1], aligner.tgt, *sides[::-1])
    result = np.full((7, len(is_learnable)), np.nan)
    for pairs in equal_lengths(corpus):
        wanted = cell_keys(corpus, pairs, sizes[1])
        cells = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        cells[keys[cells] != wanted] = len(keys)
        src, tgt = (side.rows(pairs) for side in sides)
        both = (
            forward.explain(cells, src, tgt, is_learned[pairs]),
            backward.explain(cells.transpose(0, 2, 1), tgt, src, is_learned[pairs]),
        )
        n_known = [is_known.sum(1) for _, is_known in both]
        result[:, pairs] = (
            *((logs * is_known).sum(1) / (is_known.sum(1) + 1) for logs, is_known in both),
            *(_worst_run(np.where(is_known, USUAL - logs, 0.1)) for logs, is_known in both),
            *lengths[::-1, pairs],
            np.minimum(*n_known),
        )
    return result


class _Learned:
    """What was learned of one direction. Pairs of words that were never together are the last cell.

    Args:
        links: of each pair of words. given: the word of each pair that the other one comes from.
        sides: of the given words, and of the others.
    """

    def __init__(
        self, direction: Direction, links: Floats, given: Indices, *sides: Sequences
    ) -> None:
        self._direction, self._links = direction, np.append(links, 0.0)
        direction.table = np.append(direction.table, NEVER)
        counts = [np.bincount(np.concatenate([ids for ids, _ in s.blocks()])) for s in sides]
        self._totals, self._counts = np.bincount(given, links, len(counts[0])), counts[1]

    def explain(
        self, cells: Cells, given: Ids, generated: Ids, is_learned: Mask
    ) -> tuple[Floats, Mask]:
        """[N, m]: log r of each word, and whether other pairs have it."""
        own = self._direction.posteriors(cells) * is_learned[:, np.newaxis, np.newaxis]
        n_others = self._counts[generated] - 1
        unigram = (np.maximum(n_others, 0) + 0.5) / self._counts.sum()
        links = np.maximum(self._links[cells[:, 1:, 1:]] - own[:, :, 1:], 0)
        totals = self._totals[given][:, np.newaxis] - own[:, :, 1:].sum(1, keepdims=True)
        p = (links + unigram[:, :, np.newaxis]) / (np.maximum(totals, 0) + 1)
        prior = self._direction.prior(cells, min(self._direction.tension, MAX_TENSION))
        delta = prior[:, 1:] / (1 - P_EMPTY)
        factor = P_UNEXPLAINED + (1 - P_UNEXPLAINED) * (delta * p).sum(2) / unigram
        return np.log(factor), n_others > 0


def _worst_run(losses: Floats) -> Floats:
    """The largest sum of consecutive words, [N, m] -> [N]."""
    best = here = np.zeros(len(losses))
    for loss in losses.T:
        here = np.maximum(here + loss, 0)
        best = np.maximum(best, here)
    return best


def _renumber(side: Sequences) -> Sequences:
    """With numbers from 1 on that all occur."""
    ids, _ = side.block(0, len(side))
    numbers = np.unique(ids, return_inverse=True)[1] + 1
    return Sequences.of_blocks([(numbers.astype(np.int32), side.lengths)])


def make_wrong(
    corpus: Corpus, usable: Indices, random: np.random.Generator
) -> dict[Kind, tuple[Corpus, Indices]]:
    """Pairs made wrong of usable ones, and the pair that each was made from."""
    src, tgt = corpus.src, corpus.tgt
    n_made = min(max(MIN_MADE, round(MADE * len(usable))), MAX_MADE, len(usable))
    # Misaligned: half of them have the target of any other pair, half one of a similar length.
    order = np.lexsort((random.random(len(usable)), tgt.lengths[usable], src.lengths[usable]))
    made, any_other = random.permutation(len(usable))[:n_made], random.permutation(len(usable))
    jump = random.integers(1, max(2, len(usable) // 50), n_made) * random.choice([-1, 1], n_made)
    near = order[(np.argsort(order)[made] + jump) % len(usable)]
    others = np.where(random.random(n_made) < 0.5, near, any_other[:n_made])
    misaligned = Corpus(
        _of_rows([src[i] for i in usable[made]]), _of_rows([tgt[i] for i in usable[others]])
    )
    long = usable[(src.lengths[usable] >= 4) & (tgt.lengths[usable] >= 4)]
    long = random.permutation(long)[:n_made]
    is_src_cut = random.random(len(long)) < 0.5
    partial = Corpus(
        *(
            _of_rows(
                [
                    _cut(side[i], random) if cut else side[i]
                    for i, cut in zip(long, is_cut, strict=True)
                ]
            )
            for side, is_cut in ((src, is_src_cut), (tgt, ~is_src_cut))
        )
    )
    return {"misaligned": (misaligned, usable[made]), "partial": (partial, long)}


def _cut(ids: Ids, random: np.random.Generator) -> Ids:
    """The first or the last words of a text."""
    n_left = max(1, round(len(ids) * random.uniform(0.35, 0.65)))
    return ids[:n_left] if random.random() < 0.7 else ids[-n_left:]


def _of_rows(rows: list[Ids]) -> Sequences:
    nothing = np.zeros(0, np.int32)
    return Sequences.of_blocks(
        [(np.concatenate([nothing, *rows]), np.array([len(row) for row in rows], np.int32))]
    )


def score(real: Floats, made: Floats, kind: Kind) -> tuple[Floats, Floats]:
    """z of the real and of the made pairs, from what `explain` says: high for wrong pairs; NaN
    without words.
    """
    right, wrong = _inputs(real, kind), _inputs(made, kind)
    has_words = ~np.isnan(right[:, 0])
    center, scale = right[has_words].mean(0), right[has_words].std(0) + 1e-6
    right, wrong = (
        np.column_stack([np.ones(len(x)), (x - center) / scale]) for x in (right, wrong)
    )
    sample = right[has_words]
    weights = _fit(sample[:: -(-len(sample) // MAX_FITTED)], wrong[~np.isnan(wrong[:, 1])])
    return right @ weights, wrong @ weights


def _inputs(explained: Floats, kind: Kind) -> Floats:
    """[N, inputs] of the regression: each grows or falls with how wrong a pair is."""
    tgt, src, tgt_run, src_run, n_tgt, n_src, n_known = explained
    size, runs = np.log(n_known + 1), [np.log1p(src_run), np.log1p(tgt_run)]
    if kind == "misaligned":
        means = [tgt, src, np.minimum(tgt, src)]
        return np.column_stack([*means, size, *(size * each for each in means), *runs])
    ratio = np.log((n_tgt + 2) / (n_src + 2))
    parts = [src_run / (n_src + 2), tgt_run / (n_tgt + 2)]
    more = [tgt, src, ratio, np.abs(ratio), size, size * np.abs(ratio)]
    return np.column_stack([*runs, np.maximum(*runs), *more, np.maximum(*parts), *parts])


def _fit(right: Floats, wrong: Floats) -> Floats:
    """The weights of a logistic regression, where both classes weigh the same: Newton's method."""
    x = np.vstack([right, wrong])
    is_wrong = np.repeat([0.0, 1.0], [len(right), len(wrong)])
    weight = np.where(is_wrong == 1, 0.5 / len(wrong), 0.5 / len(right)) * len(x)
    weights = np.zeros(x.shape[1])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (weight * (is_wrong - p)) - RIDGE * weights
        curvature = (x * (weight * p * (1 - p))[:, np.newaxis]).T @ x + RIDGE * np.eye(x.shape[1])
        weights = weights + np.linalg.solve(curvature, gradient)
    return weights


def judge(real: Floats, made: Floats, kind: Kind) -> tuple[float, Mask, Floats]:
    """The share of wrong pairs; [N], which are more likely wrong than `SURE`; [N], their chances.

    Args:
        real, made: z, see `score`.
    """
    has_words = ~np.isnan(real)
    made, n_pairs = made[~np.isnan(made)], max(1, int(has_words.sum()))
    edges = np.quantile(made, EDGES)
    beyond_made = np.array([(made >= edge).mean() for edge in edges])
    beyond_real = np.array([(real >= edge).sum() for edge in edges])
    bounds = (beyond_real / n_pairs / beyond_made)[beyond_made >= LEAST_BEYOND]
    share = float(np.min(bounds))
    slope = bounds[EDGES.searchsorted(0.2)] / max(share, 1e-9)
    if kind == "partial" and (slope > MAX_SLOPE or share < LEAST_SHARE_BY_SLOPE * slope):
        share = 0.0
    # Between two edges.
    n_real, n_wrong = (
        np.convolve(np.pad(-np.diff(beyond), 3, mode="edge"), np.full(7, 1 / 7), "valid")
        for beyond in (beyond_real, share * n_pairs * beyond_made)
    )
    chances = np.minimum(1, n_wrong / np.maximum(n_real, 1e-9))
    is_unsure = (chances < SURE[kind]) & (edges[:-1] < np.quantile(made, 0.6))
    threshold = edges[np.flatnonzero(is_unsure)[-1] + 1 if is_unsure.any() else 0]
    scores = np.where(has_words, real, -np.inf)
    return share, scores >= threshold, np.interp(scores, edges[:-1], chances)
