"""Batches: which sentences are trained on together, and their tensors.

The order is a pure function of seed, epoch and part of the epoch, and of the step where batches
grow or follow a curriculum, so a resumed training needs no sampler state. For several processes, or
for gradient accumulation, each batch is split into shards.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from math import inf
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.config.schema import BatchConfig, CurriculumConfig
from nmt.data.corpus import Corpus
from nmt.data.soft_targets import unpack
from nmt.text.vocabulary import EOS, PAD, SOS

NO_CURRICULUM = CurriculumConfig()

SentenceIds = NDArray[np.int32] | Sequence[int]


class SoftTargets(NamedTuple):
    """A distribution over the vocabulary at each of N positions: of the K most probable words, and
    the rest spread evenly over all.

    Attributes:
        ids: [N, K]; those of a position differ. probabilities: [N, K].
    """

    ids: Tensor
    probabilities: Tensor


@dataclass(frozen=True)
class Batch:
    """Sentence pairs as tensors, padded.

    Attributes:
        src: [B, S], each row its ids and <eos>.
        src_lengths: [B], <eos> counted; stays on the CPU.
        tgt_in: [B, T], <sos> and the ids.
        tgt_out: [B, T], the ids and <eos>.
        tgt_mask: [B, T], True on real tokens of `tgt_out`.
        token_positions: [n_tokens], indices of the real tokens in the flattened `tgt_out`.
            Precomputed: indexing with a boolean mask would wait for the GPU.
        n_tokens: number of real tokens of `tgt_out`.
        soft_targets: of the tokens at `token_positions`; None if the training data has none, or
            they are not used.
    """

    src: Tensor
    src_lengths: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    tgt_mask: Tensor
    token_positions: Tensor
    n_tokens: int
    soft_targets: SoftTargets | None = None

    def __len__(self) -> int:
        """The number of sentence pairs."""
        return len(self.src)

    def split_in_half(self) -> list["Batch"]:
        """Two halves with the same padding; a batch of one pair is returned unchanged."""
        if len(self) == 1:
            return [self]
        middle = len(self) // 2
        n_first = int(self.tgt_mask[:middle].sum())
        parts = []
        for rows, tokens in (
            (slice(None, middle), slice(None, n_first)),
            (slice(middle, None), slice(n_first, None)),
        ):
            src, src_lengths, tgt_in, tgt_out, tgt_mask = (
                tensor[rows]
                for tensor in (self.src, self.src_lengths, self.tgt_in, self.tgt_out, self.tgt_mask)
            )
            token_positions = _token_positions(tgt_mask)
            soft = (
                None
                if self.soft_targets is None
                else SoftTargets(*(tensor[tokens] for tensor in self.soft_targets))
            )
            parts.append(
                Batch(
                    src,
                    src_lengths,
                    tgt_in,
                    tgt_out,
                    tgt_mask,
                    token_positions,
                    len(token_positions),
                    soft,
                )
            )
        return parts

    def repeat(self) -> "Batch":
        """Each pair twice: row i again in row B + i, and its tokens again in the second half of
        `token_positions`.
        """
        src, src_lengths, tgt_in, tgt_out, tgt_mask = (
            torch.cat([tensor, tensor])
            for tensor in (self.src, self.src_lengths, self.tgt_in, self.tgt_out, self.tgt_mask)
        )
        token_positions = torch.cat(
            [self.token_positions, self.token_positions + self.tgt_out.numel()]
        )
        soft = (
            None
            if self.soft_targets is None
            else SoftTargets(*(torch.cat([tensor, tensor]) for tensor in self.soft_targets))
        )
        return Batch(
            src, src_lengths, tgt_in, tgt_out, tgt_mask, token_positions, 2 * self.n_tokens, soft
        )

    def to(self, device: torch.device) -> "Batch":
        """The batch on another device, without waiting for a GPU; `src_lengths` stays on the
        CPU.
        """
        if device.type == self.src.device.type:
            return self
        src, tgt_in, tgt_out, tgt_mask, token_positions, *soft = (
            (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)
            for tensor in (
                self.src,
                self.tgt_in,
                self.tgt_out,
                self.tgt_mask,
                self.token_positions,
                *(self.soft_targets or ()),
            )
        )
        tensors = {
            "src": src,
            "tgt_in": tgt_in,
            "tgt_out": tgt_out,
            "tgt_mask": tgt_mask,
            "token_positions": token_positions,
        }
        return replace(self, **tensors, soft_targets=SoftTargets(*soft) if soft else None)


def plan_batches(
    src_lengths: NDArray[np.int32],
    tgt_lengths: NDArray[np.int32],
    config: BatchConfig,
    *,
    key: tuple[int, ...],
    n_shards: int = 1,
    curriculum: CurriculumConfig = NO_CURRICULUM,
    first_step: int = 0,
) -> list[NDArray[np.int64]]:
    """The batches of one part of an epoch, as indices into its pairs; without a curriculum, each
    pair is in exactly one batch.

    Pairs are sorted by source length, then by target length, ties at random. The batches are cut
    from this order and shuffled. So nearly all batches have a single source length: the encoder
    needs no padding and uses the fused kernel.

    Args:
        src_lengths, tgt_lengths: [N], in tokens.
        key: seeds the random numbers: (seed, epoch), and the index of the part if it is not the
            first; see `nmt.data.epochs`.
        n_shards: a batch has this many times the configured size, to be split by `shard`.
        curriculum: until it ends, the batches are drawn from those with the shortest sentences;
            some occur more than once.
        first_step: updates before this part; only for the curriculum and for a size that grows.
    """
    random = np.random.default_rng(key)
    order = np.lexsort((random.random(len(src_lengths)), tgt_lengths, src_lengths))
    lengths, sizes = (tgt_lengths[order] + 1).tolist(), np.array([config.fixed_size * n_shards])
    if (
        config.final_size is not None
    ):  # the sizes of all updates of the part, given to batches of any length
        n_units = len(order) if config.unit == "sentences" else sum(lengths)
        sizes = random.permutation(n_shards * update_sizes(n_units / n_shards, config, first_step))
    limits = sizes.tolist()
    slices = (
        cut_batches(lengths, max_items=limits)
        if config.unit == "sentences"
        else cut_batches(lengths, max_padded=limits)
    )
    batches = [order[part] for part in slices]
    ranks = random.permutation(len(batches))
    if config.final_size is not None:  # back into the order of the sizes
        sizes_in_order = np.resize(sizes, len(batches))[ranks]
        ranks = ranks[
            np.argsort(
                sizes_in_order if config.final_size > config.fixed_size else -sizes_in_order,
                kind="stable",
            )
        ]
    if curriculum.steps:
        ranks = (ranks * competence(first_step + np.arange(len(batches)), curriculum)).astype(
            np.int64
        )
    return [batches[rank] for rank in ranks]


def batch_sizes(steps: NDArray[np.int64], config: BatchConfig) -> NDArray[np.int64]:
    """The size of a batch after `steps` updates, in `unit`s."""
    growth = 0 if config.final_size is None else config.final_size - config.fixed_size
    sizes: NDArray[np.int64] = config.fixed_size + np.rint(
        growth * np.minimum(1.0, steps / config.growth_steps)
    ).astype(np.int64)
    return sizes


def update_sizes(n_units: float, config: BatchConfig, first_step: int) -> NDArray[np.int64]:
    """The sizes of as many updates as it takes to process `n_units`. With padding of `tokens` it
    takes a few more.
    """
    n_updates = int(n_units / min(config.fixed_size, config.final_size or config.fixed_size)) + 1
    sizes = batch_sizes(first_step + np.arange(n_updates), config)
    return sizes[: int(np.searchsorted(np.cumsum(sizes), n_units)) + 1]


def competence(step: NDArray[np.int64], config: CurriculumConfig) -> NDArray[np.float64]:
    """c(t) = min(1, sqrt(t (1 - c0^2) / T + c0^2)): the part of the data to draw from after t
    updates (Platanios 2019).
    """
    return np.minimum(1.0, np.sqrt(step * (1 - config.start**2) / config.steps + config.start**2))


def shard(batch: NDArray[np.int64], n_shards: int) -> list[NDArray[np.int64]]:
    """Parts of a batch with similar sentence lengths. Their sizes differ by at most one; some may
    be empty.
    """
    return [batch[first::n_shards] for first in range(n_shards)]


def cut_batches(
    lengths: Sequence[int],
    *,
    max_items: float | Sequence[float] = inf,
    max_padded: float | Sequence[float] = inf,
) -> list[slice]:
    """Cut a sequence of items into batches of neighbors, as slices; sort the items by length first
    to keep padding small.

    Args:
        lengths: the cost of each item, for example its tokens.
        max_items: limit on the items of a batch, or limits that the batches take in turn.
        max_padded: the same for items * longest, the size with padding. An item that is longer is a
            batch of its own.
    """
    items_limits, padded_limits = (
        cycle([limit] if isinstance(limit, int | float) else limit)
        for limit in (max_items, max_padded)
    )
    slices, start, longest, items_limit, padded_limit = (
        list[slice](),
        0,
        0,
        next(items_limits),
        next(padded_limits),
    )
    for index, length in enumerate(lengths):
        longest = max(longest, length)
        n_items = index + 1 - start
        if n_items > 1 and (n_items > items_limit or n_items * longest > padded_limit):
            slices.append(slice(start, index))
            start, longest, items_limit, padded_limit = (
                index,
                length,
                next(items_limits),
                next(padded_limits),
            )
    return [*slices, slice(start, len(lengths))] if lengths else []


def read_batches(corpus: Corpus, plan: Sequence[NDArray[np.int64]]) -> Iterator[Batch]:
    """Yields the planned batches; each is read when it is needed."""
    for indices in plan:
        batch = build_batch([corpus.src[i] for i in indices], [corpus.tgt[i] for i in indices])
        if corpus.soft_targets is not None:
            soft = (unpack(corpus.soft_targets[i], len(corpus.tgt[i]) + 1) for i in indices)
            ids, probabilities = (
                torch.from_numpy(np.concatenate(parts)) for parts in zip(*soft, strict=True)
            )
            batch = replace(batch, soft_targets=SoftTargets(ids, probabilities))
        yield batch


def build_batch(src: Sequence[SentenceIds], tgt: Sequence[SentenceIds]) -> Batch:
    """Tensors of sentences given as ids without special tokens."""
    source, src_lengths = pad_sources(src)
    tgt_lengths = torch.tensor([len(ids) + 1 for ids in tgt])
    tgt_in = _pad([np.concatenate(([SOS], ids)) for ids in tgt])
    tgt_out = _pad([np.concatenate((ids, [EOS])) for ids in tgt])
    mask = torch.arange(tgt_out.shape[1]) < tgt_lengths.unsqueeze(1)
    return Batch(
        source, src_lengths, tgt_in, tgt_out, mask, _token_positions(mask), int(tgt_lengths.sum())
    )


def pad_sources(src: Sequence[SentenceIds]) -> tuple[Tensor, Tensor]:
    """Source ids with <eos> appended and padded, [B, S], and their lengths [B]."""
    return _pad([np.concatenate((ids, [EOS])) for ids in src]), torch.tensor(
        [len(ids) + 1 for ids in src]
    )


def _token_positions(mask: Tensor) -> Tensor:
    return mask.flatten().nonzero().squeeze(1)


def _pad(rows: Sequence[NDArray[np.generic]]) -> Tensor:
    padded = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(padded)
