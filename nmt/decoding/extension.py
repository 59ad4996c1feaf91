"""By which tokens a hypothesis is extended: the likeliest, or one that is drawn. What comes in is left as it is.

Scores are logits: log-probabilities up to a number for each row. R rows, V ids; what goes out lies on the CPU, in double precision.
"""

from dataclasses import dataclass
from math import isfinite

import torch
from torch import Tensor

from nmt.errors import CheckpointError
from nmt.model.cross_entropy import BITS, LEAST, MOST
from nmt.sections import DecodingConfig

CHUNK = 64  # ids whose largest score stands for them all while the best are looked for
FEW = 1 << 17  # scores that are sorted sooner than cut into chunks
BLOCK = 1 << 18  # scores that are normed together


@dataclass(frozen=True)
class Extensions:
    """How R hypotheses may go on.

    Attributes:
        ids: [R, k]. log_probs: [R, k], of each id alone; -inf where it may not come.
    """

    ids: Tensor
    log_probs: Tensor

    @property
    def stuck(self) -> Tensor:
        """[R], True where nothing may come."""
        return self.log_probs.amax(1) == float("-inf")

    def force(self, ids: Tensor, scores: Tensor, norm: Tensor) -> "Extensions":
        """With nothing but `ids` [R] in the rows where they are not negative; scores [R, V], norm [R, 1]."""
        forced = (ids >= 0).unsqueeze(1)
        alone = torch.full_like(self.log_probs, float("-inf"))
        alone[:, :1] = _log_probs(scores.gather(1, ids.clamp(min=0).unsqueeze(1).to(scores.device)), norm)
        return Extensions(torch.where(forced, ids.unsqueeze(1), self.ids), torch.where(forced, alone, self.log_probs))

    def spread(self, alive: Tensor) -> "Extensions":
        """[b, K, k], the rows being those of the hypotheses that are `alive` [b, K]; the others have nothing."""
        ids = self.ids.new_zeros(*alive.shape, self.ids.shape[1])
        log_probs = self.log_probs.new_full(ids.shape, float("-inf"))
        ids[alive], log_probs[alive] = self.ids, self.log_probs
        return Extensions(ids, log_probs)


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


def best(scores: Tensor, norm: Tensor, banned: Tensor, width: int) -> Extensions:
    """The likeliest `width` ids that are not among `banned` [R, M], and some more of which some are: those have -inf."""
    # The best `width` that are allowed are among the best `width + M`: no score need be overwritten.
    found, ids = largest(scores, min(width + banned.shape[1], scores.shape[1]))
    ids = ids.cpu()
    is_banned = (ids.unsqueeze(2) == banned.unsqueeze(1)).any(2)
    return Extensions(ids, _log_probs(found, norm).masked_fill(is_banned, float("-inf")))


def largest(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest scores of each row, and their ids, [R, k], largest first: `topk`, several times as fast.

    The k largest lie in the k chunks whose maxima are largest, or in the rest that fills no chunk.
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


def draw(scores: Tensor, norm: Tensor, banned: Tensor, uniform: Tensor, options: DecodingConfig) -> Extensions:
    """One id a row, drawn by `uniform` [R] in [0, 1) from what the options leave; its log-probability is the model's."""
    allowed = scores.scatter(1, banned.to(scores.device), float("-inf"))
    probabilities = likeliest(allowed, options).cpu().double()
    cumulative = probabilities.cumsum(1)  # in the order of the ids, which rounding does not change
    # Beyond what is reached, so that an id without probability is never drawn.
    ids = torch.searchsorted(cumulative, uniform.unsqueeze(1) * cumulative[:, -1:], right=True).clamp(max=scores.shape[1] - 1)
    return Extensions(ids, _log_probs(allowed.gather(1, ids.to(scores.device)), norm))


def likeliest(scores: Tensor, options: DecodingConfig) -> Tensor:
    """Probabilities [R, V] at decoding.temperature, 0 but for the k likeliest ids, and those that make up p of them.

    The sum of what is left may be less than 1. Top-p: Holtzman 2020, 3.1.
    """
    scores = scores / options.temperature
    if options.top_k is not None and options.top_k < scores.shape[1]:
        scores = scores.masked_fill(scores < scores.topk(options.top_k).values[:, -1:], float("-inf"))
    probabilities = scores.softmax(1)
    if options.top_p < 1:
        ordered = probabilities.sort(1, descending=True).values
        needed = ordered.cumsum(1) - ordered < options.top_p  # what stands before an id does not make up p
        least = ordered.masked_fill(~needed, 1).amin(1, keepdim=True)
        probabilities = probabilities.masked_fill(probabilities < least, 0)
    return probabilities


def _log_probs(scores: Tensor, norm: Tensor) -> Tensor:
    return scores.cpu().double() - norm.cpu().double()
