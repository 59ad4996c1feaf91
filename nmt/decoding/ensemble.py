"""Several models that write each word together: their probabilities are averaged."""

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from nmt.model.interface import StepOutput, TranslationModel
from nmt.model.seq2seq import Seq2Seq


class Member(NamedTuple):
    """A trained model, and its fast form for search."""

    trained: Seq2Seq
    model: TranslationModel


class PerModel(NamedTuple):
    """A state, a memory or the vectors of each model, in the models' order."""

    values: tuple[Any, ...]

    def select(self, rows: Tensor) -> "PerModel":
        """The rows [B'] of each of them, in that order."""
        return PerModel(tuple(value.select(rows) for value in self.values))


class Ensemble(TranslationModel):
    """Models with the same target vocabulary that predict each word together."""

    def __init__(self, models: Sequence[TranslationModel]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)

    @property
    def device(self) -> torch.device:
        return self.members[0].device

    @property
    def members(self) -> list[TranslationModel]:
        """The models, in their order."""
        return cast("list[TranslationModel]", [*self.models])

    def encode(self, src: Tensor, src_lengths: Tensor) -> PerModel:
        return PerModel(tuple(model.encode(src, src_lengths) for model in self.members))

    def start(self, memory: PerModel) -> PerModel:
        members = zip(self.members, memory.values, strict=True)
        return PerModel(tuple(model.start(model_memory) for model, model_memory in members))

    def step(self, ids: Tensor, state: PerModel, memory: PerModel) -> StepOutput:
        """One step of each model, with the mean attention [N, S]."""
        members = zip(self.members, state.values, memory.values, strict=True)
        steps = [
            model.step(ids, model_state, model_memory)
            for model, model_state, model_memory in members
        ]
        return StepOutput(
            PerModel(tuple(step.vector for step in steps)),
            torch.stack([step.attention for step in steps]).mean(0),
            PerModel(tuple(step.state for step in steps)),
        )

    def compute_logits(self, vectors: PerModel) -> Tensor:
        """log sum_m p_m(y) for each word y, which is the log of the mean probability plus log M:
        [N, V].
        """
        parts = zip(self.members, vectors.values, strict=True)
        return reduce(
            torch.logaddexp,
            (model.compute_logits(vector).log_softmax(1) for model, vector in parts),
        )
