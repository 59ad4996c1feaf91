"""Several models that write each word together: their probabilities are averaged."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.decoding.model import IdLists, StepOutput, Terms, TranslationModel


class PerModel(NamedTuple):
    """A state, a memory or the vectors of each model, in the models' order."""

    values: tuple[Any, ...]

    def select(self, rows: NDArray[np.int64]) -> "PerModel":
        """The rows of each of them, in that order."""
        return PerModel(tuple(value.select(rows) for value in self.values))


class Ensemble(TranslationModel):
    """Models with the same target vocabulary that predict each word together."""

    def __init__(self, models: Sequence[TranslationModel]) -> None:
        self.models = models
        self.threads, self.precision = models[0].threads, models[0].precision
        self.lexicon = next((each.lexicon for each in models if each.lexicon is not None), None)

    def encode(self, sources: IdLists) -> tuple[PerModel, PerModel]:
        memories, states = zip(*(model.encode(sources) for model in self.models), strict=True)
        return PerModel(memories), PerModel(states)

    def step(self, ids: NDArray[np.int64], state: PerModel, memory: PerModel) -> StepOutput:
        """One step of each model, with the mean attention [R, S]."""
        members = zip(self.models, state.values, memory.values, strict=True)
        steps = [model.step(ids, own_state, own_memory) for model, own_state, own_memory in members]
        return StepOutput(
            PerModel(tuple(step.vectors for step in steps)),
            np.mean([step.attention for step in steps], axis=0),
            PerModel(tuple(step.state for step in steps)),
        )

    def log_probs(self, vectors: PerModel) -> NDArray[np.floating[Any]]:
        """log (1 / M sum_m p_m(y)) for each word y: [N, V]."""
        parts = zip(self.models, vectors.values, strict=True)
        each = np.stack([model.log_probs(own_vectors) for model, own_vectors in parts])
        largest = each.max(0)
        mean: NDArray[np.floating[Any]] = np.exp(each - largest).mean(0)
        return largest + np.log(mean)  # type: ignore[no-any-return]

    def with_terms(self, terms: Terms, weight: float) -> "Ensemble | None":
        changed = [model.with_terms(terms, weight) for model in self.models]
        if all(model is None for model in changed):
            return None
        pairs = zip(changed, self.models, strict=True)
        return Ensemble([model if new is None else new for new, model in pairs])
