"""The word aligner against an EM in plain Python, and on corpora whose alignment is known."""

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.corpus import Corpus
from nmt.data.word_alignment import WordAligner
from tests.toy import sequences

SIZE = 9  # of both vocabularies
Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]
sentences = st.lists(st.integers(4, SIZE - 1), max_size=5)
corpora = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=8).filter(
    lambda pairs: any(s and t for s, t in pairs)
)


def corpus(pairs: Pairs) -> Corpus:
    return Corpus(*map(sequences, zip(*pairs, strict=True)))


def fitted(pairs: Pairs, iterations: int = 5, size: int = SIZE) -> WordAligner:
    aligner = WordAligner(corpus(pairs), size, size)
    aligner.fit(iterations)
    return aligner


class PlainModel:
    """One direction, word by word: p(t | s) in a dictionary, the gradient of the tension by finite
    differences.
    """

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = [(src, tgt) for src, tgt in pairs if src and tgt]
        self.table = {(s, t): 1 / SIZE for src, tgt in self.pairs for s in (0, *src) for t in tgt}
        self.tension = 4.0

    @staticmethod
    def prior(i: int, j: int, m: int, n: int, tension: float) -> float:
        total = sum(math.exp(-tension * abs(i / m - k / n)) for k in range(1, n + 1))
        return 0.08 if j == 0 else 0.92 * math.exp(-tension * abs(i / m - j / n)) / total

    def posteriors(
        self, src: Sequence[int], tgt: Sequence[int]
    ) -> Iterator[tuple[int, int, float]]:
        m, n = len(tgt), len(src)
        for i, t in enumerate(tgt, 1):
            joint = [
                self.prior(i, j, m, n, self.tension) * self.table[s, t]
                for j, s in enumerate((0, *src))
            ]
            for j, value in enumerate(joint):
                yield i, j, value / sum(joint)

    def fit(self, iterations: int) -> None:
        for iteration in range(iterations):
            counts, totals = dict.fromkeys(self.table, 0.0), dict.fromkeys(range(SIZE), 0.0)
            links = []
            for src, tgt in self.pairs:
                for i, j, value in self.posteriors(src, tgt):
                    s = (0, *src)[j]
                    counts[s, tgt[i - 1]] += value
                    totals[s] += value
                    if j:
                        links.append(((i, j, len(tgt), len(src)), value))
            if iteration:
                self.fit_tension(links)

            def digamma(value: float) -> float:
                return float(torch.digamma(torch.tensor(value, dtype=torch.float64)))

            self.table = {
                (s, t): math.exp(digamma(count + 0.01) - digamma(totals[s] + 0.01 * SIZE))
                for (s, t), count in counts.items()
            }

    def fit_tension(self, links: list[tuple[tuple[int, int, int, int], float]]) -> None:
        def likelihood(tension: float) -> float:
            return sum(n * math.log(self.prior(*cell, tension)) for cell, n in links) / sum(
                n for _, n in links
            )

        for _ in range(8):
            gradient = (likelihood(self.tension + 1e-5) - likelihood(self.tension - 1e-5)) / 2e-5
            self.tension = min(max(self.tension + 20 * gradient, 0.1), 14.0)


@given(corpora)
def test_agrees_with_a_plain_implementation(pairs: Pairs) -> None:
    forward, backward = PlainModel(pairs), PlainModel([(tgt, src) for src, tgt in pairs])
    forward.fit(3)
    backward.fit(3)
    expected: dict[tuple[int, int], float] = {}
    for src, tgt in pairs:
        if src and tgt:
            of_target = {(i, j): value for i, j, value in forward.posteriors(src, tgt)}
            of_source = {(i, j): value for i, j, value in backward.posteriors(tgt, src)}
            for i, j in product(range(1, len(tgt) + 1), range(1, len(src) + 1)):
                agreement = of_target[i, j] * of_source[j, i]
                word_pair = src[j - 1], tgt[i - 1]
                expected[word_pair] = expected.get(word_pair, 0.0) + agreement
    aligner = fitted(pairs, 3)
    counts = {
        (s, t): n
        for s, t, n in zip(
            aligner.src.tolist(), aligner.tgt.tolist(), aligner.counts(), strict=True
        )
        if s and t
    }
    assert counts == pytest.approx(expected, abs=1e-4)
    for links, side in zip(aligner.expected_links(), (1, 0), strict=True):
        n_words = sum(len(pair[side]) for pair in pairs if all(pair))
        assert links.sum() == pytest.approx(n_words)  # each word has one link in all


@pytest.mark.parametrize("order", [1, -1])
def test_finds_a_known_lexicon_whatever_the_order_of_words(order: int) -> None:
    random, words = np.random.default_rng(0), np.arange(4, 40)
    translation = dict(zip(words.tolist(), random.permutation(words).tolist(), strict=True))
    sources = [
        random.choice(words, size, replace=False).tolist() for size in random.integers(1, 6, 300)
    ]
    pairs = [(src, [translation[s] for s in src][::order]) for src in sources]
    aligner = fitted(pairs, size=40)
    counts = np.zeros((40, 40))
    counts[aligner.src, aligner.tgt] = aligner.counts()
    assert {s: int(counts[s].argmax()) for s in translation} == translation


def test_translations_are_the_most_probable_ones() -> None:
    pairs = [([4, 5], [7, 8])] * 8 + [([4, 6], [6, 8])] * 4 + [([4], [7])] * 8 + [([5], [8])] * 8
    aligner = fitted(pairs)
    counts = np.zeros((SIZE, SIZE))
    counts[aligner.src, aligner.tgt] = aligner.counts()
    expected = counts / np.maximum(counts.sum(1, keepdims=True), 1e-300)
    for size in (1, 2, 5):
        ids, probabilities, totals = aligner.translations(size)
        assert ids.shape == probabilities.shape == (SIZE, size)
        for word in range(SIZE):
            best = [(p, t) for p, t in zip(expected[word], range(SIZE), strict=True) if p >= 0.001]
            best = sorted(best, reverse=True)[:size]
            best += [(0.0, 0)] * (size - len(best))
            assert ids[word].tolist() == [t for _, t in best]
            np.testing.assert_allclose(probabilities[word], [p for p, _ in best])
    np.testing.assert_allclose(totals, counts.sum(1))


def test_large_groups_are_split_without_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [([4, 5], [6, 7])] * 7 + [([5], [7])]
    whole = fitted(pairs).counts()
    monkeypatch.setattr("nmt.data.word_alignment.MAX_CELLS", 20)
    np.testing.assert_allclose(fitted(pairs).counts(), whole)


def test_a_corpus_without_words_has_no_links() -> None:
    aligner = fitted([([], [4]), ([], [])])
    assert len(aligner.src) == len(aligner.counts()) == 0
