"""Several models as one: every model reads the source and follows the same hypotheses; their word
probabilities are averaged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import torch
from torch import Tensor, nn

from nmt.extras.neighbors.model import NeighborModel
from nmt.model.interface import StepOutput, TranslationModel
from nmt.model.seq2seq import Seq2Seq

Member = Seq2Seq | NeighborModel


@dataclass(frozen=True)
class PerModel:
    """One state, or one memory, for each model, in the models' order."""

    values: tuple[Any, ...]

    def select(self, rows: Tensor) -> "PerModel":
        """The rows [R] of each of them, in that order."""
        return PerModel(tuple(value.select(rows) for value in self.values))


class Ensemble(TranslationModel):
    """Models with the same target vocabulary that predict each word together."""

    def __init__(self, models: Sequence[Member]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)
        self.sizes = [model.vector_size for model in models]

    @property
    def device(self) -> torch.device:
        return self._members[0].device

    @property
    def _members(self) -> list[Member]:
        return cast("list[Member]", [*self.models])

    def restrict(self, ids: Tensor) -> "Ensemble":
        return Ensemble([model.restrict(ids) for model in self._members])

    def encode(self, src: Tensor, src_lengths: Tensor) -> PerModel:
        return PerModel(tuple(model.encode(src, src_lengths) for model in self._members))

    def start(self, memory: PerModel) -> PerModel:
        return PerModel(
            tuple(
                model.start(model_memory)
                for model, model_memory in zip(self._members, memory.values, strict=True)
            )
        )

    def step(self, ids: Tensor, state: PerModel, memory: PerModel) -> StepOutput:
        """One step of every model; vectors [N, sum of R] side by side, and the mean of the
        attention weights [N, S].
        """
        members = zip(self._members, state.values, memory.values, strict=True)
        steps = [
            model.step(ids, model_state, model_memory)
            for model, model_state, model_memory in members
        ]
        attention = torch.stack([step.attention for step in steps]).mean(0)
        return StepOutput(
            torch.cat([step.vector for step in steps], 1),
            attention,
            PerModel(tuple(step.state for step in steps)),
        )

    def compute_logits(self, vectors: Tensor) -> Tensor:
        """log sum_m p_m(y) for each word y, which is the log of the mean probability plus log M:
        [N, sum of R] -> [N, V].
        """
        parts = zip(self._members, vectors.split(self.sizes, 1), strict=True)
        return reduce(
            torch.logaddexp,
            (model.compute_logits(vector).log_softmax(1) for model, vector in parts),
        )
