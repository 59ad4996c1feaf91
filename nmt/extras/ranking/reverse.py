"""Reranking: the candidates of beam search, ordered also by how probable they make the source (Li
et al. 2016; Yee et al. 2019).

    score(y) = log P(y | x) + weight log P(x | y) + length_reward |y|

P(x | y) comes from a model of the opposite direction. It is small if y leaves out a part of the
source or says something else.
"""

from collections.abc import Sequence
from dataclasses import replace

from nmt.config.schema import RerankConfig
from nmt.decoding.forced import score_pairs
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator


class Reranker:
    """Gives candidates new scores.

    Args:
        backward: translates in the opposite direction.
    """

    def __init__(self, backward: Translator, options: RerankConfig) -> None:
        self.backward, self.options = backward, options

    def __call__(self, results: Sequence[Sequence[Translation]]) -> list[list[Translation]]:
        """The candidates of each sentence with their new scores, the best first; those that are cut
        off at the end come last.

        Raises:
            TooLargeError: a candidate does not fit into memory, even alone.
        """
        candidates = [candidate for sentence in results for candidate in sentence]
        scored = iter(
            score_pairs(
                self.backward, [(candidate.text, candidate.source) for candidate in candidates]
            )
        )
        return [
            sorted(
                (
                    replace(candidate, score=self._score(candidate, next(scored).log_prob))
                    for candidate in sentence
                ),
                key=lambda candidate: (not candidate.complete, -candidate.score),
            )
            for sentence in results
        ]

    def _score(self, candidate: Translation, source_log_prob: float) -> float:
        length = len(candidate.token_log_probs)  # with <eos>
        return (
            candidate.log_prob
            + self.options.weight * source_log_prob
            + self.options.length_reward * length
        )
