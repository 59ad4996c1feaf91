"""A short list of target words for a batch: scoring those alone costs a fraction (Jean 2015, 3.2; L'Hostis 2016)."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.decoding.lexicon import Lexicon
from nmt.text.vocabulary import SPECIALS, UNK, Vocabulary

FREQUENT = 500  # target words that are always there, the special ones counted


class Shortlist:
    """Chooses the most frequent target words, and the best translations of each source word of the batch.

    Args:
        size: translations of each source word.
    """

    def __init__(self, lexicon: Lexicon, src_vocabulary: Vocabulary, tgt_vocabulary: Vocabulary, size: int) -> None:
        self._always = np.arange(min(max(FREQUENT, len(SPECIALS)), len(tgt_vocabulary)))
        self._translations: dict[int, NDArray[np.int64]] = {}
        for token, entries in lexicon.entries.items():
            (src,) = src_vocabulary.ids([token])
            if src == UNK and token != SPECIALS[UNK]:  # a word that somebody wrote into the file
                continue
            known = [entry.token for entry in entries[:size] if entry.token in tgt_vocabulary]
            self._translations[src] = np.array(tgt_vocabulary.ids(known), np.int64)

    def choose(self, src: Iterable[Sequence[int]], needed: Iterable[int] = ()) -> Tensor:
        """The target ids [v] for sentences given as ids, ascending: special ids stay what they are. `needed` are among them."""
        words = {word for sentence in src for word in sentence}
        found = [self._translations[word] for word in words if word in self._translations]
        return torch.from_numpy(np.unique(np.concatenate([self._always, np.array([*needed], np.int64), *found])))
