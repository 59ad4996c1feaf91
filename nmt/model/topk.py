"""The k most probable words for each row of logits: log-probabilities up to a constant per row. N
rows, V ids.

Results are on the CPU, in double precision.
"""

from collections.abc import Callable
from math import isfinite

import torch
from torch import Tensor

from nmt.errors import NonFiniteError
from nmt.model.cross_entropy import LOG2_E, MAX_SUM, MIN_SUM

CHUNK_SIZE = 64  # `fast_topk` compares the maxima of chunks of this many ids
MIN_FAST_SIZE = 1 << 17  # `fast_topk` uses torch.topk for fewer logits than this
BLOCK_SIZE = (
    1 << 18
)  # logits that `log_norm` exponentiates at a time, so that they stay in the cache

# The ids [N, k] and log-probabilities [N, k] of the best words so far -> the log-probability [N]
# that another word must reach.
ThresholdFn = Callable[[Tensor, Tensor], Tensor]


def topk_log_probs(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k most probable ids of each row [N, V], or all V if they are fewer, best first: ids and
    log-probabilities [N, k].

    Raises:
        NonFiniteError: the logits are not finite numbers.
    """
    largest, ids = fast_topk(logits, min(k, logits.shape[1]))
    return ids.cpu(), to_log_probs(largest, log_norm(logits))


def to_log_probs(logits: Tensor, norm: Tensor) -> Tensor:
    """The log-probabilities of some logits [N, k], with the `log_norm` [N, 1] of their rows."""
    return logits.cpu().double() - norm.cpu().double()


def log_norm(logits: Tensor) -> Tensor:
    """log sum exp of each row: [N, V] -> [N, 1].

    Raises:
        NonFiniteError: the logits are not finite numbers, so neither are the model's weights.
    """
    norm = _log_of_sum(logits) if logits.device.type == "cpu" else None
    if norm is None:
        norm = logits.logsumexp(1, keepdim=True)
    if not isfinite(float(norm.sum())):
        raise NonFiniteError(
            "the model's logits are not finite: its weights are damaged, or its training has "
            "diverged"
        )
    return norm


def _log_of_sum(logits: Tensor) -> Tensor | None:
    """As torch.logsumexp, in a fifth of the time; None if a sum leaves the range in which it is
    exact.
    """
    # Blocks stay in the cache, the maximum is not subtracted, and exp2 takes little more than half
    # the time of exp.
    blocks = [
        (block * LOG2_E).exp2_().sum(1, keepdim=True)
        for block in logits.split(max(1, BLOCK_SIZE // len(logits)), 1)
    ]
    total = torch.stack(blocks).sum(0)
    return total.log() if bool(((total > MIN_SUM) & (total < MAX_SUM)).all()) else None


def fast_topk(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """As torch.topk, several times as fast: the k largest logits of each row and their ids, [N, k],
    largest first.

    The k largest lie in the k chunks with the largest maxima, or in the remainder that fills no
    chunk.
    """
    n_chunks = logits.shape[1] // CHUNK_SIZE
    if n_chunks <= 4 * k or logits.numel() < MIN_FAST_SIZE:
        return logits.topk(k)
    whole = n_chunks * CHUNK_SIZE
    chunks = logits[:, :whole].unflatten(1, (n_chunks, CHUNK_SIZE))
    chosen = chunks.amax(2).topk(k, sorted=False).indices.sort().values  # [N, k]
    candidates = chunks[
        torch.arange(len(logits), device=logits.device).unsqueeze(1), chosen
    ].flatten(1)
    largest, columns = torch.cat([candidates, logits[:, whole:]], 1).topk(k)
    inside = (
        chosen.gather(1, (columns // CHUNK_SIZE).clamp(max=k - 1)) * CHUNK_SIZE
        + columns % CHUNK_SIZE
    )
    return largest, torch.where(columns < k * CHUNK_SIZE, inside, columns - k * CHUNK_SIZE + whole)
