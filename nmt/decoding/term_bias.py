"""A lexical bias to terms: a model that translates some words of its sources in one way only."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from nmt.decoding.fast import replace_submodules
from nmt.model.lexical_bias import LexicalBias, Translations
from nmt.text.vocabulary import EOS, PAD

# From the ids of a source to its terms: the positions of their words, and the ids that they get.
Terms = Mapping[tuple[int, ...], Sequence[tuple[Sequence[int], Sequence[int]]]]


def with_terms(model: nn.Module, terms: Terms, weight: float) -> Any:
    """A copy of a model whose lexical bias knows the terms; it shares everything else. An ensemble
    may have several.

    None if it has no lexical bias, or chooses the words that it knows.
    """
    if isinstance(model, LexicalBias):
        return TermBias(model, terms, weight)
    if getattr(model, "choose_words", None) is not None:
        return None
    new = {}
    for name, part in model._modules.items():  # also those that stand there twice
        if part is not None and (biased := with_terms(part, terms, weight)) is not None:
            new[name] = biased
    return replace_submodules(model, **new) if new else None


class TermBias(nn.Module):
    """A lexical bias in which terms have no other translations.

    Args:
        weight: of each subword of a term.
    """

    def __init__(self, bias: LexicalBias, terms: Terms, weight: float) -> None:
        super().__init__()
        self.bias, self.terms, self.weight = bias, terms, weight

    def look_up(self, src: Tensor) -> Translations:
        """The translations of sentences [B, S]."""
        found = self.bias.look_up(src)
        ids = found.ids.tolist()
        terms = [
            self.terms.get(tuple(i for i in row if i not in (PAD, EOS)), ()) for row in src.tolist()
        ]
        for row, row_terms in zip(ids, terms, strict=True):
            wanted = {i: None for _, term in row_terms for i in term}
            row += [i for i in wanted if i not in row]
        width = max(map(len, ids))
        padded = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in ids])
        probabilities = functional.pad(found.probabilities, (0, width - found.ids.shape[1]))
        for number, row_terms in enumerate(terms):
            for positions, term in row_terms:
                probabilities[number, positions] = 0
                for i in term:
                    probabilities[number, positions, ids[number].index(i)] = self.weight
        return Translations(padded.to(src.device), probabilities)

    def forward(self, attention: Tensor, translations: Translations) -> Tensor:
        """The bias of each translation: [B, T, S] -> [B, T, U]."""
        return self.bias(attention, translations)  # type: ignore[no-any-return]
