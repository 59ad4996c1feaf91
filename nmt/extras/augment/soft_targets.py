"""Soft targets of training data: the probabilities of words that trained models give."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nmt.bars import progress_bar
from nmt.config.schema import BatchConfig
from nmt.data.batches import Batch, plan_batches, read_batches
from nmt.data.corpus import SOFT_TARGETS, Block, Corpus, SequencesWriter, pack_soft_targets
from nmt.model.seq2seq import Seq2Seq

BATCH_CONFIG = BatchConfig(unit="tokens", size=1024)
N_WORDS = 16  # of each distribution, the most probable
BLOCK_PAIRS = 4096  # in memory at once


def write_soft_targets(folder: Path, models: Sequence[Seq2Seq], *, show_bar: bool) -> None:
    """Write the soft targets of all training pairs in the folder."""
    train = Corpus.load(folder, "train")
    with (
        progress_bar(
            total=len(train), unit=" pairs", desc="soft targets", disable=not show_bar
        ) as bar,
        SequencesWriter(folder / SOFT_TARGETS, len(train)) as writer,
    ):
        for ids, lengths in soft_targets(models, train):
            writer.write(ids, lengths)
            bar.update(len(lengths))


@torch.inference_mode()
def soft_targets(models: Sequence[Seq2Seq], corpus: Corpus) -> Iterator[Block]:
    """The packed distributions of each pair's target tokens, in order, block by block.

    Args:
        models: in evaluation mode, on one device; each distribution is the mean of theirs.
    """
    for start in range(0, len(corpus), BLOCK_PAIRS):
        ranges = [(start, min(start + BLOCK_PAIRS, len(corpus)))]
        block = corpus.selection(ranges)
        plan = plan_batches(block.src.lengths, block.tgt.lengths, BATCH_CONFIG, key=(0, 0))
        packed = [np.zeros(0, np.int32)] * len(block)
        for pairs, batch in zip(plan, read_batches(block, plan), strict=True):
            ids, probabilities = (
                best.cpu().split(batch.tgt_mask.sum(1).tolist())
                for best in _most_probable(models, batch)
            )
            for pair, *sentence in zip(pairs.tolist(), ids, probabilities, strict=True):
                packed[pair] = pack_soft_targets(*(tensor.numpy() for tensor in sentence))
        yield np.concatenate(packed), np.array([len(sentence) for sentence in packed], np.int32)


def _most_probable(models: Sequence[Seq2Seq], batch: Batch) -> tuple[Tensor, Tensor]:
    """Ids and probabilities [n_tokens, K] of the best words at the tokens of a batch."""
    batch = batch.to(models[0].device)
    probabilities = []  # [n_tokens, V] of each model
    for model in models:
        decoded = model(batch.src, batch.src_lengths, batch.tgt_in)
        vectors = model.vectors_at(batch.token_positions, decoded)
        probabilities.append(model.output.log_probs(vectors).exp())
    mean = torch.stack(probabilities).mean(0)
    best = mean.topk(min(N_WORDS, mean.shape[1]), 1)
    return best.indices, best.values
