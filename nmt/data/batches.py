"""Which sentence pairs are trained on together: the parts of an epoch, their batches, the tensors.

A small corpus is shuffled as a whole. A larger one is divided in each epoch into parts of at most
`PART_PAIRS` pairs; the training goes through one part after another, and batches mix the pairs of
one part. So the memory for an order, and the time to make it, do not grow with the corpus.

A part is a random draw from the whole corpus, so it has all topics, sources and sentence lengths in
their shares: a corpus is often sorted by its sources, and a model forgets what it has not seen for
long. It is drawn as short ranges of neighbors, since a disk reads neighbors fast. If a tenth of the
corpus stands in one place, nearly every part of 1024 ranges has 8 to 12 % of it.

The order is a pure function of seed, epoch and part, so a resumed training needs no sampler state.
For several processes, or for gradient accumulation, each batch is split into shards.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.config.schema import BatchConfig
from nmt.data.corpus import Corpus, unpack_soft_targets
from nmt.data.padding import SentenceIds, cut_batches, pad, pad_with_eos
from nmt.text.vocabulary import SOS

PART_PAIRS = 1 << 20  # to plan batches for it takes about 45 MB and 0.5 s
RANGE_PAIRS = 1 << 10  # about 40 kB of each side


@dataclass(frozen=True)
class Part:
    """Pairs of a corpus that are shuffled together.

    Attributes:
        seed: of the training.
        epoch: from 0. index: in the epoch, from 0.
        n_parts: in the epoch.
        ranges: the first pair of each range and the end of the range, ascending.
    """

    seed: int
    epoch: int
    index: int
    n_parts: int
    ranges: list[tuple[int, int]]

    @property
    def key(self) -> tuple[int, ...]:
        """Seeds the random numbers of its batches."""
        return (self.seed, self.epoch, self.index) if self.index else (self.seed, self.epoch)

    def indices(self) -> NDArray[np.int64]:
        """The pairs, as indices into the corpus, ascending."""
        return np.concatenate([np.arange(start, end) for start, end in self.ranges])

    def select(self, corpus: Corpus) -> Corpus:
        """The pairs, still read from disk on access; some of them with hidden rare words."""
        pairs = corpus if self.n_parts == 1 else corpus.selection(self.ranges)
        return pairs.hide_rare_words(self.key)


def divide_epoch(n_pairs: int, *, seed: int, epoch: int) -> Iterator[Part]:
    """The parts of an epoch in their order, a pure function of the arguments. Each pair is in one
    part; their sizes are similar.
    """
    starts = np.arange(0, n_pairs, RANGE_PAIRS)
    n_parts = -(-n_pairs // PART_PAIRS)
    if n_parts > 1:
        # (seed, epoch, i) seeds the batches of part i, so these are other random numbers.
        starts = np.random.default_rng([seed, epoch, n_parts]).permutation(starts)
    for index, part in enumerate(np.array_split(starts, n_parts)):
        ranges = [(start, min(start + RANGE_PAIRS, n_pairs)) for start in np.sort(part).tolist()]
        yield Part(seed, epoch, index, n_parts, ranges)


def divide_epochs(
    n_pairs: int, epochs: Iterable[int], *, seed: int, first_part: int = 0
) -> Iterator[Part]:
    """The parts of epochs one after the other, from the part `first_part` of the first epoch on."""
    parts = chain.from_iterable(divide_epoch(n_pairs, seed=seed, epoch=epoch) for epoch in epochs)
    return islice(parts, first_part, None)


def plan_batches(
    src_lengths: NDArray[np.int32],
    tgt_lengths: NDArray[np.int32],
    config: BatchConfig,
    *,
    key: tuple[int, ...],
    n_shards: int = 1,
    copies: int = 1,
) -> list[NDArray[np.int64]]:
    """The batches of one part of an epoch, as indices into its pairs; each pair is in one batch.

    Pairs are sorted by source length, then by target length, ties at random. The batches are cut
    from this order and shuffled. So nearly all batches have a single source length: the encoder
    needs no padding and uses the fused kernel. Copies of a pair have equal lengths, but a batch of
    copies teaches little; so each copy goes to another pool, and pools are sorted one by one.

    Args:
        src_lengths, tgt_lengths: [N], in tokens.
        key: seeds the random numbers; see `Part.key`.
        copies: of a pair, at most; they stand one after the other.
        n_shards: a batch has this many times the configured size, to be split by `shard`.
    """
    random = np.random.default_rng(key)
    pools = np.arange(len(src_lengths)) % copies
    order = np.lexsort((random.random(len(src_lengths)), tgt_lengths, src_lengths, pools))
    lengths = (tgt_lengths[order] + 1).tolist()
    limit = "max_items" if config.unit == "sentences" else "max_padded"
    batches = [order[part] for part in cut_batches(lengths, **{limit: config.size * n_shards})]
    return [batches[rank] for rank in random.permutation(len(batches))]


def shard(batch: NDArray[np.int64], n_shards: int) -> list[NDArray[np.int64]]:
    """Parts of a batch with similar sentence lengths. Their sizes differ by at most one; some may
    be empty.
    """
    return [batch[first::n_shards] for first in range(n_shards)]


class SoftTargets(NamedTuple):
    """A distribution over the vocabulary at each of N positions: of the K most probable words, and
    the rest spread evenly over all.

    Attributes:
        ids: [N, K], no id twice in a row. probabilities: [N, K].
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
        first = self._slice(slice(middle), slice(n_first))
        return [first, self._slice(slice(middle, None), slice(n_first, None))]

    def _slice(self, rows: slice, tokens: slice) -> "Batch":
        tensors = (self.src, self.src_lengths, self.tgt_in, self.tgt_out, self.tgt_mask)
        src, src_lengths, tgt_in, tgt_out, mask = (tensor[rows] for tensor in tensors)
        positions = _token_positions(mask)
        soft = self.soft_targets and SoftTargets(*(part[tokens] for part in self.soft_targets))
        return Batch(src, src_lengths, tgt_in, tgt_out, mask, positions, len(positions), soft)

    def to(self, device: torch.device) -> "Batch":
        """The batch on another device; `src_lengths` stays on the CPU. Waits for no GPU."""
        if device.type == self.src.device.type:
            return self
        soft = self.soft_targets
        return replace(
            self,
            src=send(self.src, device),
            tgt_in=send(self.tgt_in, device),
            tgt_out=send(self.tgt_out, device),
            tgt_mask=send(self.tgt_mask, device),
            token_positions=send(self.token_positions, device),
            soft_targets=soft and SoftTargets(*(send(tensor, device) for tensor in soft)),
        )


def read_batches(corpus: Corpus, plan: Sequence[NDArray[np.int64]]) -> Iterator[Batch]:
    """Yields the planned batches; each is read when it is needed."""
    for indices in plan:
        batch = build_batch(*corpus.read(indices))
        if corpus.soft_targets is not None:
            soft = [
                unpack_soft_targets(corpus.soft_targets[i], len(corpus.tgt[i]) + 1) for i in indices
            ]
            ids, probabilities = (np.concatenate(parts) for parts in zip(*soft, strict=True))
            batch = replace(
                batch,
                soft_targets=SoftTargets(torch.from_numpy(ids), torch.from_numpy(probabilities)),
            )
        yield batch


def build_batch(src: Sequence[SentenceIds], tgt: Sequence[SentenceIds]) -> Batch:
    """Tensors of sentences given as ids without special tokens."""
    source, src_lengths = map(torch.from_numpy, pad_with_eos(src))
    tgt_in = torch.from_numpy(pad([np.concatenate(([SOS], ids)) for ids in tgt]))
    tgt_out, tgt_lengths = map(torch.from_numpy, pad_with_eos(tgt))
    mask = torch.arange(tgt_out.shape[1]) < tgt_lengths.unsqueeze(1)
    n_tokens = int(tgt_lengths.sum())
    return Batch(source, src_lengths, tgt_in, tgt_out, mask, _token_positions(mask), n_tokens)


def send(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy a tensor from the CPU; to a GPU from pinned memory, so that the CPU need not wait."""
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def _token_positions(mask: Tensor) -> Tensor:
    return mask.flatten().nonzero().squeeze(1)
