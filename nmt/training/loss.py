"""The training objective: a sum over target tokens, and their number. The update divides once, by
the tokens of the whole batch.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.config.schema import TrainingConfig
from nmt.data.batches import Batch
from nmt.device import send
from nmt.model.cross_entropy import Distillation
from nmt.model.lexical_bias import Translations
from nmt.model.seq2seq import Seq2Seq
from nmt.training.word_alignment import FIRST_TENSION

CROSS_ENTROPY_ONLY = TrainingConfig()
MIN_PROBABILITY = 1e-10  # keeps logarithms and quotients finite


@dataclass(frozen=True)
class Loss:
    """Sums over the target tokens of a batch without padding, in nats.

    Attributes:
        objective: the sum to minimize, with label smoothing, distillation, coverage and alignment
            loss.
        nll: the plain negative log-likelihood, for perplexity.
        n_tokens: the number of target tokens.
    """

    objective: Tensor
    nll: Tensor
    n_tokens: int


def batch_loss(
    model: Seq2Seq,
    batch: Batch,
    config: TrainingConfig = CROSS_ENTROPY_ONLY,
    forcing_mask: Tensor | None = None,
) -> Loss:
    """Cross-entropy of the reference. Logits are computed at its tokens only, not at padding.

    Args:
        config: the terms of the objective. `distillation` is alpha of Kim and Rush 2016, 2.2, for
            the soft targets of the batch, which must have some; `coverage_loss` is lambda of See
            2017, eq. 13; `alignment_loss` needs a model with a lexical bias.
        forcing_mask: [B, T], on the CPU, False where the decoder reads its own output; see
            `Seq2Seq.forward`.
    """
    decoded = model(batch.src, batch.src_lengths, batch.tgt_in, forcing_mask)
    vectors, additions = decoded.at(batch.token_positions)
    targets = batch.tgt_out.flatten()[batch.token_positions]
    distillation = None
    if config.distillation:
        assert batch.soft_targets is not None, "refused when the training data is loaded"
        distillation = Distillation(batch.soft_targets, config.distillation)
    objective, nll = model.output.loss(
        vectors, targets, config.label_smoothing, additions, distillation
    )
    if config.coverage_loss:
        objective = objective + config.coverage_loss * coverage_loss(
            decoded.attention, batch.tgt_mask
        )
    if config.alignment_loss and decoded.translations is not None:
        objective = objective + config.alignment_loss * alignment_loss(
            decoded.attention, batch, decoded.translations
        )
    return Loss(objective, nll.detach(), batch.n_tokens)


def coverage_loss(attention: Tensor, tgt_mask: Tensor) -> Tensor:
    """Attention to source words that were attended to before (See 2017, eq. 12).

    sum_t sum_j min(alpha_tj, C_tj), where C_t is the sum of the weights before t.

    Args:
        attention: [B, T, S]. tgt_mask: [B, T], False on padding.
    """
    coverage = attention.cumsum(1) - attention
    return (torch.minimum(attention, coverage).sum(-1) * tgt_mask).sum()


def alignment_loss(attention: Tensor, batch: Batch, translations: Translations) -> Tensor:
    """Guided alignment (Chen 2016): - sum_t sum_j a_tj log alpha_tj.

    a_tj ~ p_lex(y_t | x_j) exp(-lambda |t / T - j / S|) is the posterior of the aligner that
    learned the lexicon (Dyer 2013, 2), for t = 1..T and j = 1..S, with its first value of lambda.
    It is 0 for words that are no translation of a source word, and for padding.

    Args:
        attention: [B, T, S]. translations: of the source words.
    """
    rows, steps, positions = attention.shape
    device = attention.device
    tgt_lengths, src_lengths = batch.tgt_mask.sum(1), send(batch.src_lengths, device)
    is_translation = translations.ids.unsqueeze(1) == batch.tgt_out.unsqueeze(2)  # [B, T, U]
    probabilities = is_translation.to(
        translations.probabilities.dtype
    ) @ translations.probabilities.transpose(1, 2)  # [B, T, S]
    tgt_places = torch.arange(1, steps + 1, device=device) / tgt_lengths.view(rows, 1)
    src_places = torch.arange(1, positions + 1, device=device) / src_lengths.view(rows, 1)
    links = probabilities * torch.exp(
        -FIRST_TENSION * (tgt_places.unsqueeze(2) - src_places.unsqueeze(1)).abs()
    )
    links = links / links.sum(2, keepdim=True).clamp_min(MIN_PROBABILITY)
    return -(links * attention.to(links.dtype).clamp_min(MIN_PROBABILITY).log()).sum()


def draw_forcing_mask(
    batch: Batch, ratio: float, per: str, generator: torch.Generator
) -> Tensor | None:
    """Where the decoder reads the reference: [B, T], on the CPU, True with probability `ratio`,
    drawn per sentence or per token.

    None if it reads the reference everywhere.
    """
    if ratio >= 1:
        return None
    rows, steps = batch.tgt_in.shape
    draws = torch.rand(rows, 1 if per == "sentence" else steps, generator=generator) < ratio
    return draws.expand(rows, steps)
