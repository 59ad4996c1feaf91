"""What search and forced decoding need of a model, an ensemble, or a table in a test."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nmt.model.output import ThresholdFn, topk_log_probs


@dataclass(frozen=True)
class StepOutput:
    """The result of one decoder step for N hypotheses.

    Attributes:
        vector: what the output layer reads: of a decoder [N, R]; of a model it is opaque, as is its
            memory.
        attention: [N, S], the attention weights; 0 on padding.
        state: the state for the next step.
    """

    vector: Any
    attention: Tensor
    state: Any


IdLists = Sequence[Sequence[int]]
ChooseWords = Callable[[IdLists, IdLists], tuple["TranslationModel", Tensor]]


class TranslationModel(nn.Module, ABC):
    """Reads a batch of source sentences once, then predicts target tokens one step at a time.

    A memory (one row per sentence), a state and the vectors of a step (one row per hypothesis) are
    opaque to the caller, except that `select(rows)` returns the rows [B'] in that order.

    Attributes:
        choose_words: for a batch, from the ids of its sources, and target ids that must be among
            those chosen: the model to search with, and the target ids [v] that it numbers from 0,
            special tokens as usual. None: the model searches with all words.
    """

    choose_words: ChooseWords | None = None

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """The device that inputs must be on."""

    @abstractmethod
    def encode(self, src: Tensor, src_lengths: Tensor) -> Any:
        """Read the source and return the memory.

        Args:
            src: [B, S] ids. src_lengths: [B], on the CPU.
        """

    @abstractmethod
    def start(self, memory: Any) -> Any:
        """The state before the first step, one row per sentence."""

    @abstractmethod
    def step(self, ids: Tensor, state: Any, memory: Any) -> StepOutput:
        """One step, in evaluation mode.

        Args:
            ids: the last token of each hypothesis, [B], or [B * K] for K hypotheses of each of the
                B sentences in `memory`.
            state: one row per hypothesis. memory: one row per sentence.
        """

    @abstractmethod
    def compute_logits(self, vectors: Any) -> Tensor:
        """The vectors of N rows -> logits [N, V]: log-probabilities up to a constant per row."""

    def topk_log_probs(self, vectors: Any, k: int, threshold: ThresholdFn) -> tuple[Tensor, Tensor]:
        """The ids and log-probabilities [N, k] of the most probable words, best first, on the CPU.

        Args:
            threshold: given the best words so far, the log-probability that another word must reach
                to be of use; words below it may be left out or have -inf.
        """
        return topk_log_probs(self.compute_logits(vectors), k)
