"""Similar sentences: those that share the rarest words and pairs of words."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nmt.data.corpus import Sequences

# With a feature; more frequent features are not used: they say little and take the most time.
MAX_SENTENCES = 1 << 14


class SimilarSentences:
    """Finds similar sentences in a collection of N.

    The features of a sentence are its ids and its pairs of adjacent ids. The weight of a feature is
    log(N / n), where n sentences have it. The similarity of two sentences is the cosine of their
    weights (Salton and Buckley 1988).

    Args:
        vocabulary_size: V; all ids are smaller.
    """

    def __init__(self, sentences: Sequences, vocabulary_size: int) -> None:
        self._base = vocabulary_size
        ids, lengths = sentences.block(0, len(sentences))
        sentence = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        is_pair = sentence[1:] == sentence[:-1]
        pairs = self._pairs(ids)[is_pair]
        features, sentence = (
            np.concatenate([ids.astype(np.int64), pairs]),
            np.concatenate([sentence, sentence[1:][is_pair]]),
        )
        order = np.lexsort((sentence, features))
        features, sentence = features[order], sentence[order]
        is_first = np.ones(len(features), np.bool_)  # in its sentence
        is_first[1:] = (features[1:] != features[:-1]) | (sentence[1:] != sentence[:-1])
        features, self._sentences = features[is_first], sentence[is_first]
        self._features, self._starts, counts = np.unique(
            features, return_index=True, return_counts=True
        )
        self._ends = self._starts + counts
        self._idf = np.log(len(sentences) / counts)
        self._is_used = counts <= MAX_SENTENCES
        squares = np.bincount(self._sentences, np.repeat(self._idf**2, counts), len(sentences))
        self._norms = np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))

    def find(self, sentence: Sequence[int], n: int) -> npt.NDArray[np.int64]:
        """The indices of at most n sentences with a feature of `sentence`, the most similar first;
        of equals, the earlier first.
        """
        ids = np.asarray(sentence, np.int64)
        wanted = np.unique(np.concatenate([ids, self._pairs(ids)]))
        _, rows, _ = np.intersect1d(self._features, wanted, assume_unique=True, return_indices=True)
        rows = rows[self._is_used[rows]]
        similarity = np.zeros(len(self._norms))
        for row in rows:
            similarity[self._sentences[self._starts[row] : self._ends[row]]] += self._idf[row] ** 2
        similarity /= self._norms
        n_found = min(n, int(np.count_nonzero(similarity)))
        if not n_found:
            return np.zeros(0, np.int64)
        least = np.partition(similarity, -n_found)[-n_found]
        candidates = np.flatnonzero(similarity >= least)
        return candidates[np.argsort(-similarity[candidates], kind="stable")][:n_found]

    def _pairs(self, ids: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """A number for each pair of adjacent ids, above all ids."""
        wide = ids.astype(np.int64)
        return self._base * (1 + wide[:-1]) + wide[1:]
