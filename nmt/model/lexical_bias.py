"""A lexicon in the output layer: translations of the source words that attention reads become more probable (Arthur 2016)."""

from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.model.cross_entropy import Additions
from nmt.text.vocabulary import EOS

EPSILON = 0.001  # the probability of words that are no translation, which keeps the logarithm finite


@dataclass(frozen=True)
class Translations:
    """What the lexicon has for the words of B sentences; U translations.

    Attributes:
        ids: [B, U]. The ids of a sentence differ, but for padding, which has probability 0.
        probabilities: [B, S, U], of each translation given each source word.
    """

    ids: Tensor
    probabilities: Tensor

    def select(self, rows: Tensor) -> "Translations":
        """Those of the sentences `rows` [R], in that order."""
        return Translations(self.ids[rows], self.probabilities[rows])


class LexicalBias(nn.Module):
    """b_t = log(sum_j alpha_tj p_lex(. | x_j) + epsilon) (Arthur 2016, the bias form), which is added to the logits.

    Here it is less by log epsilon, so that it is 0 for words that are no translation; the softmax is the same.

    The lexicon has k translations of each source word. It is a part of the weights that training does not change, and is empty at
    first.

    Args:
        src_size, tgt_size: of the vocabularies.
        size: k.
    """

    ids: Tensor
    probabilities: Tensor

    def __init__(self, src_size: int, tgt_size: int, size: int) -> None:
        super().__init__()
        self.size, self.tgt_size = size, tgt_size
        self.register_buffer("ids", torch.zeros(src_size, size, dtype=torch.long))  # 0 pads, with probability 0
        self.register_buffer("probabilities", torch.zeros(src_size, size))
        self.restricted_ids: Tensor | None = None

    @torch.no_grad()
    def fill(self, ids: Tensor, probabilities: Tensor) -> None:
        """Set the translations of each source word, [V_s, k]; the end of a sentence translates into itself."""
        self.ids.copy_(ids)
        self.probabilities.copy_(probabilities)
        self.ids[EOS, 0], self.probabilities[EOS, 0] = EOS, 1.0

    @property
    def output_size(self) -> int:
        """The number of words that `dense` computes."""
        return self.tgt_size if self.restricted_ids is None else len(self.restricted_ids)

    def restrict(self, ids: Tensor) -> "LexicalBias":
        """This module with only the target words `ids` [v] in `dense`, numbered in that order."""
        other = copy(self)
        other.restricted_ids = ids if self.restricted_ids is None else self.restricted_ids[ids]
        return other

    @torch.no_grad()
    def look_up(self, src: Tensor) -> Translations:
        """The translations of sentences [B, S]."""
        ids = self.ids[src].flatten(1)  # [B, S * k], each of them several times
        in_order, order = ids.sort(1)
        column = torch.zeros_like(ids)
        column[:, 1:] = in_order.diff(dim=1).ne(0).cumsum(1)
        # Without padding on a CPU; a GPU would wait for the number.
        n_columns = int(column.max()) + 1 if ids.device.type == "cpu" else ids.shape[1]
        unique = torch.zeros(len(ids), n_columns, dtype=torch.long, device=ids.device).scatter_(1, column, in_order)
        column = torch.zeros_like(column).scatter_(1, order, column).unflatten(1, (-1, self.size))  # [B, S, k]
        probabilities = self.probabilities.new_zeros(*src.shape, n_columns)
        return Translations(unique, probabilities.scatter_add_(2, column, self.probabilities[src]))

    def forward(self, attention: Tensor, translations: Translations) -> Tensor:
        """The bias of each translation, from attention weights [B, T, S]: [B, T, U]."""
        with torch.autocast(attention.device.type, enabled=False):
            return torch.log1p(attention.to(translations.probabilities.dtype) @ translations.probabilities / EPSILON)

    def dense(self, attention: Tensor, translations: Translations) -> Tensor:
        """The bias of each target word, for one step of K hypotheses of each sentence: [B * K, S] -> [B * K, V]."""
        values = self(attention.unflatten(0, (translations.ids.shape[0], -1)), translations)  # [B, K, U]
        ids = translations.ids.unsqueeze(1).expand_as(values)
        bias = Additions(ids.flatten(0, 1), values.flatten(0, 1)).dense(self.tgt_size)
        return bias if self.restricted_ids is None else bias[:, self.restricted_ids]
