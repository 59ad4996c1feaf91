"""A lexicon in the output layer: it makes translations of the words that attention reads more
probable (Arthur 2016).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.model.lexicon import BASE, LAST_KEY, MAX_CHARACTERS, Lexicon
from nmt.text.tokenizers import SPACE
from nmt.text.vocabulary import EOS, SPECIALS

# the probability of words that are no translation, which keeps the logarithm finite
EPSILON = 0.001


class Additions(NamedTuple):
    """Numbers that are added to some logits, of U words at each of N positions.

    Attributes:
        ids: [N, U]. The ids of a position differ, except those of additions of 0.
        values: [N, U].
    """

    ids: Tensor
    values: Tensor


class Translations(NamedTuple):
    """What the lexicon has for the words of B sentences; U translations.

    Attributes:
        ids: [B, U]. The ids of a sentence differ, but for padding, which has probability 0.
        probabilities: [B, S, U], of each translation given each source word.
    """

    ids: Tensor
    probabilities: Tensor


class LexicalBias(nn.Module):
    """b_t = log(sum_j alpha_tj p_lex(. | x_j) + epsilon) is added to the logits (Arthur 2016).

    Here it is less by log epsilon, so that it is 0 for words that are no translation; the softmax
    is the same.

    The lexicon has k translations of each source token x_j, and of W whole words: if x_j is a part
    of one of them, the word counts in its place. It is a part of the weights that training does not
    change, and is empty at first.

    Args:
        src_size, tgt_size: of the vocabularies.
        size: k. n_words: W; the tokens are subwords if it is not 0.
    """

    def __init__(self, src_size: int, tgt_size: int, size: int, n_words: int = 0) -> None:
        super().__init__()
        self.src_size, self.tgt_size, self.size, self.n_words = src_size, tgt_size, size, n_words
        # First the tokens, then the words. 0 pads, with probability 0.
        self.ids = nn.Buffer(torch.zeros(src_size + n_words, size, dtype=torch.long))
        self.probabilities = nn.Buffer(torch.zeros(src_size + n_words, size))
        if n_words:
            self.words = WordKeys(src_size)
            self.word_keys = nn.Buffer(torch.full((n_words,), LAST_KEY))  # ascending

    @torch.no_grad()
    def fill(self, ids: Tensor, probabilities: Tensor) -> None:
        """Set the translations of each source token, [V_s, k]; <eos> translates into itself."""
        self.ids[: self.src_size].copy_(ids)
        self.probabilities[: self.src_size].copy_(probabilities)
        self.ids[EOS, 0], self.probabilities[EOS, 0] = EOS, 1.0

    @torch.no_grad()
    def fill_words(
        self, tokens: Sequence[str], keys: Tensor, ids: Tensor, probabilities: Tensor
    ) -> None:
        """Set the translations of words, [w, k], most frequent first; those after the first W are
        left out.

        Args:
            tokens: of the source vocabulary. keys: [w], of the words, in lower case.
        """
        self.words.fill(tokens, lowercase=True)
        keys, order = keys[: self.n_words].sort()
        self.word_keys[: len(keys)] = keys
        rows = slice(self.src_size, self.src_size + len(keys))
        self.ids[rows] = ids[order]
        self.probabilities[rows] = probabilities[order].to(self.probabilities.dtype)

    def lexicon(self) -> Lexicon:
        """The lexicon as arrays, for search."""
        empty = torch.zeros(0, dtype=torch.long)
        keys = (empty, empty, empty, empty.bool(), empty.bool())
        if self.n_words:
            words = self.words
            keys = (self.word_keys, words.keys, words.lengths, words.begins, words.ends)
        tensors = self.ids.int(), self.probabilities.float(), *keys
        return Lexicon(*(tensor.cpu().numpy() for tensor in tensors))

    def rows(self, src: Tensor) -> Tensor:
        """The row of the lexicon for each token of sentences [B, S]."""
        if not self.n_words:
            return src
        _, keys = self.words(src)
        places = torch.searchsorted(self.word_keys, keys).clamp(max=self.n_words - 1)
        return torch.where(self.word_keys[places] == keys, self.src_size + places, src)

    def is_valid(self) -> bool:
        """Whether all indices are in their range. Those of a damaged file may not be."""
        are_words = (self.ids >= 0) & (self.ids < self.tgt_size)
        return bool(are_words.all()) and self.lexicon().is_valid()

    @torch.no_grad()
    def look_up(self, src: Tensor) -> Translations:
        """The translations of sentences [B, S]."""
        rows = self.rows(src)
        ids = self.ids[rows].flatten(1)  # [B, S * k], each of them several times
        in_order, order = ids.sort(1)
        column = torch.zeros_like(ids)
        column[:, 1:] = in_order.diff(dim=1).ne(0).cumsum(1)
        # Without padding on a CPU; a GPU would wait for the number.
        n_columns = int(column.max()) + 1 if ids.device.type == "cpu" else ids.shape[1]
        unique = torch.zeros(len(ids), n_columns, dtype=torch.long, device=ids.device).scatter_(
            1, column, in_order
        )
        column = (
            torch.zeros_like(column).scatter_(1, order, column).unflatten(1, (-1, self.size))
        )  # [B, S, k]
        probabilities = self.probabilities.new_zeros(*src.shape, n_columns)
        return Translations(unique, probabilities.scatter_add_(2, column, self.probabilities[rows]))

    def forward(self, attention: Tensor, translations: Translations) -> Tensor:
        """The bias of each translation, from attention weights [B, T, S]: [B, T, U]."""
        with torch.autocast(attention.device.type, enabled=False):
            return torch.log1p(
                attention.to(translations.probabilities.dtype)
                @ translations.probabilities
                / EPSILON
            )


class WordKeys(nn.Module):
    """The key of the word to which each subword belongs.

    A word begins with a subword that begins with the mark of a space. A subword without letters and
    digits is a word by itself, and the next one begins a word. The key is a hash of the n
    characters c of the word: c_1 + c_2 BASE + ... + c_n BASE^(n-1), modulo 2^64. So it does not
    depend on the borders of the subwords. Special tokens have the key 0.

    Args:
        n_tokens: size of the vocabulary.
    """

    def __init__(self, n_tokens: int) -> None:
        super().__init__()
        self.keys = nn.Buffer(torch.zeros(n_tokens, dtype=torch.long))
        self.lengths = nn.Buffer(torch.zeros(n_tokens, dtype=torch.long))
        self.begins = nn.Buffer(torch.ones(n_tokens, dtype=torch.bool))
        self.ends = nn.Buffer(torch.ones(n_tokens, dtype=torch.bool))
        powers = torch.full((MAX_CHARACTERS,), BASE, dtype=torch.long)
        powers[0] = 1
        self.powers = nn.Buffer(powers.cumprod(0), persistent=False)

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
            self.keys[index] = (codes * self.powers[: len(codes)]).sum()
            self.lengths[index] = len(codes)
            self.begins[index], self.ends[index] = is_word or token.startswith(SPACE), is_word

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """For each token [B, S] the number of its word in the sentence, from 0, and its key."""
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
