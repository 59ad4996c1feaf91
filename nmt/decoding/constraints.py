"""What may not come next: a row of forbidden ids for each hypothesis."""

from collections.abc import Sequence

import torch
from torch import Tensor


def banned_ids(said: Tensor, too_short: Tensor, forbidden: Sequence[int], *, eos: int, ngram: int | None) -> Tensor:
    """The ids that may not follow each of R hypotheses; some stand there several times.

    Args:
        said: [R, t], the ids so far. too_short: [R], True where <eos> may not come yet.
        forbidden: what may never come; at least one id.
        ngram: n, if no n-gram may come twice.

    Returns:
        [R, M].
    """
    never = torch.tensor(forbidden).expand(len(said), -1)
    columns = [never]
    if too_short.any():
        columns.append(torch.where(too_short, eos, forbidden[0]).unsqueeze(1))
    if ngram is not None:
        columns.append(repeating(said, ngram, filler=forbidden[0]))
    return torch.cat(columns, 1)


def repeating(said: Tensor, n: int, filler: int) -> Tensor:
    """The ids that would complete an n-gram that is in `said` [R, t] already: [R, M], `filler` where they are fewer than M."""
    if said.shape[1] < n:
        return said.new_empty(len(said), 0)
    ngrams = said.unfold(1, n, 1)  # [R, t - n + 1, n]
    begun = said[:, said.shape[1] - n + 1 :].unsqueeze(1)  # [R, 1, n - 1]
    again = (ngrams[..., :-1] == begun).all(-1)
    found = ngrams[..., -1].masked_fill(~again, filler)
    most = int(again.sum(1).max()) if len(said) else 0
    order = again.byte().argsort(dim=1, descending=True, stable=True)[:, :most]
    return found.gather(1, order)
