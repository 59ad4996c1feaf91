"""The term of the loss."""

import torch
from torch import Tensor

from nmt.data.batches import Batch, send
from nmt.data.word_alignment import FIRST_TENSION
from nmt.model.seq2seq import Decoded

MIN_PROBABILITY = 1e-10  # keeps logarithms and quotients finite


def alignment_loss(decoded: Decoded, batch: Batch) -> Tensor:
    """Guided alignment (Chen 2016): - sum_t sum_j a_tj log alpha_tj.

    a_tj ~ p_lex(y_t | x_j) exp(-lambda |t / T - j / S|) is the posterior of the aligner that
    learned the lexicon (Dyer 2013, 2), for t = 1..T and j = 1..S, with its first value of lambda.
    It is 0 for words that are no translation of a source word, and for padding.
    """
    attention, translations = decoded.attention, decoded.translations  # [B, T, S]
    assert translations is not None, "refused when the configuration is read"
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
