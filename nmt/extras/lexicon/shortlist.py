"""A shortlist of target words for a batch: logits of these alone cost a fraction (Jean 2015, 3.2;
L'Hostis 2016).
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.extras.lexicon.lexicon import Lexicon
from nmt.text.vocabulary import SPECIALS, UNK, Vocabulary

N_FREQUENT = 500  # target words on every shortlist, special tokens counted


class Shortlist:
    """Chooses the most frequent target words and the best translations of each source word of the
    batch.

    Args:
        size: translations per source word.
    """

    def __init__(
        self, lexicon: Lexicon, src_vocabulary: Vocabulary, tgt_vocabulary: Vocabulary, size: int
    ) -> None:
        self._frequent = np.arange(min(max(N_FREQUENT, len(SPECIALS)), len(tgt_vocabulary)))
        self._translations: dict[int, NDArray[np.int64]] = {}
        for token, entries in lexicon.entries.items():
            (src_id,) = src_vocabulary.ids([token])
            if src_id == UNK and token != SPECIALS[UNK]:  # a user may have added words to the file
                continue
            in_vocabulary = [
                entry.token for entry in entries[:size] if entry.token in tgt_vocabulary
            ]
            self._translations[src_id] = np.array(tgt_vocabulary.ids(in_vocabulary), np.int64)

    def choose(self, sources: Iterable[Sequence[int]], required: Iterable[int] = ()) -> Tensor:
        """The target ids [v] for a batch of source ids, ascending, with all `required` ids. Special
        tokens keep their ids.
        """
        src_ids = {index for source in sources for index in source}
        translations = [
            self._translations[index] for index in src_ids if index in self._translations
        ]
        return torch.from_numpy(
            np.unique(
                np.concatenate([self._frequent, np.array([*required], np.int64), *translations])
            )
        )
