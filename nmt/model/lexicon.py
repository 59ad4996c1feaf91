"""The lexicon of a lexical bias as arrays, for search without torch.

It gives what `LexicalBias` of nmt/model/lexical_bias.py gives, which has the formulas.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from nmt.data.padding import pad_with_eos

LEXICON = "lexicon.safetensors"  # the file beside the graphs of a model
BASE = 0x5BD1E9955BD1E995  # odd, so that different powers differ
MAX_CHARACTERS = 64  # of a word; longer ones have keys of no use
LAST_KEY = np.iinfo(np.int64).max  # fills the places without a word


@dataclass(frozen=True)
class Lexicon:
    """k translations of each source token, V_s, and of W whole words.

    Attributes:
        ids, probabilities: [V_s + W, k], of the translations, first of the tokens, then of the
            words. 0 pads, with probability 0.
        word_keys: [W], ascending; `LAST_KEY` fills the places without a word.
        keys, lengths, begins, ends: [V_s], as in `WordKeys`; empty if there are no words.
    """

    ids: NDArray[np.integer[Any]]
    probabilities: NDArray[np.float32]
    word_keys: NDArray[np.int64]
    keys: NDArray[np.int64]
    lengths: NDArray[np.int64]
    begins: NDArray[np.bool_]
    ends: NDArray[np.bool_]

    @classmethod
    def of_bytes(cls, content: bytes) -> "Lexicon":
        """The lexicon that `to_bytes` wrote.

        Raises:
            ValueError: it is damaged.
        """
        try:
            lexicon = cls(**load(content))
        except (SafetensorError, TypeError) as error:  # the latter for other names
            raise ValueError(str(error)) from None
        if not lexicon.is_valid():
            raise ValueError("its numbers are out of their range")
        return lexicon

    def to_bytes(self) -> bytes:
        """The content of a file of safetensors."""
        return save({each.name: getattr(self, each.name) for each in fields(self)})

    def is_valid(self) -> bool:
        """Whether all have their types and sizes, and numbers of characters their range. Those of a
        damaged file may not.
        """
        arrays = [getattr(self, each.name) for each in fields(self)]
        of_tokens, n_words = arrays[3:], len(self.word_keys)
        return (
            "".join(f"{each.dtype.kind}{each.ndim}" for each in arrays) == "i2f2i1i1i1b1b1"
            and self.ids.shape == self.probabilities.shape
            and {*map(len, of_tokens)} == {len(self.ids) - n_words if n_words else 0}
            and bool(((self.lengths >= 0) & (self.lengths <= MAX_CHARACTERS)).all())
        )

    def rows(self, src: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of the lexicon for each token of sentences [B, S]."""
        if not len(self.word_keys):
            return src
        keys = self._keys_of_words(src)
        places = np.searchsorted(self.word_keys, keys).clip(max=len(self.word_keys) - 1)
        return np.where(self.word_keys[places] == keys, len(self.keys) + places, src)

    def look_up(
        self, sources: Sequence[Sequence[int]]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The translations of B sentences, as ids without special tokens.

        Returns:
            the ids [B, U] of their translations, which differ but for padding, and the
            probability [B, S, U] of each translation given each source token; <eos> counts in S.
        """
        src, _ = pad_with_eos(sources)
        rows = self.rows(src)
        ids = self.ids[rows].reshape(len(src), -1)  # [B, S * k], each of them several times
        order = np.argsort(ids, axis=1, kind="stable")
        in_order = np.take_along_axis(ids, order, 1)
        column = np.zeros(ids.shape, np.int64)
        np.cumsum(in_order[:, 1:] != in_order[:, :-1], axis=1, out=column[:, 1:])
        unique = np.zeros((len(src), int(column.max()) + 1), np.int64)
        np.put_along_axis(unique, column, in_order, 1)
        columns = np.empty_like(column)
        np.put_along_axis(columns, order, column, 1)
        probabilities = np.zeros((*src.shape, unique.shape[1]), np.float32)
        # The ids of a row differ, but for padding.
        np.put_along_axis(
            probabilities, columns.reshape(*src.shape, -1), self.probabilities[rows], 2
        )
        return unique, probabilities

    def _keys_of_words(self, src: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each token [B, S] the key of the word to which it belongs; as `WordKeys` does."""
        begins = self.begins[src]
        begins[:, :1] = True
        begins[:, 1:] |= self.ends[src[:, :-1]]
        # The place of the first token of its word, for each token.
        firsts = np.maximum.accumulate(np.where(begins, np.arange(src.shape[1]), 0), axis=1)
        lengths = self.lengths[src]
        starts = np.cumsum(lengths, axis=1) - lengths  # in characters
        places = starts - np.take_along_axis(starts, firsts, 1)
        parts = self.keys[src] * _POWERS[places.clip(max=MAX_CHARACTERS - 1)]
        keys = np.zeros_like(src)
        rows = np.arange(len(src))[:, None]
        np.add.at(keys, (rows, firsts), parts)
        return np.take_along_axis(keys, firsts, 1)


# Modulo 2^64, as signed numbers.
_POWERS = np.cumprod(np.array([1, *[BASE] * (MAX_CHARACTERS - 1)], np.int64))
