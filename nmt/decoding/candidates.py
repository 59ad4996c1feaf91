"""The tokens that may extend a hypothesis: the most probable ones, or a sampled one.

N rows (hypotheses), V ids. Log-probabilities are in double precision.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.config.schema import DecodingConfig


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
    largest = scaled.max(1, keepdims=True)
    probabilities = np.exp(scaled - np.where(largest > -np.inf, largest, 0))
    probabilities /= probabilities.sum(1, keepdims=True).clip(min=1)  # 0 where nothing is allowed
    if options.top_p < 1:
        descending = -np.sort(-probabilities, axis=1)
        # The more probable ids do not make up p.
        needed = np.cumsum(descending, axis=1) - descending < options.top_p
        probabilities[probabilities < descending.min(1, where=needed, initial=1)[:, None]] = 0
    return probabilities


def banned_ids(
    ids_so_far: NDArray[np.int64],
    too_short: NDArray[np.bool_],
    forbidden: Sequence[int],
    *,
    eos: int,
    ngram: int | None,
) -> NDArray[np.int64]:
    """The ids that must not extend each of N hypotheses, some of them repeated.

    Args:
        ids_so_far: [N, t]. too_short: [N], True where <eos> is not allowed yet.
        forbidden: ids that are never allowed; at least one.
        ngram: n, if no n-gram may occur twice.

    Returns:
        [N, M].
    """
    columns = [np.broadcast_to(np.array(forbidden), (len(too_short), len(forbidden)))]
    if too_short.any():
        columns.append(np.where(too_short, eos, forbidden[0])[:, None])
    if ngram is not None:
        columns.append(repeating_ids(ids_so_far, ngram, filler=forbidden[0]))
    return np.concatenate(columns, 1) if len(columns) > 1 else columns[0]


def repeating_ids(ids_so_far: NDArray[np.int64], n: int, filler: int) -> NDArray[np.int64]:
    """The ids [N, M] that would repeat an n-gram of `ids_so_far` [N, t], then `filler`."""
    if ids_so_far.shape[1] < n or not len(ids_so_far):
        return np.zeros((len(ids_so_far), 0), np.int64)
    ngrams = np.lib.stride_tricks.sliding_window_view(ids_so_far, n, 1)  # [N, t - n + 1, n]
    last_ids = ids_so_far[:, None, ids_so_far.shape[1] - n + 1 :]  # [N, 1, n - 1]
    would_repeat = (ngrams[..., :-1] == last_ids).all(-1)
    repeated = np.where(would_repeat, ngrams[..., -1], filler)
    order = np.argsort(~would_repeat, axis=1, kind="stable")
    return np.take_along_axis(repeated, order[:, : would_repeat.sum(1).max()], 1)
