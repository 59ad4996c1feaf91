"""What search has found, and the back-pointers it is read from: tokens, their log-probabilities, and attention."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True)
class Hypothesis:
    """A translation that search has found.

    Attributes:
        ids: without <sos> and <eos>.
        log_prob: of the ids and <eos>, in nats.
        token_log_probs: of each id, and of <eos> if it is complete; `log_prob` is their sum.
        score: what it was ranked by.
        attention: [T, S], a row for each id, and one for <eos> if it is complete.
        complete: False if it was cut at the maximum length.
    """

    ids: list[int]
    log_prob: float
    token_log_probs: list[float]
    score: float
    attention: NDArray[np.float32]
    complete: bool


@dataclass(frozen=True)
class Trace:
    """One step of the b sentences that were live then.

    Attributes:
        position: [B], sentence -> its row in the arrays below.
        ids, parents: [b, K], the id appended, and the slot of the hypothesis it was appended to.
        log_probs: [b, K], of the ids alone.
        attention: [b, K, S], by slot of the parent.
    """

    position: NDArray[np.int64]
    ids: NDArray[np.int64]
    parents: NDArray[np.int64]
    log_probs: NDArray[np.float64]
    attention: NDArray[np.float32]


@dataclass(frozen=True)
class End:
    """Where a hypothesis of `sentence` ended: in which slot of which step, counted from 0."""

    sentence: int
    score: float
    log_prob: float
    step: int
    slot: int
    complete: bool


class Ends:
    """The hypotheses of B sentences that have ended: the n best of each, best first.

    Attributes:
        best: by sentence. What is complete comes before what was cut.
        least: [B], the score that a complete hypothesis has to exceed to be among them; -inf while there are fewer.
    """

    def __init__(self, n_sentences: int, n_best: int) -> None:
        self.n_best = n_best
        self.best: list[list[End]] = [[] for _ in range(n_sentences)]
        self.least = torch.full((n_sentences,), float("-inf"), dtype=torch.double)

    def add(self, end: End) -> None:
        """Keep `end` if it is among the best."""
        ranked = sorted([*self.best[end.sentence], end], key=lambda one: (not one.complete, -one.score))[: self.n_best]
        self.best[end.sentence] = ranked
        if len(ranked) == self.n_best and ranked[-1].complete:
            self.least[end.sentence] = ranked[-1].score


def trace_path(traces: Sequence[Trace], sentence: int, slot: int) -> list[tuple[Trace, int, int, int]]:
    """The way to `slot` of the last of `traces`, first step first: each with the sentence's row, the slot, and its parent."""
    path = []
    for trace in reversed(traces):
        row = int(trace.position[sentence])
        parent = int(trace.parents[row, slot])
        path.append((trace, row, slot, parent))
        slot = parent
    return path[::-1]


def trace_attention(traces: Sequence[Trace], sentence: int, slot: int, src_length: int) -> NDArray[np.float32]:
    """Where the hypothesis in `slot` of the last of `traces` has looked: [T, S], without the padding."""
    return np.stack([trace.attention[row, parent, :src_length] for trace, row, _, parent in trace_path(traces, sentence, slot)])


def trace_back(traces: Sequence[Trace], end: End, src_length: int) -> Hypothesis:
    """The whole hypothesis, from where it ended."""
    traces = traces[: end.step + 1]
    path = trace_path(traces, end.sentence, end.slot)
    ids = [int(trace.ids[row, slot]) for trace, row, slot, _ in path]
    log_probs = [float(trace.log_probs[row, slot]) for trace, row, slot, _ in path]
    attention = trace_attention(traces, end.sentence, end.slot, src_length)
    return Hypothesis(ids[:-1] if end.complete else ids, end.log_prob, log_probs, end.score, attention, end.complete)
