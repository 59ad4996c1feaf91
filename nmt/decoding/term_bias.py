"""A lexical bias to terms: some words of a source are translated in one way only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.model.lexicon import Lexicon
from nmt.text.vocabulary import PAD

# From the ids of a source to its terms: the positions of their words, and the ids that they get.
Terms = Mapping[tuple[int, ...], Sequence[tuple[Sequence[int], Sequence[int]]]]


@dataclass(frozen=True)
class TermLexicon:
    """A lexicon in which the words of terms have no other translations.

    Attributes:
        weight: the number in place of the probability of each subword of a term.
    """

    lexicon: Lexicon
    terms: Terms
    weight: float

    def look_up(
        self, sources: Sequence[Sequence[int]]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """As `Lexicon.look_up`."""
        found, known = self.lexicon.look_up(sources)
        ids = found.tolist()
        terms = [self.terms.get(tuple(source), ()) for source in sources]
        for row, row_terms in zip(ids, terms, strict=True):
            wanted = dict.fromkeys(index for _, term in row_terms for index in term)
            row += [index for index in wanted if index not in row]
        width = max(map(len, ids))
        padded = np.array([[*row, *[PAD] * (width - len(row))] for row in ids])
        probabilities = np.pad(known, [(0, 0), (0, 0), (0, width - known.shape[2])])
        for number, row_terms in enumerate(terms):
            for positions, term in row_terms:
                probabilities[number, positions] = 0
                for index in term:
                    probabilities[number, positions, ids[number].index(index)] = self.weight
        return padded, probabilities
