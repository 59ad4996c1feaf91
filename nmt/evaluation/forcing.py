"""What a model thinks of the references: the loss of each of their tokens, and where it looked meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.decoding.translator import Translator
from nmt.model.seq2seq import Seq2Seq
from nmt.text.batching import Batch, build_batch

ROWS = 1024  # positions whose distribution over the vocabulary is in memory at once

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Forced:
    """A reference as the model was led through it. T counts <eos>, and so does S.

    Attributes:
        losses: [T], nats of each token, the tokens before it being those of the reference (teacher forcing).
        free: [T], the same where the tokens before it are the model's own; None if it was not asked for.
        attention: [T, S], teacher-forced.
        src_tokens, tokens: without <eos>.
    """

    losses: Floats
    free: Floats | None
    attention: Floats
    src_tokens: tuple[str, ...]
    tokens: tuple[str, ...]


@torch.inference_mode()
def force(translator: Translator, sources: Sequence[str], references: Sequence[str], *, free: bool = False) -> list[Forced]:
    """Lead the model through the reference of each source, in the same order.

    Args:
        free: also let it run free: at each position it is fed the token it thought likeliest before, as in Bengio 2015.
    """
    model, size, longest = translator.model, translator.options.batch, translator.options.max_source_tokens
    assert isinstance(model, Seq2Seq), "an ensemble has no attention of its own"
    src = [tokens[:longest] for tokens in translator.src_tokenizer.split_all(sources)]
    tgt = translator.tgt_tokenizer.split_all(references)
    order = sorted(range(len(src)), key=lambda i: (len(src[i]), len(tgt[i])))
    found: dict[int, Forced] = {}
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        batch = build_batch(
            [translator.src_vocabulary.ids(src[i]) for i in chosen], [translator.tgt_vocabulary.ids(tgt[i]) for i in chosen]
        ).to(model.device)
        decoded = model(batch.src, batch.src_lengths, batch.tgt_in)
        losses = _split(_losses(model, decoded.vectors, batch), batch)
        freely = _split(_losses(model, _run_free(model, batch), batch), batch) if free else [None] * len(chosen)
        attention = decoded.attention.float().cpu().numpy()
        for row, i in enumerate(chosen):
            looked = attention[row, : len(tgt[i]) + 1, : len(src[i]) + 1]
            found[i] = Forced(losses[row], freely[row], looked, tuple(src[i]), tuple(tgt[i]))
    return [found[i] for i in range(len(src))]


def mean_loss(forced: Sequence[Forced]) -> float:
    """Nats per token, teacher-forced."""
    return float(sum(one.losses.sum(dtype=np.float64) for one in forced) / sum(len(one.losses) for one in forced))


def _run_free(model: Seq2Seq, batch: Batch) -> Tensor:
    gold = torch.zeros(batch.tgt_in.shape, dtype=torch.bool)
    vectors: Tensor = model(batch.src, batch.src_lengths, batch.tgt_in, gold).vectors
    return vectors


def _losses(model: Seq2Seq, vectors: Tensor, batch: Batch) -> Tensor:
    """[B, T, R] -> the loss of each real token of the batch, one sentence after the other."""
    wanted, gold = vectors[batch.tgt_mask], batch.tgt_out[batch.tgt_mask]
    parts = zip(wanted.split(ROWS), gold.split(ROWS), strict=True)
    return -torch.cat([model.output.log_probs(some).gather(1, ids.unsqueeze(1)).squeeze(1) for some, ids in parts]).float()


def _split(losses: Tensor, batch: Batch) -> list[Floats]:
    return np.split(losses.cpu().numpy(), np.cumsum(batch.tgt_mask.sum(1).cpu().numpy())[:-1])
