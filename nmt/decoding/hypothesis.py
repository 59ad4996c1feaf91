"""Hypotheses, and the steps of a search with the back-pointers from which finished hypotheses are
read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Hypothesis:
    """A translation in token ids.

    Attributes:
        ids: without <sos> and <eos>.
        log_prob: of the ids and <eos>, in nats.
        token_log_probs: of each id, and of <eos> if complete; `log_prob` is their sum.
        score: ranks the hypotheses of a sentence.
        attention: [T, S], a row for each id, and one for <eos> if complete.
        complete: False if it was truncated at the maximum length.
    """

    ids: list[int]
    log_prob: float
    token_log_probs: list[float]
    score: float
    attention: NDArray[np.float32]
    complete: bool


@dataclass(frozen=True)
class BeamStep:
    """One step of search for the b sentences that were in the batch then.

    Attributes:
        row: [B], the row of each sentence in the tensors below.
        ids: [b, K], the appended ids. parents: [b, K], the slots of the hypotheses that they were
            appended to.
        log_probs: [b, K], of the ids by themselves.
        attention: [b, K, S], by slot of the parent.
    """

    row: Tensor
    ids: Tensor
    parents: Tensor
    log_probs: Tensor
    attention: Tensor


@dataclass(frozen=True)
class FinishedHypothesis:
    """A hypothesis of `sentence` that ended in slot `slot` of the beam, in step `step`, counted
    from 0.
    """

    sentence: int
    slot: int
    step: int
    score: float
    log_prob: float
    complete: bool


class NBestLists:
    """The n best finished hypotheses of each of B sentences.

    Attributes:
        lists: by sentence, best first; complete hypotheses come before truncated ones.
        min_score: [B], a complete hypothesis needs a higher score to enter the list; -inf while the
            list has room.
    """

    def __init__(self, n_sentences: int, n_best: int) -> None:
        self.n_best = n_best
        self.lists: list[list[FinishedHypothesis]] = [[] for _ in range(n_sentences)]
        self.min_score = torch.full((n_sentences,), float("-inf"), dtype=torch.double)

    def add(self, hypothesis: FinishedHypothesis) -> None:
        """Insert the hypothesis if it is good enough."""
        candidates = [*self.lists[hypothesis.sentence], hypothesis]
        ranked = sorted(
            candidates, key=lambda candidate: (not candidate.complete, -candidate.score)
        )[: self.n_best]
        self.lists[hypothesis.sentence] = ranked
        if len(ranked) == self.n_best and ranked[-1].complete:
            self.min_score[hypothesis.sentence] = ranked[-1].score


def trace_back(
    steps: Sequence[BeamStep], finished: NBestLists, src_lengths: Sequence[int]
) -> list[list[Hypothesis]]:
    """The n-best lists as hypotheses, by following the back-pointers."""
    # Reading single numbers is much faster from arrays than from tensors.
    arrays = [
        (
            *(
                part.numpy()
                for part in (step.row, step.ids, step.parents, step.log_probs, step.attention)
            ),
        )
        for step in steps
    ]
    return [
        [_trace_back(arrays[: hypothesis.step + 1], hypothesis, src_length) for hypothesis in best]
        for best, src_length in zip(finished.lists, src_lengths, strict=True)
    ]


def _trace_back(
    steps: Sequence[tuple[NDArray[np.generic], ...]], finished: FinishedHypothesis, src_length: int
) -> Hypothesis:
    ids, log_probs, attention, slot = [], [], [], finished.slot
    for rows, step_ids, parents, step_log_probs, weights in reversed(steps):
        row = rows[finished.sentence]
        ids.append(int(step_ids[row, slot]))
        log_probs.append(float(step_log_probs[row, slot]))
        slot = int(parents[row, slot])
        attention.append(weights[row, slot, :src_length])
    if finished.complete:
        del ids[0]  # <eos>
    return Hypothesis(
        ids[::-1],
        finished.log_prob,
        log_probs[::-1],
        finished.score,
        np.stack(attention[::-1]),
        finished.complete,
    )
