"""Similar sentences, against a count by hand."""

from collections.abc import Sequence
from itertools import pairwise
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.data.corpus import Sequences
from nmt.extras.neighbors import similarity as module
from nmt.extras.neighbors.similarity import SimilarSentences

V = 7
sentences = st.lists(st.integers(4, V - 1), max_size=6)


def sequences(rows: Sequence[Sequence[int]]) -> Sequences:
    return Sequences.of_blocks(
        [
            (
                np.array([i for row in rows for i in row], np.int32),
                np.array([*map(len, rows)], np.int32),
            )
        ]
    )


def features(row: Sequence[int]) -> set[tuple[int, ...]]:
    return {(one,) for one in row} | set(pairwise(row))


@example(
    [[4, 5], [5, 5]], [5, 4, 5, 5], 1, 2
)  # a feature that no sentence has, between features of both
@given(
    st.lists(sentences, min_size=1, max_size=12),
    sentences,
    st.integers(1, 15),
    st.sampled_from([2, 100]),
)
def test_similarity_is_the_cosine_of_the_weights(
    rows: list[list[int]], query: list[int], n: int, most: int
) -> None:
    counts: dict[tuple[int, ...], int] = {}
    for row in rows:
        for feature in features(row):
            counts[feature] = counts.get(feature, 0) + 1
    weight = {feature: log(len(rows) / count) for feature, count in counts.items()}
    similarity = []
    for row in rows:
        shared = {one for one in features(row) & features(query) if counts[one] <= most}
        norm = sqrt(sum(weight[feature] ** 2 for feature in features(row)))
        similarity.append(sum(weight[feature] ** 2 for feature in shared) / norm if norm else 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_SENTENCES", most)
        found = SimilarSentences(sequences(rows), V).find(query, n).tolist()
    assert len(found) == min(n, sum(value > 0 for value in similarity)) == len(set(found))
    np.testing.assert_allclose(
        [similarity[i] for i in found], sorted(similarity, reverse=True)[: len(found)]
    )


def test_a_sentence_finds_itself_then_what_shares_its_rarest_words() -> None:
    rows = [[4, 5], [4, 6, 5], [6, 4, 5, 5], [4, 4]]
    similar = SimilarSentences(sequences(rows * 10), V)
    assert set(similar.find([4, 6, 5], 10).tolist()) == set(range(1, 40, 4))
    assert similar.find([4, 6, 5], 3).tolist() == [1, 5, 9]  # of equals, the earlier


def test_nothing_is_similar_to_unknown_words_or_to_nothing() -> None:
    similar = SimilarSentences(sequences([[4, 5], [5]]), V)
    assert similar.find([6], 3).tolist() == similar.find([], 3).tolist() == []
