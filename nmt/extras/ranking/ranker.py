"""Reranking: the candidates of beam search, ordered also by how probable they make the source (Li
et al. 2016; Yee et al. 2019).

    score(y) = log P(y | x) + weight log P(x | y) + length_reward |y|

P(x | y) comes from a model of the opposite direction. It is small if y leaves out a part of the
source or says something else.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nmt.config.parts import DeviceName
from nmt.config.problems import Problem
from nmt.config.schema import Config, DecodingConfig
from nmt.config.section import key_of
from nmt.decoding.forced import score_pairs
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Ranker, Translator
from nmt.errors import ConfigError
from nmt.extras.ranking.keys import MbrConfig, RerankConfig
from nmt.extras.ranking.mbr import rank_by_expected_utility
from nmt.run.folder import load_run_config
from nmt.run.load import build_translator, opened


class Ranking(Ranker):
    """Reranking, minimum Bayes risk, or the second with the scores of the first.

    Args:
        backward: translates in the opposite direction; None: without reranking.
    """

    def __init__(self, options: DecodingConfig, backward: Translator | None) -> None:
        self.options, self.backward = options, backward
        self.rerank = key_of(options, "rerank", RerankConfig)
        self.runs = {} if self.rerank.run is None else {"rerank": self.rerank.run}

    def __call__(self, results: Sequence[Sequence[Translation]]) -> list[list[Translation]]:
        """The candidates of each sentence with their new scores, the best first; after
        reranking, those that are cut off at the end come last.

        Raises:
            TooLargeError: a candidate does not fit into memory, even alone.
        """
        ranked = [[*beam] for beam in results]
        if self.backward is not None:
            pairs = [(candidate.text, candidate.source) for beam in results for candidate in beam]
            scored = iter(score_pairs(self.backward, pairs))
            ranked = [
                sorted(
                    (self._with_score(candidate, next(scored).log_prob) for candidate in beam),
                    key=lambda candidate: (not candidate.complete, -candidate.score),
                )
                for beam in results
            ]
        if self.options.method != "mbr":
            return ranked
        return [
            rank_by_expected_utility(candidates, self.options, reranked=self.backward is not None)
            for candidates in ranked
        ]

    def _with_score(self, candidate: Translation, source_log_prob: float) -> Translation:
        of_source = self.rerank.weight * source_log_prob
        reward = self.rerank.length_reward * len(candidate.token_log_probs)  # with <eos>
        return replace(candidate, score=candidate.log_prob + of_source + reward)


def rank(config: Config, device: DeviceName) -> Ranking | None:
    """None if neither `decoding.method` nor `decoding.rerank` asks for it.

    Raises:
        CheckpointError: there is no run to rerank with, or it cannot be read.
        ConfigError: it translates in another direction, or another case.
    """
    decoding = config.decoding
    options = key_of(decoding, "rerank", RerankConfig)
    if options.run is None:
        return Ranking(decoding, None) if decoding.method == "mbr" else None
    with opened(options.run) as member:
        other, key = load_run_config(member[0]), f"decoding.rerank.run: {options.run}"
        if other.data.direction != config.data.opposite_direction:
            raise ConfigError(
                f"{key} translates {other.data.direction}; reranking needs a run for "
                f"{config.data.opposite_direction}"
            )
        if other.tokenizer.lowercase != config.tokenizer.lowercase:
            raise ConfigError(
                f"{key} has tokenizer.lowercase={json.dumps(other.tokenizer.lowercase)}; "
                "reranking needs the same case"
            )
        keys = ("decoding.rerank.run=null", f"decoding.precision={decoding.precision}")
        return Ranking(decoding, build_translator([member], device=device, overrides=keys))


def rules(config: Config) -> Iterator[Problem]:
    """A problem for each rule that is broken."""
    decoding = config.decoding
    if key_of(decoding, "mbr", MbrConfig) != MbrConfig() and decoding.method != "mbr":
        yield Problem(
            ("decoding.mbr.utility", "decoding.method"),
            f"only mbr uses utility, not {decoding.method}",
        )
    if key_of(decoding, "rerank", RerankConfig).run is not None and decoding.search == "sampling":
        yield Problem(
            ("decoding.rerank.run", "decoding.method"),
            "reranking is for the hypotheses of beam search, not for samples",
        )
