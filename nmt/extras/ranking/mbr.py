"""Minimum Bayes risk decoding: the candidate with the highest expected utility (Kumar & Byrne 2004,
eq. 1; Eikema & Aziz 2020).

    y* = argmax_i U_i,   U_i = sum_j p(y_j) u(y_i, y_j)

The candidates y_1 .. y_C are also the pseudo-references. u is the sentence chrF or BLEU of two
texts, with the same numbers as sacrebleu.

Each n-gram is counted once per text. The matches of all pairs are then products of 0/1 matrices:
with b_k[i, g] = 1 if text i has n-gram g at least k times, sum_g min(c_ig, c_jg) = sum_k sum_g
b_k[i, g] * b_k[j, g].
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nmt.config.schema import DecodingConfig
from nmt.config.section import key_of
from nmt.decoding.translation import Translation
from nmt.evaluation.scores import BLEU_ORDER, build_metric
from nmt.extras.ranking.keys import MbrConfig, Utility

CHRF_ORDER, CHRF_BETA = 6, 2  # as in sacrebleu
# Of the expected utility: rounding errors must not decide between candidates that are equally good.
DIGITS = 6


def rank_by_expected_utility(
    translations: Sequence[Translation], options: DecodingConfig, *, reranked: bool = False
) -> list[Translation]:
    """The candidates with different texts by expected utility, their new score in 0..100.

    The more probable of equally good candidates comes first. Truncated candidates are left out if
    there are complete ones.

    Args:
        translations: of one sentence, at least one.
        options: p(y_j) is the probability of the model to the power of 1 / temperature, normalized
            over the candidates.
        reranked: exp(score) takes the place of the probability of the model.
    """
    candidates = [one for one in translations if one.complete] or translations
    log_probs = np.array([one.score if reranked else one.log_prob for one in candidates])
    energies = log_probs / options.temperature
    weights = np.exp(energies - energies.max())
    # Different tokens may be joined to the same text: the most probable candidate stands for all,
    # with the sum of their weights.
    best: dict[str, Translation] = {}
    weight_of: dict[str, float] = {}
    for i in np.argsort(-log_probs, kind="stable").tolist():
        best.setdefault(candidates[i].text, candidates[i])
        weight_of[candidates[i].text] = weight_of.get(candidates[i].text, 0.0) + weights[i]
    utility = UTILITIES[key_of(options, "mbr", MbrConfig).utility]
    scores = (utility([*best]) @ np.array([*weight_of.values()]) / weights.sum()).round(DIGITS)
    ranking = np.argsort(-scores, kind="stable").tolist()
    by_probability = [*best.values()]
    return [replace(by_probability[i], score=float(scores[i])) for i in ranking]


def pairwise_chrf(texts: Sequence[str]) -> NDArray[np.float64]:
    """The chrF in 0..100 of each text with each as its reference (Popović 2015): [C, C].

    chrF = (1 + beta^2) P R / (beta^2 P + R), with P and R the mean precision and recall of
    character n-grams, n = 1..6, without white space. An n that is longer than one of the two texts
    does not count.
    """
    characters = ["".join(text.split()) for text in texts]
    symbols = [
        np.frombuffer(line.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
        for line in characters
    ]
    totals, matches = _ngram_matches(symbols, CHRF_ORDER)
    is_counted = (totals[:, :, None] > 0) & (totals[:, None, :] > 0)
    n_orders = np.maximum(is_counted.sum(0), 1)
    precision = (matches / np.maximum(totals, 1)[:, :, None]).sum(0) / n_orders
    recall = (matches / np.maximum(totals, 1)[:, None, :]).sum(0) / n_orders
    weighted_sum = CHRF_BETA**2 * precision + recall
    chrf: NDArray[np.float64] = (
        100 * (1 + CHRF_BETA**2) * precision * recall / np.where(weighted_sum > 0, weighted_sum, 1)
    )
    return chrf


def pairwise_bleu(texts: Sequence[str]) -> NDArray[np.float64]:
    """The sentence BLEU in 0..100 of each text with each as its reference: [C, C].

    An n of 1..4 that is longer than the hypothesis does not count (`effective_order`). The i-th n
    without a match has 1 / 2^i matches (`smooth_method="exp"`: Chen & Cherry 2014, method 3).
    """
    tokenizer, indices = build_metric("BLEU", references=[texts]).tokenizer, dict[str, int]()
    sentences = [tokenizer(text.rstrip()).split() for text in texts]
    symbols = [
        np.array([indices.setdefault(word, len(indices)) for word in words], np.int64)
        for words in sentences
    ]
    totals, matches = _ngram_matches(symbols, BLEU_ORDER)
    is_counted = (totals > 0)[:, :, None]
    n_without_match = (is_counted & (matches == 0)).cumsum(0)
    precisions = (
        np.where(matches > 0, matches, 0.5**n_without_match) / np.maximum(totals, 1)[:, :, None]
    )
    mean_log = np.where(is_counted, np.log(precisions), 0).sum(0) / np.maximum(is_counted.sum(0), 1)
    lengths = np.maximum(totals[0], 1)
    brevity = np.minimum(1 - totals[0][None, :] / lengths[:, None], 0)  # log of the brevity penalty
    return np.where(matches[0] > 0, 100 * np.exp(mean_log + brevity), 0.0)


def _ngram_matches(
    sequences: Sequence[NDArray[np.int64]], max_order: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The n-grams of C sequences of symbols, for n = 1..N.

    Returns:
        totals: [N, C], the number of n-grams of each sequence.
        matches: [N, C, C], sum_g min(c_ig, c_jg), the n-grams that two sequences have in common.
    """
    lengths = np.array([*map(len, sequences)])
    symbols = np.unique(np.concatenate(sequences), return_inverse=True)[1]
    owner = np.repeat(np.arange(len(sequences)), lengths)  # [M], the sequence of each position
    # [M], symbols from here to the end.
    remaining = np.concatenate([np.arange(length, 0, -1) for length in lengths])
    totals = np.maximum(lengths - np.arange(max_order)[:, None], 0).astype(np.float64)
    matches = np.zeros((max_order, len(sequences), len(sequences)))
    n_symbols = int(symbols.max(initial=-1)) + 1
    starts, ngrams, n_ngrams = np.arange(len(symbols)), symbols, n_symbols
    for order in range(max_order):
        if order:
            continues = remaining[starts] > order
            starts = starts[continues]
            ngrams = ngrams[continues] * n_symbols + symbols[starts + order]
            unique, ngrams = np.unique(ngrams, return_inverse=True)
            n_ngrams = len(unique)
        cells = owner[starts] * n_ngrams + ngrams
        counts = np.bincount(cells, minlength=len(sequences) * n_ngrams).reshape(
            len(sequences), n_ngrams
        )
        matches[order] = _sum_of_minima(counts)
    return totals, matches


def _sum_of_minima(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """sum_g min(counts[i, g], counts[j, g]) for all pairs of rows: [C, G] -> [C, C]."""
    sums = np.zeros((len(counts), len(counts)))
    k = 1
    while counts.size:
        # float32 holds these small whole numbers exactly.
        at_least_k = (counts >= k).astype(np.float32)
        sums += at_least_k @ at_least_k.T
        counts = counts[:, (counts > k).any(0)]
        k += 1
    return sums


UTILITIES: Mapping[Utility, Callable[[Sequence[str]], NDArray[np.float64]]] = {
    "chrf": pairwise_chrf,
    "bleu": pairwise_bleu,
}
