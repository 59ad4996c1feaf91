"""The training objective: a sum over target tokens, and their number. The update divides once, by the tokens of the whole batch."""

from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.data.batching import Batch
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import SPECIALS


@dataclass(frozen=True)
class Loss:
    """Sums over the target tokens of a batch without padding, in nats.

    Attributes:
        objective: the sum to minimize, with label smoothing, coverage loss and R-Drop.
        nll: the plain negative log-likelihood, for perplexity.
        n_tokens: the number of target tokens.
    """

    objective: Tensor
    nll: Tensor
    n_tokens: int


def batch_loss(
    model: Seq2Seq,
    batch: Batch,
    *,
    label_smoothing: float = 0.0,
    coverage_weight: float = 0.0,
    r_drop: float = 0.0,
    src_replacement: float = 0.0,
    tgt_replacement: float = 0.0,
    forcing_mask: Tensor | None = None,
) -> Loss:
    """Cross-entropy of the reference. Logits are computed at its tokens only, not at padding.

    With R-Drop, the model reads the batch twice, with different dropout, and learns to give the same distribution both times. For
    the distributions P and Q of a token y, the objective is half of eq. 4 of Liang 2021, so that its scale does not change:
    (-log P(y) - log Q(y)) / 2 + alpha / 4 (KL(P || Q) + KL(Q || P)). `nll` is the mean of both passes.

    Args:
        coverage_weight: lambda of See 2017, eq. 13.
        r_drop: alpha of R-Drop; 0 is a single pass.
        src_replacement, tgt_replacement: the rates of `replace_words` for the words that encoder and decoder read. The words to
            predict stay. In R-Drop, each pass has its own replacements.
        forcing_mask: [B, T], on the CPU, False where the decoder reads its own output; see `Seq2Seq.forward`.
    """
    n_tokens, n_passes = batch.n_tokens, 1
    if r_drop:
        batch, n_passes = batch.repeat(), 2
        forcing_mask = None if forcing_mask is None else torch.cat([forcing_mask, forcing_mask])
    src = replace_words(batch.src, src_replacement, model.src_embedding.num_embeddings)
    tgt_in = replace_words(batch.tgt_in, tgt_replacement, model.tgt_embedding.num_embeddings)
    decoded = model(src, batch.src_lengths, tgt_in, forcing_mask)
    vectors, additions = decoded.at(batch.token_positions)
    targets = batch.tgt_out.flatten()[batch.token_positions]
    objective, nll = model.output.loss(vectors, targets, label_smoothing, r_drop / 2, additions)
    if coverage_weight:
        objective = objective + coverage_weight * coverage_loss(decoded.attention, batch.tgt_mask)
    return Loss(objective / n_passes, nll.detach() / n_passes, n_tokens)


def replace_words(ids: Tensor, rate: float, vocabulary_size: int) -> Tensor:
    """Each word of `ids`, with probability `rate`, replaced by a random word of the vocabulary; special tokens stay.

    After SwitchOut (Wang 2018), which draws the number of replaced words of a sentence first.
    """
    if not rate:
        return ids
    is_replaced = (torch.rand(ids.shape, device=ids.device) < rate) & (ids >= len(SPECIALS))
    return torch.where(is_replaced, torch.randint_like(ids, len(SPECIALS), vocabulary_size), ids)


def coverage_loss(attention: Tensor, tgt_mask: Tensor) -> Tensor:
    """Attention to source words that were attended to before (See 2017, eq. 12).

    sum_t sum_j min(alpha_tj, C_tj), where C_t is the sum of the weights before t.

    Args:
        attention: [B, T, S]. tgt_mask: [B, T], False on padding.
    """
    coverage = attention.cumsum(1) - attention
    return (torch.minimum(attention, coverage).sum(-1) * tgt_mask).sum()


def draw_forcing_mask(batch: Batch, ratio: float, per: str, generator: torch.Generator) -> Tensor | None:
    """Where the decoder reads the reference: [B, T], on the CPU, True with probability `ratio`, drawn per sentence or per token.

    None if it reads the reference everywhere.
    """
    if ratio >= 1:
        return None
    rows, steps = batch.tgt_in.shape
    draws = torch.rand(rows, 1 if per == "sentence" else steps, generator=generator) < ratio
    return draws.expand(rows, steps)
