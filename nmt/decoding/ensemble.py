"""Several models as one: each reads the source and writes along, and the probabilities of the next word are averaged."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from nmt.decoding.search import Rows
from nmt.model.attention import Memory
from nmt.model.decoder import DecoderState
from nmt.model.seq2seq import Seq2Seq
from nmt.model.topk import Bar, likeliest

Part = TypeVar("Part", bound=Rows)


@dataclass(frozen=True)
class Parts(Generic[Part]):
    """The states, or the memories, of the models, in their order."""

    parts: tuple[Part, ...]

    def select(self, rows: Tensor) -> "Parts[Part]":
        """The rows [R] of each, in that order."""
        return Parts(tuple(part.select(rows) for part in self.parts))


@dataclass(frozen=True)
class EnsembleStep:
    """One step.

    Attributes:
        vector: [B, sum of R], the models' vectors side by side.
        attention: [B, S], the mean of their weights.
        state: for the next step.
    """

    vector: Tensor
    attention: Tensor
    state: Parts[DecoderState]


class Ensemble(nn.Module):
    """Models with the same vocabularies; to search, one of them like any `Seq2Seq`."""

    def __init__(self, models: Sequence[Seq2Seq]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)
        self.sizes = [model.decoder.readout.output_size for model in models]

    @property
    def device(self) -> torch.device:
        return self._members[0].device

    @property
    def _members(self) -> list[Seq2Seq]:
        return [model for model in self.models if isinstance(model, Seq2Seq)]

    def restrict(self, ids: Tensor) -> "Ensemble":
        """The models for the target words `ids` [v] alone, as `Seq2Seq.restrict`."""
        return Ensemble([model.restrict(ids) for model in self._members])

    def encode(self, src: Tensor, src_lengths: Tensor) -> Parts[Memory]:
        """Read the source [B, S]; `src_lengths` [B] lie on the CPU."""
        return Parts(tuple(model.encode(src, src_lengths) for model in self._members))

    def start(self, memory: Parts[Memory]) -> Parts[DecoderState]:
        """The state before the first step."""
        return Parts(tuple(model.start(part) for model, part in zip(self._members, memory.parts, strict=True)))

    def step(self, ids: Tensor, state: Parts[DecoderState], memory: Parts[Memory]) -> EnsembleStep:
        """One step of all after the tokens `ids`, as that of a `Seq2Seq`."""
        members = zip(self._members, state.parts, memory.parts, strict=True)
        steps = [model.step(ids, of, looked) for model, of, looked in members]
        attention = torch.stack([step.attention for step in steps]).mean(0)
        return EnsembleStep(torch.cat([step.vector for step in steps], 1), attention, Parts(tuple(step.state for step in steps)))

    def scores(self, vectors: Tensor) -> Tensor:
        """log sum_m p_m(y) of each word, the mean's up to log M: [R, sum of R] -> [R, V]."""
        parts = zip(self._members, vectors.split(self.sizes, 1), strict=True)
        return reduce(torch.logaddexp, (model.output.log_probs(vector) for model, vector in parts))

    def likeliest(self, vectors: Tensor, k: int, _bar: Bar) -> tuple[Tensor, Tensor]:
        """Of the mean: words that hardly any model thinks of are among them for those that do."""
        return likeliest(self.scores(vectors), k)
