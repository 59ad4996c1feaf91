"""Minimum Bayes risk decoding: the candidate with the highest expected utility (Kumar & Byrne 2004,
eq. 1; Eikema & Aziz 2020).

    y* = argmax_i U_i,   U_i = sum_j p(y_j) u(y_i, y_j)

The candidates y_1 .. y_C are also the pseudo-references. u is the sentence chrF or BLEU of two
texts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nmt.config.schema import DecodingConfig, Utility
from nmt.decoding.translation import Translation
from nmt.extras.ranking.pairwise import pairwise_bleu, pairwise_chrf

UTILITIES: Mapping[Utility, Callable[[Sequence[str]], NDArray[np.float64]]] = {
    "chrf": pairwise_chrf,
    "bleu": pairwise_bleu,
}
# of the expected utility; rounding errors must not decide between candidates that are equally good
DIGITS = 6


def rank_by_expected_utility(
    translations: Sequence[Translation], options: DecodingConfig, *, reranked: bool = False
) -> list[Translation]:
    """The candidates with different texts, the highest expected utility first; this is their new
    score, in 0..100.

    The more probable of equally good candidates comes first. Truncated candidates are left out if
    there are complete ones.

    Args:
        translations: of one sentence, at least one.
        options: p(y_j) is the same for all samples. For candidates of beam search, it is the
            probability of the model to the power of 1 / temperature, normalized over the
            candidates.
        reranked: exp(score) takes the place of the probability of the model.
    """
    candidates = [
        translation for translation in translations if translation.complete
    ] or translations
    log_probs = np.array(
        [candidate.score if reranked else candidate.log_prob for candidate in candidates]
    )
    energies = (
        np.zeros_like(log_probs)
        if options.search == "sampling"
        else log_probs / options.temperature
    )
    weights = np.exp(energies - energies.max())
    # Different tokens may be joined to the same text: the most probable candidate stands for all,
    # with the sum of their weights.
    best: dict[str, Translation] = {}
    weight_of: dict[str, float] = {}
    for i in np.argsort(-log_probs, kind="stable").tolist():
        best.setdefault(candidates[i].text, candidates[i])
        weight_of[candidates[i].text] = weight_of.get(candidates[i].text, 0.0) + weights[i]
    utilities = (
        UTILITIES[options.mbr.utility]([*best]) @ np.array([*weight_of.values()]) / weights.sum()
    )
    scores = utilities.round(DIGITS)
    ranking = np.argsort(-scores, kind="stable").tolist()
    by_probability = [*best.values()]
    return [replace(by_probability[i], score=float(scores[i])) for i in ranking]
