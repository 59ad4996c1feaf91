"""Beam search; greedy search is beam 1.

A sentence has K hypotheses. At each step every live one is extended by every token, the best K of all extensions are kept, and
those that end in <eos> are set aside: they are finished, and their place in the beam stays empty. So a beam of 1 is greedy search.
Raw log-probability and length are kept apart, and one formula ranks all: log_prob / length ** length_penalty. What had to be cut at
the maximum length comes after all that ended by itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class SearchOptions:
    """How to search.

    Attributes:
        beam: K, hypotheses kept.
        length_penalty: the exponent of the length in the ranking; 0 ranks by log-probability.
        max_length_ratio: a hypothesis is cut at this many times the source length plus 10, in tokens.
        n_best: hypotheses returned, at most `beam`.
    """

    beam: int = 5
    length_penalty: float = 1.0
    max_length_ratio: float = 2.0
    n_best: int = 1


@dataclass(frozen=True)
class SpecialIds:
    """The ids that search must know: where a hypothesis begins and ends, and what it never contains."""

    sos: int
    eos: int
    forbidden: tuple[int, ...] = ()


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


class Rows(Protocol):
    """What can be reordered by rows: a decoder's state, the memory it looks at."""

    def select(self, rows: Tensor) -> Self:
        """The rows [R], in that order."""


State = TypeVar("State", bound=Rows)
Looked = TypeVar("Looked", bound=Rows)

# (ids [R], state, memory) -> log-probabilities [R, V], attention weights [R, S], next state
Step = Callable[[Tensor, State, Looked], tuple[Tensor, Tensor, State]]


@dataclass(frozen=True)
class _Trace:
    """One step of the sentences that were live then: back-pointers, from which tokens and attention are read at the end.

    Attributes:
        position: sentence -> its row in the arrays below.
        tokens, parents: [b, K], the token appended, and the slot of the hypothesis it was appended to.
        log_prob: [b, K], of the hypotheses with it.
        attention: [b, K, S], by slot of the parent.
    """

    position: dict[int, int]
    tokens: NDArray[np.int64]
    parents: NDArray[np.int64]
    log_prob: NDArray[np.float32]
    attention: NDArray[np.float32]


@dataclass(frozen=True)
class _End:
    """Where a hypothesis ended: in which slot of which step, counted from 0."""

    score: float
    log_prob: float
    step: int
    slot: int
    complete: bool


@dataclass(frozen=True)
class _Sentence:
    """A sentence under way: its place in the batch, S, its longest translation, and the hypotheses that have ended."""

    index: int
    src_length: int
    max_length: int
    ends: list[_End] = field(default_factory=list)


def rank(log_prob: float, length: int, length_penalty: float) -> float:
    """What hypotheses are ranked by; `length` counts <eos>."""
    return log_prob / float(length**length_penalty)


def search(
    step: Step[State, Looked], state: State, memory: Looked, src_lengths: Sequence[int], special: SpecialIds, options: SearchOptions
) -> list[list[Hypothesis]]:
    """Translate a batch.

    Args:
        step: the model. state, memory: of B sentences, a row each. src_lengths: [B], in tokens.

    Returns:
        for each sentence its `n_best` hypotheses, best first.
    """
    sentences = [_Sentence(i, length, int(options.max_length_ratio * length) + 10) for i, length in enumerate(src_lengths)]
    traces: list[_Trace] = []
    live, n_rows_read = sentences, 0
    rows = torch.arange(len(live)).repeat_interleave(options.beam)
    ids, log_prob = torch.full((len(rows),), special.sos), _first_log_probs(len(live), options.beam)
    while live:
        state = state.select(rows)
        if len(rows) != n_rows_read:  # the K hypotheses of a sentence read the same memory: it moves only when sentences leave
            memory, n_rows_read = memory.select(rows), len(rows)
        log_probs, attention, state = step(ids, state, memory)
        best, parents, tokens = extend(log_probs, log_prob.to(log_probs.device), special.forbidden)
        position = {sentence.index: row for row, sentence in enumerate(live)}
        weights = attention.float().view(len(live), options.beam, -1).cpu().numpy()
        traces.append(_Trace(position, tokens.cpu().numpy(), parents.cpu().numpy(), best.cpu().numpy(), weights))
        log_prob = _set_ended_aside(live, best.cpu(), traces, special.eos, options)
        staying = [row for row, sentence in enumerate(live) if not _is_done(sentence, log_prob[row], options)]
        live, log_prob = [live[row] for row in staying], log_prob[staying]
        rows = (parents[staying] + torch.tensor(staying, device=parents.device).unsqueeze(1) * options.beam).flatten()
        ids = tokens[staying].flatten()
    return [[_trace_back(sentence, end, traces) for end in _best_ends(sentence, options)] for sentence in sentences]


def extend(log_probs: Tensor, log_prob: Tensor, forbidden: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """The best K extensions of each sentence's K hypotheses.

    Args:
        log_probs: [b * K, V], of the next token. log_prob: [b, K], of the hypotheses; -inf where there is none.

    Returns:
        log-probability, slot of the hypothesis extended, and token: [b, K] each, best first.
    """
    n_sentences, beam = log_prob.shape
    if forbidden:
        log_probs[:, list(forbidden)] = float("-inf")
    # The K best of each row hold the K best of all rows: no need to sort K * V candidates.
    row_best, row_tokens = log_probs.topk(min(beam, log_probs.shape[1]), dim=-1)  # [b * K, k]
    width = row_best.shape[1]
    candidates = (log_prob.unsqueeze(2) + row_best.view(n_sentences, beam, width)).flatten(1)  # [b, K * k]
    best, chosen = candidates.topk(beam, dim=-1)  # [b, K]
    return best, chosen // width, row_tokens.view(n_sentences, -1).gather(1, chosen)


def _first_log_probs(n_sentences: int, beam: int) -> Tensor:
    """One hypothesis a sentence, the empty one."""
    log_prob = torch.full((n_sentences, beam), float("-inf"))
    log_prob[:, 0] = 0
    return log_prob


def _set_ended_aside(live: Sequence[_Sentence], best: Tensor, traces: Sequence[_Trace], eos: int, options: SearchOptions) -> Tensor:
    """Note the hypotheses that ended with this step, by <eos> or by the maximum length; the log-probabilities of the others."""
    length, values = len(traces), best.tolist()
    complete = traces[-1].tokens == eos  # [b, K]
    ended = complete | np.array([[length >= sentence.max_length] for sentence in live])
    for row, slot in zip(*ended.nonzero(), strict=True):
        log_prob = values[row][slot]
        if log_prob > float("-inf"):
            score = rank(log_prob, length, options.length_penalty)
            live[row].ends.append(_End(score, log_prob, length - 1, int(slot), bool(complete[row, slot])))
    return best.masked_fill(torch.from_numpy(ended), float("-inf"))


def _is_done(sentence: _Sentence, log_prob: Tensor, options: SearchOptions) -> bool:
    """Whether no live hypothesis can still be among the n best: log-probability only falls, so its rank is bounded."""
    alive = float(log_prob.max())
    if alive == float("-inf"):
        return True
    ends = _best_ends(sentence, options)
    if len(ends) < options.n_best:
        return False
    return ends[-1].score >= rank(alive, sentence.max_length, options.length_penalty)


def _best_ends(sentence: _Sentence, options: SearchOptions) -> list[_End]:
    return sorted(sentence.ends, key=lambda end: (not end.complete, -end.score))[: options.n_best]


def _trace_back(sentence: _Sentence, end: _End, traces: Sequence[_Trace]) -> Hypothesis:
    """Follow the back-pointers from the end for tokens and attention."""
    ids, log_probs, attention, slot = [], [], [], end.slot
    for trace in reversed(traces[: end.step + 1]):
        row = trace.position[sentence.index]
        parent = int(trace.parents[row, slot])
        ids.append(int(trace.tokens[row, slot]))
        log_probs.append(float(trace.log_prob[row, slot]))
        attention.append(trace.attention[row, parent])
        slot = parent
    tokens = ids[::-1][:-1] if end.complete else ids[::-1]
    steps = np.diff(log_probs[::-1], prepend=0.0).tolist()
    return Hypothesis(tokens, end.log_prob, steps, end.score, np.stack(attention[::-1])[:, : sentence.src_length], end.complete)
