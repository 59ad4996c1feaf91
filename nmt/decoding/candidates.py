"""By which tokens a hypothesis is extended: the likeliest, or one that is drawn. What comes in is left as it is.

Scores are logits: log-probabilities up to a number for each row. R rows, V ids; what goes out lies on the CPU, in double precision.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.model.topk import to_log_probs


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
        alone[:, :1] = to_log_probs(scores.gather(1, ids.clamp(min=0).unsqueeze(1).to(scores.device)), norm)
        return Extensions(torch.where(forced, ids.unsqueeze(1), self.ids), torch.where(forced, alone, self.log_probs))

    def spread(self, alive: Tensor) -> "Extensions":
        """[b, K, k], the rows being those of the hypotheses that are `alive` [b, K]; the others have nothing."""
        ids = self.ids.new_zeros(*alive.shape, self.ids.shape[1])
        log_probs = self.log_probs.new_full(ids.shape, float("-inf"))
        ids[alive], log_probs[alive] = self.ids, self.log_probs
        return Extensions(ids, log_probs)


def allowed(ids: Tensor, log_probs: Tensor, banned: Tensor) -> Extensions:
    """The words [R, k] that are not among `banned` [R, M]; the others have -inf."""
    is_banned = (ids.unsqueeze(2) == banned.unsqueeze(1)).any(2)
    return Extensions(ids, log_probs.masked_fill(is_banned, float("-inf")))


def draw(scores: Tensor, norm: Tensor, banned: Tensor, uniform: Tensor, options: DecodingConfig) -> Extensions:
    """One id a row, drawn by `uniform` [R] in [0, 1) from what the options leave; its log-probability is the model's."""
    possible = scores.scatter(1, banned.to(scores.device), float("-inf"))
    probabilities = sampling_probabilities(possible, options).cpu().double()
    cumulative = probabilities.cumsum(1)  # in the order of the ids, which rounding does not change
    # Beyond what is reached, so that an id without probability is never drawn.
    ids = torch.searchsorted(cumulative, uniform.unsqueeze(1) * cumulative[:, -1:], right=True).clamp(max=scores.shape[1] - 1)
    return Extensions(ids, to_log_probs(possible.gather(1, ids.to(scores.device)), norm))


def sampling_probabilities(scores: Tensor, options: DecodingConfig) -> Tensor:
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
