"""How far to go from the base to the trained weights: the choice, and what it gains and costs.

Weights between both keep more of what the base knows, and still have much of what the training
taught (Wortsman et al. 2022, arXiv 2109.01903): w = base + share * (trained - base).
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import NamedTuple, Self

import torch

from nmt.config.schema import Config
from nmt.data.corpus import read_sentences
from nmt.decoding.torch_model import TorchModel
from nmt.decoding.translator import Translator
from nmt.errors import DataError, NmtError
from nmt.evaluation.results import EvaluationSet
from nmt.evaluation.scores import SentenceStatistics, build_metric, collect_statistics
from nmt.model.seq2seq import Seq2Seq
from nmt.report.table import Table
from nmt.run.folder import load_tokenizers, load_vocabularies
from nmt.text.tokenizers import SIDES

N_HALVINGS = 4  # of the way
SHORTER = (0.9, 0.8, 0.7, 0.6)  # shares, where the whole way costs little
GENERAL, MEMORY = "general", "memory"
MAX_SENTENCES = 2000  # of a set
N_RESAMPLES = 1000
# By the name of the set.
Outputs = Mapping[str, Sequence[str]]
Scores = Mapping[str, float]


class NothingGainedError(DataError):
    """No weights are better on the memory."""


class TooCostlyError(NmtError):
    """Weights are better on the memory, but none of them is good enough on general pairs. The data
    is not at fault: a repeated command uses the training, with another `max_loss`.
    """


class Estimate(NamedTuple):
    """A figure, and its 95 % interval by bootstrap."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, samples: Sequence[float]) -> Self:
        ordered, n_cut = sorted(map(float, samples)), len(samples) // 40
        return cls(value, ordered[n_cut], ordered[-1 - n_cut])

    def text(self, sign: str = "") -> str:
        """For a table. sign: "+" to show it."""
        return f"{self.value:{sign}.1f} [{self.low:{sign}.1f}, {self.high:{sign}.1f}]"


class Change(NamedTuple):
    """A score of a set of n sentences before and after. The interval of the difference is that of
    paired samples (Koehn 2004).
    """

    name: str
    n: int
    metric: str
    before: Estimate
    after: Estimate
    difference: Estimate


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

    @property
    def n_sentences(self) -> int:
        """Of all sets together."""
        return sum(map(len, self.sets.values()))

    def translate(self, model: Seq2Seq, run: Path) -> Outputs:
        """The translations of a model with the vocabularies and tokenizers of a run."""
        translator = Translator(
            TorchModel(model),
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
        language = self.config.data.tgt_language
        chosen = build_metric(metric, lowercase=lowercase, language=language, references=references)
        return collect_statistics(chosen, outputs[name], references)

    def changes(self, before: Outputs, after: Outputs) -> list[Change]:
        """The BLEU and chrF of each set."""
        return [
            self.change(name, metric, before, after)
            for name in self.sets
            for metric in ("BLEU", "chrF")
        ]

    def change(self, name: str, metric: str, before: Outputs, after: Outputs) -> Change:
        """A score of one set."""
        old, new = (self.statistics(metric, name, each) for each in (before, after))
        samples = [each.bootstrap_scores(N_RESAMPLES) for each in (old, new)]
        differences = [b - a for a, b in zip(*samples, strict=True)]
        return Change(
            name,
            len(self.sets[name]),
            metric,
            Estimate.of(old.score, samples[0]),
            Estimate.of(new.score, samples[1]),
            Estimate.of(new.score - old.score, differences),
        )


def change_table(changes: Sequence[Change]) -> Table:
    """A row for each score."""
    return Table(
        "adaptation",
        "",
        ("test set", "metric", "before", "after", "change"),
        [
            (
                f"{each.name}, {each.n:,} pairs",
                each.metric,
                each.before.text(),
                each.after.text(),
                each.difference.text("+"),
            )
            for each in changes
        ],
    )


def remarks(changes: Sequence[Change], max_loss: float) -> Iterator[str]:
    """What the choice on dev sets promised, and the test sets do not show."""
    differences = {each.name: each.difference for each in changes if each.metric == "BLEU"}
    if differences[MEMORY].low <= 0:
        yield "the gain on the memory's test set may be chance: its interval contains 0"
    if differences[GENERAL].value < -max_loss:
        yield f"on the general test set, the loss is larger than --max-loss {max_loss:g}"


def between(base: Seq2Seq, trained: Seq2Seq, share: float) -> Seq2Seq:
    """The model at a share of the way from one to the other; its lexicon is the trained one's."""
    model = copy.deepcopy(trained)
    with torch.no_grad():
        for parameter, start in zip(model.parameters(), base.parameters(), strict=True):
            parameter.copy_(torch.lerp(start, parameter, share))
    return model


def search(
    measure: Callable[[float], Scores],
    least: float,
    is_surely_better: Callable[[float, float], bool],
) -> dict[float, Scores]:
    """The scores of some shares: of the whole way; if its general score is below `least`, those of
    a bisection for the longest way that reaches it, else those of shorter ways until one is surely
    worse on the memory. As a rule, the general score falls on the way.

    Args:
        is_surely_better: see `best_share`.
    """
    results = {1.0: measure(1.0)}
    if results[1.0][GENERAL] >= least:
        for share in SHORTER:
            results[share] = measure(share)
            if is_surely_better(1.0, share):
                break
        return results
    low, high = 0.0, 1.0
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        results[middle] = measure(middle)
        low, high = (low, middle) if results[middle][GENERAL] < least else (middle, high)
    return results


def best_share(
    results: Mapping[float, Scores],
    base: Scores,
    max_loss: float,
    is_surely_better: Callable[[float, float], bool],
) -> float:
    """The share with the best score of the memory, above that of the base, among those whose
    general score is at most `max_loss` lower. Of shares that are as good on the memory but for
    chance, it is the one with the best general score.

    Args:
        is_surely_better: whether the first of two shares is better on the memory than the second,
            and that is not chance.

    Raises:
        NothingGainedError: none gains anything. TooCostlyError: all that do lose too much.
    """
    losses = {
        share: base[GENERAL] - bleu[GENERAL]
        for share, bleu in results.items()
        if bleu[MEMORY] > base[MEMORY]
    }
    fitting = [share for share, loss in losses.items() if loss <= max_loss]
    if fitting:
        best = max(fitting, key=lambda share: results[share][MEMORY])
        as_good = [each for each in fitting if each == best or not is_surely_better(best, each)]
        return max(as_good, key=lambda share: results[share][GENERAL])
    if not losses:
        raise NothingGainedError(
            "no weights gain BLEU on the memory, so no run was written; name more pairs"
        )
    gains = {share: results[share][MEMORY] - base[MEMORY] for share in losses}
    share = max(losses, key=lambda share: gains[share] / losses[share])
    raise TooCostlyError(
        f"no weights gain BLEU on the memory and lose at most {max_loss:g} on general pairs, so "
        f"no run was written; the next best exchange on dev is {losses[share]:.1f} general for "
        f"+{gains[share]:.1f} of the memory: to take it, repeat the command with --max-loss "
        f"{ceil(10 * losses[share]) / 10:g}; it need not train again"
    )
