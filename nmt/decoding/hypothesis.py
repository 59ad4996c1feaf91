"""The hypotheses of a search: which tokens may extend one (the most probable ones, or a sampled
one), its score, and the back-pointers from which a finished one is read.

N rows (hypotheses), V ids. Log-probabilities are in double precision.

The score that ranks hypotheses is log P / T^a (Wu 2016, eq. 14, with T^a as penalty), for T tokens
with <eos> and a = `decoding.length_penalty`; with a = 1, a score is the mean of the tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.config.schema import DecodingConfig


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


class Candidates(NamedTuple):
    """The tokens that may extend each of N hypotheses.

    Attributes:
        ids: [N, k]. log_probs: [N, k], of each token by itself; -inf where it is not allowed.
    """

    ids: NDArray[np.int64]
    log_probs: NDArray[np.float64]

    def force(self, ids: NDArray[np.int64], log_probs: NDArray[np.floating[Any]]) -> "Candidates":
        """Only the token `ids` [N] in rows where it is not negative. log_probs: [N, V]."""
        is_forced = ids >= 0
        own = np.full(self.log_probs.shape, -np.inf)
        own[:, 0] = log_probs[np.arange(len(ids)), ids.clip(min=0)]
        return Candidates(
            np.where(is_forced[:, None], ids[:, None], self.ids),
            np.where(is_forced[:, None], own, self.log_probs),
        )

    def scatter_to_beam(self, is_open: NDArray[np.bool_]) -> "Candidates":
        """[b, K, k]: the rows go to the hypotheses where `is_open` [b, K]; the others get -inf."""
        shape = (*is_open.shape, self.ids.shape[1])
        if is_open.all():
            return Candidates(self.ids.reshape(shape), self.log_probs.reshape(shape))
        ids, log_probs = np.zeros(shape, np.int64), np.full(shape, -np.inf)
        ids[is_open], log_probs[is_open] = self.ids, self.log_probs
        return Candidates(ids, log_probs)


def without_banned(
    ids: NDArray[np.int64], log_probs: NDArray[np.floating[Any]], banned: NDArray[np.int64]
) -> Candidates:
    """The tokens [N, k], with -inf for those among `banned` [N, M]."""
    allowed = log_probs.astype(np.float64)
    for column in banned.T:
        allowed[ids == column[:, None]] = -np.inf
    return Candidates(ids, allowed)


def sample(
    log_probs: NDArray[np.floating[Any]],
    banned: NDArray[np.int64],
    uniform: NDArray[np.float64],
    options: DecodingConfig,
) -> Candidates:
    """One token per row, sampled with temperature, top-k and top-p.

    Args:
        log_probs: [N, V]. banned: [N, M].
        uniform: [N], random numbers in [0, 1).

    Returns:
        ids and log_probs [N, 1]; the log-probability is that of the model, at temperature 1 and
        with nothing banned.
    """
    allowed = log_probs.astype(np.float64)
    np.put_along_axis(allowed, banned, -np.inf, 1)
    # In the order of the ids, which rounding does not change.
    cumulative = np.cumsum(sampling_probabilities(allowed, options), axis=1)
    drawn = uniform[:, None] * cumulative[:, -1:]
    # An id of probability 0 is never sampled.
    ids = (cumulative <= drawn).sum(1, keepdims=True).clip(max=allowed.shape[1] - 1)
    return Candidates(ids, np.take_along_axis(allowed, ids, 1))


def sampling_probabilities(
    log_probs: NDArray[np.float64], options: DecodingConfig
) -> NDArray[np.float64]:
    """[N, V], 0 for ids that top-k or top-p (Holtzman 2020) excludes.

    A row may sum to less than 1.
    """
    scaled = log_probs / options.temperature
    if options.top_k is not None and options.top_k < scaled.shape[1]:
        smallest = -np.partition(-scaled, options.top_k - 1, axis=1)[:, options.top_k - 1]
        scaled = np.where(scaled < smallest[:, None], -np.inf, scaled)
    probabilities: NDArray[np.float64] = np.exp(scaled - scaled.max(1, keepdims=True))
    probabilities /= probabilities.sum(1, keepdims=True)
    if options.top_p < 1:
        descending = -np.sort(-probabilities, axis=1)
        # The more probable ids do not make up p.
        needed = np.cumsum(descending, axis=1) - descending < options.top_p
        probabilities[probabilities < descending.min(1, where=needed, initial=1)[:, None]] = 0
    return probabilities


def upper_bound(
    log_prob: NDArray[np.float64], max_length: NDArray[np.float64], options: DecodingConfig
) -> NDArray[np.float64]:
    """The highest score that continuations of at most `max_length` [b] tokens can have: [b].

    Proof. A continuation of T <= max_length tokens has log P <= log_prob <= 0, because no
    probability is above 1. T^a is above 0 and never falls with T, as a >= 0; and dividing a number
    that is not above 0 by a larger one brings it nearer to 0. So log P / T^a <= log_prob / T^a <=
    log_prob / max_length^a. Banned and forced tokens only remove continuations.
    """
    return np.minimum(log_prob, 0) / max_length**options.length_penalty


class BeamStep(NamedTuple):
    """One step of search for the b sentences that were in the batch then.

    Attributes:
        row: [B], the row of each sentence in the arrays below.
        ids: [b, K], the appended ids. parents: [b, K], the slots of the hypotheses that they were
            appended to.
        log_probs: [b, K], of the ids by themselves.
        attention: [b, K, S], by slot of the parent.
    """

    row: NDArray[np.int64]
    ids: NDArray[np.int64]
    parents: NDArray[np.int64]
    log_probs: NDArray[np.float64]
    attention: NDArray[np.float32]


class FinishedHypothesis(NamedTuple):
    """A hypothesis of `sentence` that ended in slot `slot` of the beam in step `step`, from 0."""

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
        self.min_score = np.full(n_sentences, -np.inf)

    def add(self, hypothesis: FinishedHypothesis) -> None:
        """Insert the hypothesis if it is good enough."""
        ranked = sorted(
            [*self.lists[hypothesis.sentence], hypothesis],
            key=lambda candidate: (not candidate.complete, -candidate.score),
        )[: self.n_best]
        self.lists[hypothesis.sentence] = ranked
        if len(ranked) == self.n_best and ranked[-1].complete:
            self.min_score[hypothesis.sentence] = ranked[-1].score


def trace_back(
    steps: Sequence[BeamStep], finished: NBestLists, src_lengths: Sequence[int]
) -> list[list[Hypothesis]]:
    """The n-best lists as hypotheses, by following the back-pointers."""
    return [
        [_trace_back(steps[: hypothesis.step + 1], hypothesis, src_length) for hypothesis in best]
        for best, src_length in zip(finished.lists, src_lengths, strict=True)
    ]


def _trace_back(
    steps: Sequence[BeamStep], finished: FinishedHypothesis, src_length: int
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
