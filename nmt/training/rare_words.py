"""Trains `<unk>` where each word of the training data is in the vocabulary: words that occur once
are shown as `<unk>` in some pairs.

Without that, the vectors of `<unk>` keep their random start, and a new name is translated by
another one. Dyer et al. 2015 (arXiv 1505.08075, 3.2) replace words that occur once in this way.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.config.parts import TOKENIZERS
from nmt.config.schema import Config
from nmt.data.batches import Batch
from nmt.data.corpus import Corpus, Sequences
from nmt.text.vocabulary import SPECIALS, UNK

HIDDEN_SHARE = 0.1  # of the pairs in an epoch; with 0.5 the translations are slightly worse
KEY = 0x756E6B  # tells the draws from other random numbers of the same seed and epoch
NOTE = (
    "no word occurs once in the training data, so <unk> is not trained: a new name will be "
    "translated by another word; add data, or raise vocabulary.min_frequency"
)


@dataclass(frozen=True)
class RareWords:
    """The words that are shown as `<unk>`, and `<unk>` itself if it is in the data: masks [V]."""

    src: Tensor
    tgt: Tensor

    @classmethod
    def find(cls, corpus: Corpus, config: Config) -> "RareWords | None":
        """None if `<unk>` needs no help: tokens are parts of words, or both sides have it. Soft
        targets name the words themselves, so nothing is hidden from them.
        """
        if not TOKENIZERS[config.tokenizer.kind].trait("whole") or corpus.soft_targets is not None:
            return None
        src, tgt = _rare(corpus.src), _rare(corpus.tgt)
        return None if src[UNK] and tgt[UNK] else cls(src, tgt)

    @property
    def notes(self) -> list[str]:
        """For the user: whether `<unk>` cannot be trained."""
        return [] if self.src.any() and self.tgt.any() else [NOTE]

    def hide(self, batch: Batch, is_drawn: NDArray[np.bool_]) -> Batch:
        """The batch with `<unk>` for the rare words of the drawn pairs, on both sides: a name that
        both have becomes `<unk>` in the source and the target. is_drawn: [B].
        """
        rows = torch.from_numpy(is_drawn).unsqueeze(1)
        return replace(
            batch,
            src=batch.src.masked_fill(self.src[batch.src] & rows, UNK),
            tgt_in=batch.tgt_in.masked_fill(self.tgt[batch.tgt_in] & rows, UNK),
            tgt_out=batch.tgt_out.masked_fill(self.tgt[batch.tgt_out] & rows, UNK),
        )


def draw(n_pairs: int, key: tuple[int, ...]) -> NDArray[np.bool_]:
    """The pairs of a part of an epoch whose rare words are hidden. key: see `Part.key`."""
    return np.random.default_rng((*key, KEY)).random(n_pairs) < HIDDEN_SHARE


def _rare(sentences: Sequences) -> Tensor:
    counts = np.zeros(len(SPECIALS), np.int64)
    for ids, _ in sentences.blocks():
        block = np.bincount(ids, minlength=len(counts))
        block[: len(counts)] += counts
        counts = block
    is_rare = counts == 1
    is_rare[UNK] = counts[UNK] > 0
    return torch.from_numpy(is_rare)
