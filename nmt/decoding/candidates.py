"""The tokens that may extend a hypothesis: the most probable ones, or a sampled one.

Logits are log-probabilities up to a constant per row. N rows (hypotheses), V ids. Candidates are on
the CPU, in double precision.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.model.output import to_log_probs


class Candidates(NamedTuple):
    """The tokens that may extend each of N hypotheses.

    Attributes:
        ids: [N, k]. log_probs: [N, k], of each token by itself; -inf where it is not allowed.
    """

    ids: Tensor
    log_probs: Tensor

    @property
    def has_no_candidate(self) -> Tensor:
        """[N], True where no token is allowed."""
        return self.log_probs.amax(1) == float("-inf")

    def force(self, ids: Tensor, logits: Tensor, norm: Tensor) -> "Candidates":
        """Only the token `ids` [N] in rows where it is not negative. norm: [N, 1], of logits."""
        is_forced = (ids >= 0).unsqueeze(1)
        forced_log_probs = torch.full_like(self.log_probs, float("-inf"))
        forced_log_probs[:, :1] = to_log_probs(
            logits.gather(1, ids.clamp(min=0).unsqueeze(1).to(logits.device)), norm
        )
        log_probs = torch.where(is_forced, forced_log_probs, self.log_probs)
        return Candidates(torch.where(is_forced, ids.unsqueeze(1), self.ids), log_probs)

    def scatter_to_beam(self, is_open: Tensor) -> "Candidates":
        """[b, K, k]: the rows go to the hypotheses where `is_open` [b, K]; the others get -inf."""
        ids = self.ids.new_zeros(*is_open.shape, self.ids.shape[1])
        log_probs = self.log_probs.new_full(ids.shape, float("-inf"))
        ids[is_open], log_probs[is_open] = self.ids, self.log_probs
        return Candidates(ids, log_probs)


def without_banned(ids: Tensor, log_probs: Tensor, banned: Tensor) -> Candidates:
    """The tokens [N, k], with -inf for those among `banned` [N, M]."""
    is_banned = (ids.unsqueeze(2) == banned.unsqueeze(1)).any(2)
    return Candidates(ids, log_probs.masked_fill(is_banned, float("-inf")))


def sample(
    logits: Tensor, norm: Tensor, banned: Tensor, uniform: Tensor, options: DecodingConfig
) -> Candidates:
    """One token per row, sampled with temperature, top-k and top-p.

    Args:
        logits: [N, V]. norm: [N, 1], their log sum exp. banned: [N, M].
        uniform: [N], random numbers in [0, 1).

    Returns:
        ids and log_probs [N, 1]; the log-probability is that of the model, at temperature 1 and
        with nothing banned.
    """
    allowed = logits.scatter(1, banned.to(logits.device), float("-inf"))
    probabilities = sampling_probabilities(allowed, options).cpu().double()
    cumulative = probabilities.cumsum(1)  # in the order of the ids, which rounding does not change
    # right=True: an id of probability 0 is never sampled.
    ids = torch.searchsorted(
        cumulative, uniform.unsqueeze(1) * cumulative[:, -1:], right=True
    ).clamp(max=logits.shape[1] - 1)
    return Candidates(ids, to_log_probs(allowed.gather(1, ids.to(logits.device)), norm))


def sampling_probabilities(logits: Tensor, options: DecodingConfig) -> Tensor:
    """[N, V], 0 for ids that top-k, top-p (Holtzman 2020) or epsilon (Hewitt 2022) excludes.

    A row may sum to less than 1.
    """
    logits = logits / options.temperature
    if options.top_k is not None and options.top_k < logits.shape[1]:
        logits = logits.masked_fill(
            logits < logits.topk(options.top_k).values[:, -1:], float("-inf")
        )
    probabilities = logits.softmax(1)
    if options.top_p < 1:
        descending = probabilities.sort(1, descending=True).values
        # The more probable ids do not make up p.
        needed = descending.cumsum(1) - descending < options.top_p
        smallest = descending.masked_fill(~needed, 1).amin(1, keepdim=True)
        probabilities = probabilities.masked_fill(probabilities < smallest, 0)
    if options.epsilon:
        smallest = probabilities.amax(1, keepdim=True).clamp(max=options.epsilon)
        probabilities = probabilities.masked_fill(probabilities < smallest, 0)
    return probabilities


def banned_ids(
    ids_so_far: Tensor, too_short: Tensor, forbidden: Sequence[int], *, eos: int, ngram: int | None
) -> Tensor:
    """The ids that must not extend each of N hypotheses, some of them repeated.

    Args:
        ids_so_far: [N, t]. too_short: [N], True where <eos> is not allowed yet.
        forbidden: ids that are never allowed; at least one.
        ngram: n, if no n-gram may occur twice.

    Returns:
        [N, M].
    """
    columns = [torch.tensor(forbidden).expand(len(ids_so_far), -1)]
    if too_short.any():
        columns.append(torch.where(too_short, eos, forbidden[0]).unsqueeze(1))
    if ngram is not None:
        columns.append(repeating_ids(ids_so_far, ngram, filler=forbidden[0]))
    return torch.cat(columns, 1)


def repeating_ids(ids_so_far: Tensor, n: int, filler: int) -> Tensor:
    """The ids [N, M] that would repeat an n-gram of `ids_so_far` [N, t], then `filler`."""
    if ids_so_far.shape[1] < n:
        return ids_so_far.new_empty(len(ids_so_far), 0)
    ngrams = ids_so_far.unfold(1, n, 1)  # [N, t - n + 1, n]
    last_ids = ids_so_far[:, ids_so_far.shape[1] - n + 1 :].unsqueeze(1)  # [N, 1, n - 1]
    would_repeat = (ngrams[..., :-1] == last_ids).all(-1)
    repeated = ngrams[..., -1].masked_fill(~would_repeat, filler)
    width = int(would_repeat.sum(1).max()) if len(ids_so_far) else 0
    order = would_repeat.byte().argsort(dim=1, descending=True, stable=True)[:, :width]
    return repeated.gather(1, order)
