"""What search and forced decoding need of a model, whether onnxruntime or torch computes it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.config.schema import Precision
from nmt.model.lexicon import Lexicon
from nmt.text.vocabulary import PAD

IdLists = Sequence[Sequence[int]]
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

    def look_up(self, sources: IdLists) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
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


@dataclass(frozen=True)
class StepOutput:
    """The result of one step for R hypotheses.

    Attributes:
        vectors: what the output layer reads; `values` of it are the numbers [R, r] alone.
        attention: [R, S], the attention weights; 0 on padding.
        state: the state for the next step.
    """

    vectors: Any
    attention: NDArray[np.float32]
    state: Any


class TranslationModel(ABC):
    """Reads a batch of source sentences once, then predicts target tokens one step at a time.

    A memory (one row per sentence), a state and the vectors of a step (one row per hypothesis) are
    opaque to the caller, except that `select(rows)` returns the rows in that order.

    Attributes:
        threads: how many batches may run at a time, each in its own thread.
        precision: of its products.
        lexicon: of the lexical bias; None if the model has none.
        terms: take the place of the lexicon; None if the sources have none.
    """

    threads = 1
    precision: Precision = "float32"
    lexicon: Lexicon | None = None
    terms: TermLexicon | None = None

    @abstractmethod
    def encode(self, sources: IdLists) -> tuple[Any, Any]:
        """Read B sources, as ids without special tokens.

        Returns:
            the memory, and the state before the first step; both have one row per sentence.
        """

    @abstractmethod
    def step(self, ids: NDArray[np.int64], state: Any, memory: Any) -> StepOutput:
        """One step.

        Args:
            ids: the last token of each hypothesis, [B * K] for K hypotheses of each of the B
                sentences in `memory`.
            state: one row per hypothesis. memory: one row per sentence.
        """

    @abstractmethod
    def log_probs(self, vectors: Any) -> NDArray[np.floating[Any]]:
        """The log-probabilities [N, V] of all words, from the vectors of N rows.

        Raises:
            NonFiniteError: they are not finite numbers.
        """

    def best(self, vectors: Any, k: int) -> tuple[NDArray[np.int64], NDArray[np.floating[Any]]]:
        """The ids and log-probabilities [N, k] of the most probable words, best first; of all words
        if they are fewer.

        Raises:
            NonFiniteError: they are not finite numbers.
        """
        return k_best(self.log_probs(vectors), k)

    def with_terms(self, terms: Terms, weight: float) -> "TranslationModel | None":
        """A copy whose lexical bias translates terms in one way only; it shares everything else.

        None if the model has no lexical bias.

        Args:
            weight: of each subword of a term.
        """
        if self.lexicon is None:
            return None
        other = copy(self)
        other.terms = TermLexicon(self.lexicon, terms, weight)
        return other


def k_best(
    log_probs: NDArray[np.floating[Any]], k: int
) -> tuple[NDArray[np.int64], NDArray[np.floating[Any]]]:
    """The ids and numbers [N, k] of the largest in each row of [N, V], largest first."""
    n_words = log_probs.shape[1]
    ids = np.arange(n_words)[None]
    if k < n_words:
        ids = np.argpartition(log_probs, n_words - k, axis=1)[:, n_words - k :]
    largest = np.take_along_axis(log_probs, ids, 1)
    order = np.argsort(-largest, axis=1, kind="stable")
    ids = np.broadcast_to(ids, largest.shape)
    return np.take_along_axis(ids, order, 1), np.take_along_axis(largest, order, 1)
