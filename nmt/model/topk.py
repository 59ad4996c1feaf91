"""The likeliest words of each row of scores, which are log-probabilities up to a number. R rows, V ids.

What goes out lies on the CPU, in double precision.
"""

from collections.abc import Callable
from math import isfinite

import torch
from torch import Tensor

from nmt.errors import CheckpointError
from nmt.model.cross_entropy import BITS, LEAST, MOST

CHUNK = 64  # ids whose largest score stands for them all while the best are looked for
FEW = 1 << 17  # scores that are sorted sooner than cut into chunks
BLOCK = 1 << 18  # scores that are normed together

# The ids [R, k] and log-probabilities [R, k] of likely words -> [R], which log-probability any other must reach to be of use.
ThresholdFn = Callable[[Tensor, Tensor], Tensor]


def topk_log_probs(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k likeliest of each row [R, V], all V if they are fewer, the likeliest first: ids and log-probabilities, [R, k].

    Raises:
        CheckpointError: the scores are not numbers.
    """
    found, ids = fast_topk(scores, min(k, scores.shape[1]))
    return ids.cpu(), to_log_probs(found, log_norm(scores))


def to_log_probs(scores: Tensor, norm: Tensor) -> Tensor:
    """Of the scores [R, k] of some words, with the norm [R, 1] of all."""
    return scores.cpu().double() - norm.cpu().double()


def log_norm(scores: Tensor) -> Tensor:
    """log sum exp of each row [R, 1].

    Raises:
        CheckpointError: it is not a number, so neither are the model's weights.
    """
    norm = _log_of_sum(scores) if scores.device.type == "cpu" else None
    if norm is None:
        norm = scores.logsumexp(1, keepdim=True)
    if not isfinite(float(norm.sum())):
        raise CheckpointError("the model's scores are no numbers: its weights are damaged, or its training has diverged")
    return norm


def _log_of_sum(scores: Tensor) -> Tensor | None:
    """As torch.logsumexp, in a fifth of the time; None where the sums leave the range in which they are exact."""
    # Some words at a time stay in the cache; no maximum is taken off; and exp2 takes little more than half the time of exp.
    parts = [(part * BITS).exp2_().sum(1, keepdim=True) for part in scores.split(max(1, BLOCK // len(scores)), 1)]
    total = torch.stack(parts).sum(0)
    return total.log() if bool(((total > LEAST) & (total < MOST)).all()) else None


def fast_topk(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest scores of each row, and their ids, [R, k], largest first: `topk`, several times as fast.

    The k largest lie in the k chunks whose maxima are fast_topk, or in the rest that fills no chunk.
    """
    chunks = scores.shape[1] // CHUNK
    if chunks <= 4 * k or scores.numel() < FEW:
        return scores.topk(k)
    whole = chunks * CHUNK
    chunked = scores[:, :whole].unflatten(1, (chunks, CHUNK))
    chosen = chunked.amax(2).topk(k, sorted=False).indices.sort().values  # [R, k]
    candidates = chunked[torch.arange(len(scores), device=scores.device).unsqueeze(1), chosen].flatten(1)
    found, places = torch.cat([candidates, scores[:, whole:]], 1).topk(k)
    inside = chosen.gather(1, (places // CHUNK).clamp(max=k - 1)) * CHUNK + places % CHUNK
    return found, torch.where(places < k * CHUNK, inside, places - k * CHUNK + whole)
