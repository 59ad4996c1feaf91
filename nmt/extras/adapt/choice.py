"""How far to go from the base to the trained weights: the choice, and what it gains and costs.

Weights between both keep more of what the base knows, and still have much of what the training
taught (Wortsman et al. 2022, arXiv 2109.01903): w = base + share * (trained - base).
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nmt.config.schema import Config
from nmt.data.corpus import read_sentences
from nmt.decoding.fast import for_search
from nmt.decoding.translator import Translator
from nmt.evaluation.results import EvaluationSet
from nmt.evaluation.scores import (
    SEED,
    SentenceStatistics,
    build_metric,
    choose_tokenizer,
    collect_statistics,
)
from nmt.model.seq2seq import Seq2Seq
from nmt.report.table import Table
from nmt.run.folder import load_tokenizers, load_vocabularies
from nmt.text.tokenizers import SIDES

N_HALVINGS = 4  # of the way
GENERAL, MEMORY = "general", "memory"
MAX_SENTENCES = 1000  # of a set
N_RESAMPLES = 1000
# By the name of the set.
Outputs = Mapping[str, Sequence[str]]
Scores = Mapping[str, float]


@dataclass(frozen=True)
class Sets:
    """General sentences and those of the memory, which no training has seen.

    Attributes:
        config: of the adapted run, whose search translates them.
    """

    sets: Mapping[str, EvaluationSet]
    config: Config

    @classmethod
    def read(cls, folders: Mapping[str, Path], split: str, config: Config) -> "Sets":
        """The first sentences of a split, from the prepared folder of each set."""
        sets = {}
        for name, folder in folders.items():
            src, tgt = (read_sentences(folder, split, side)[:MAX_SENTENCES] for side in SIDES)
            sets[name] = EvaluationSet(name, src, [tgt])
        return cls(sets, config)

    def translate(self, model: Seq2Seq, run: Path) -> Outputs:
        """The translations of a model with the vocabularies and tokenizers of a run."""
        translator = Translator(
            for_search(model, self.config.decoding.precision),
            tokenizers=load_tokenizers(run, self.config),
            vocabularies=load_vocabularies(run),
            options=self.config.decoding,
        )
        return {
            name: [each.text for each in translator.translate(text.sources or [])]
            for name, text in self.sets.items()
        }

    def bleu(self, outputs: Outputs) -> Scores:
        """The BLEU of the translations of each set."""
        return {name: self.statistics("BLEU", name, outputs).score for name in self.sets}

    def statistics(self, metric: str, name: str, outputs: Outputs) -> SentenceStatistics:
        """What a score of sacrebleu, and its interval, are computed from."""
        references, lowercase = self.sets[name].references, self.config.tokenizer.lowercase
        tokenizer, _ = choose_tokenizer(self.config.data.tgt_language, references)
        chosen = build_metric(metric, lowercase=lowercase, tokenizer=tokenizer)
        return collect_statistics(chosen, outputs[name], references)

    def table(self, before: Outputs, after: Outputs) -> Table:
        """Scores before and after, and the difference, with 95 % intervals by bootstrap; that of
        the difference is of paired samples (Koehn 2004).
        """
        rows = []
        for name, text in self.sets.items():
            for metric in ("BLEU", "chrF"):
                old, new = (self.statistics(metric, name, each) for each in (before, after))
                samples = [each.bootstrap_scores(N_RESAMPLES, SEED) for each in (old, new)]
                changes = [later - earlier for earlier, later in zip(*samples, strict=True)]
                values = (old.score, samples[0], ""), (new.score, samples[1], "")
                change = new.score - old.score, changes, "+"
                cells = [_with_interval(*each) for each in (*values, change)]
                rows.append((f"{name}, {len(text):,} pairs", metric, *cells))
        columns = ("test set", "metric", "before", "after", "change")
        return Table("adaptation", "", columns, rows)


def between(base: Seq2Seq, trained: Seq2Seq, share: float) -> Seq2Seq:
    """The model at a share of the way from one to the other; its lexicon is the trained one's."""
    model = copy.deepcopy(trained)
    with torch.no_grad():
        for parameter, start in zip(model.parameters(), base.parameters(), strict=True):
            parameter.copy_(torch.lerp(start, parameter, share))
    return model


def search(measure: Callable[[float], Scores], least: float) -> dict[float, Scores]:
    """The scores of some shares: of the whole way; and if its general score is below `least`, those
    of a bisection for the longest way that reaches it. As a rule, the score falls on the way.
    """
    results = {1.0: measure(1.0)}
    low, high = 0.0, 1.0
    for _ in range(N_HALVINGS if results[1.0][GENERAL] < least else 0):
        middle = (low + high) / 2
        results[middle] = measure(middle)
        low, high = (low, middle) if results[middle][GENERAL] < least else (middle, high)
    return results


def best_share(results: Mapping[float, Scores], base: Scores, max_loss: float) -> float | None:
    """The share with the best score of the memory, above that of the base, among those whose
    general score is at most `max_loss` lower; None if there is none.
    """
    fitting = [
        share
        for share, bleu in results.items()
        if bleu[GENERAL] >= base[GENERAL] - max_loss and bleu[MEMORY] > base[MEMORY]
    ]
    return max(fitting, key=lambda share: results[share][MEMORY], default=None)


def _with_interval(value: float, samples: Sequence[Any], sign: str) -> str:
    ordered, n_cut = sorted(map(float, samples)), len(samples) // 40
    low, high = ordered[n_cut], ordered[-1 - n_cut]
    return f"{value:{sign}.1f} [{low:{sign}.1f}, {high:{sign}.1f}]"
