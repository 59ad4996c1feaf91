"""Whole words in sentences of subwords."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nmt.text.tokenizers import SPACE
from nmt.text.vocabulary import SPECIALS

BASE = 0x5BD1E9955BD1E995  # odd, so that different powers differ
MAX_CHARACTERS = 64  # of a word; longer ones have keys of no use


class WordKeys(nn.Module):
    """The key of the word to which each subword belongs.

    A word begins with a subword that begins with the mark of a space. A subword without letters and
    digits is a word by itself, and the next one begins a word. The key is a hash of the n
    characters c of the word: c_1 + c_2 BASE + ... + c_n BASE^(n-1), modulo 2^64. So it does not
    depend on the borders of the subwords. Special tokens have the key 0.

    Args:
        n_tokens: size of the vocabulary.
    """

    keys: Tensor
    lengths: Tensor
    begins: Tensor
    ends: Tensor
    powers: Tensor

    def __init__(self, n_tokens: int) -> None:
        super().__init__()
        self.n_tokens = n_tokens
        self.register_buffer("keys", torch.zeros(n_tokens, dtype=torch.long))
        self.register_buffer("lengths", torch.zeros(n_tokens, dtype=torch.long))
        self.register_buffer("begins", torch.ones(n_tokens, dtype=torch.bool))
        self.register_buffer("ends", torch.ones(n_tokens, dtype=torch.bool))
        powers = torch.full((MAX_CHARACTERS,), BASE, dtype=torch.long)
        powers[0] = 1
        self.register_buffer("powers", powers.cumprod(0), persistent=False)

    @torch.no_grad()
    def fill(self, tokens: Sequence[str], *, lowercase: bool) -> None:
        """Set the subwords of the vocabulary. lowercase: whether the keys ignore case."""
        for index, token in enumerate(tokens):
            text = "" if index < len(SPECIALS) else token.removeprefix(SPACE)[:MAX_CHARACTERS]
            codes = torch.tensor(
                [ord(character) for character in (text.lower() if lowercase else text)],
                dtype=torch.long,
            )
            is_word = not any(character.isalnum() for character in text)
            self.keys[index], self.lengths[index] = (
                (codes * self.powers[: len(codes)]).sum(),
                len(codes),
            )
            self.begins[index], self.ends[index] = is_word or token.startswith(SPACE), is_word

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """For the tokens of sentences [B, S]: the number of their word in the sentence, from 0, and
        its key, both [B, S].
        """
        begins = (
            torch.cat([torch.ones_like(ids[:, :1], dtype=torch.bool), self.ends[ids[:, :-1]]], 1)
            | self.begins[ids]
        )
        numbers, lengths = begins.long().cumsum(1) - 1, self.lengths[ids]
        ends = lengths.cumsum(1)  # in characters, from the begin of the sentence
        zeros = torch.zeros_like(ids)
        word_starts = zeros.scatter_add(
            1, numbers, torch.where(begins, ends - lengths, zeros)
        ).gather(1, numbers)
        places = (ends - lengths - word_starts).clamp(max=MAX_CHARACTERS - 1)
        return numbers, zeros.scatter_add(1, numbers, self.keys[ids] * self.powers[places]).gather(
            1, numbers
        )
