"""Minimum risk training (Shen 2016; Edunov 2018): the model learns from its own translations and
from their errors.

For each source x, the model itself finds candidates y, without dropout; the reference is not added.
The objective is

    (1 - w) * cross-entropy + w * sum_x T_x sum_y Q(y | x) Delta(y)

with w = training.risk.weight, the number of tokens T_x of the reference, and Delta(y) = 1 -
sentence BLEU of y in tokens. Q, the distribution of the model over the candidates, is computed with
dropout, as is the cross-entropy.
"""

import numpy as np
import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig, RiskConfig
from nmt.data.batches import Batch, build_batch
from nmt.decoding.search import search
from nmt.extras.ranking.pairwise import pairwise_bleu_of_ids
from nmt.model.layers import send
from nmt.model.seq2seq import Seq2Seq

Ids = list[int]


def batch_risk(model: Seq2Seq, batch: Batch, config: RiskConfig, seed: int) -> Tensor:
    """The risk of the sentences of a batch, each counted once per token of its reference, as the
    cross-entropy counts it.

    Args:
        model: in training mode; it searches without dropout.
        seed: of the sampled candidates.
    """
    candidates = find_candidates(model, batch, config, seed)
    references = [
        row[: length - 1]
        for row, length in zip(batch.tgt_out.tolist(), batch.tgt_mask.sum(1).tolist(), strict=True)
    ]
    costs = [
        1 - pairwise_bleu_of_ids([reference, *of_sentence])[1:, 0] / 100
        for reference, of_sentence in zip(references, candidates, strict=True)
    ]
    risk = expected_costs(sequence_log_probs(model, batch, candidates), costs, config.sharpness)
    return (risk * batch.tgt_mask.sum(1)).sum()


def find_candidates(model: Seq2Seq, batch: Batch, config: RiskConfig, seed: int) -> list[list[Ids]]:
    """Different translations of each sentence by the model as it is now, without <eos>; at most
    `config.size`.
    """
    sources = [
        row[: length - 1]
        for row, length in zip(batch.src.tolist(), batch.src_lengths.tolist(), strict=True)
    ]
    options = DecodingConfig(method=config.candidates, beam=config.size, seed=seed)
    model.eval()
    try:
        hypotheses = search(model, sources, options, n_best=config.size)
    finally:
        # also where memory does not hold the search: then the training continues with smaller
        # micro-batches
        model.train()
    return [
        [list(ids) for ids in dict.fromkeys(tuple(hypothesis.ids) for hypothesis in n_best)]
        for n_best in hypotheses
    ]


def sequence_log_probs(model: Seq2Seq, batch: Batch, candidates: list[list[Ids]]) -> Tensor:
    """log P(y | x) for each candidate y of each source x, and <eos>: [B, C], -inf where a sentence
    has fewer than C.
    """
    counts = torch.tensor([len(of_sentence) for of_sentence in candidates])
    sentences = torch.arange(len(candidates)).repeat_interleave(counts)
    targets = build_batch(
        [[]] * len(sentences), [ids for of_sentence in candidates for ids in of_sentence]
    )
    rows = send(
        torch.arange(len(sentences)).repeat_interleave(targets.tgt_mask.sum(1)), batch.src.device
    )
    targets = targets.to(batch.src.device)
    decoded = model(
        batch.src, batch.src_lengths, targets.tgt_in, sentences=send(sentences, batch.src.device)
    )
    vectors = model.vectors_at(targets.token_positions, decoded)
    ids = targets.tgt_out.flatten()[targets.token_positions]
    log_probs = model.output.token_log_probs(vectors, ids)
    sums = log_probs.new_zeros(len(sentences)).index_add(0, rows, log_probs)
    is_real = torch.arange(int(counts.max())) < counts.unsqueeze(1)
    padded = sums.new_full(is_real.shape, float("-inf"))
    return padded.masked_scatter(send(is_real, batch.src.device), sums)


def expected_costs(log_probs: Tensor, costs: list[np.ndarray], sharpness: float) -> Tensor:
    """sum_y Q(y | x) Delta(y) of each sentence, with Q(y | x) = P(y | x)^alpha / sum_y' P(y' |
    x)^alpha (Shen 2016, eq. 12, 13).

    Args:
        log_probs: [B, C], -inf where there is no candidate.
        costs: Delta of each candidate, 0 (equal to the reference) to 1. sharpness: alpha.

    Returns:
        [B].
    """
    padded = np.zeros(log_probs.shape)
    for row, values in zip(padded, costs, strict=True):
        row[: len(values)] = values
    return (
        (sharpness * log_probs).softmax(1)
        * send(torch.from_numpy(padded).to(log_probs.dtype), log_probs.device)
    ).sum(1)
