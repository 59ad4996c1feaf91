"""nmt.data.subword_sampling: other segmentations of the same text, with the probabilities of the
papers.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config.parts import TOKENIZERS as TOKENIZER_ROWS
from nmt.config.parts import having
from nmt.config.schema import TokenizerConfig, TokenizerKind
from nmt.data.splitting import random_keys
from nmt.data.subword_sampling import SAMPLERS, SubwordSampler
from nmt.text.tokenizers import Tokenizer, load_pieces, load_tokenizer, model_path, train_subwords
from nmt.text.vocabulary import UNK, Vocabulary

TEXTS = [
    "Hallo Welt, wie geht es dir?",
    "Wie geht es der Welt heute?",
    "Mir geht's gut, weil die Welt schön ist.",
    "Ich weiß nicht, was soll es bedeuten, dass ich so traurig bin.",
]
OTHER_TOKENS = ["日", "日語", "☃", "<tag>"]  # of the vocabulary, but not of the subword model
Segmentation = tuple[str, ...]


@dataclass(frozen=True)
class Trained:
    """A subword model, and the vocabulary of the text that it was trained on."""

    kind: TokenizerKind
    tokenizer: Tokenizer
    pieces: dict[str, float]
    vocabulary: Vocabulary

    def sampler(self, rate: float) -> SubwordSampler:
        return SAMPLERS[self.kind](self.pieces, self.vocabulary, rate)

    def ids(self, text: str) -> list[int]:
        return self.vocabulary.ids(self.tokenizer.split(text))


Train = Callable[[TokenizerKind], Trained]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Train:
    def train(kind: TokenizerKind) -> Trained:
        folder, config = tmp_path_factory.mktemp(kind), TokenizerConfig(kind=kind, size=70)
        model_path(folder, "tgt").write_bytes(train_subwords(TEXTS, config))
        tokenizer = load_tokenizer(config, "de", "tgt", folder)
        pieces = load_pieces(folder, "tgt")
        counts = Counter(token for text in TEXTS for token in tokenizer.split(text))
        return Trained(
            kind,
            tokenizer,
            pieces,
            Vocabulary.build(
                {**dict.fromkeys([*pieces, *OTHER_TOKENS], 0), **counts}, min_frequency=0
            ),
        )

    models = {kind: train(kind) for kind in having(TOKENIZER_ROWS, "learned")}
    return models.__getitem__


def sample(
    sampler: SubwordSampler, sentences: Sequence[Sequence[int]], keys: Sequence[int]
) -> list[list[int]]:
    ids = np.array([id_ for sentence in sentences for id_ in sentence], np.int32)
    lengths = np.array([len(sentence) for sentence in sentences], np.int32)
    new_ids, new_lengths = sampler.sample(ids, lengths, np.array(keys, np.uint64))
    assert new_ids.dtype == new_lengths.dtype == np.int32
    assert (len(new_lengths), new_lengths.sum()) == (len(keys), len(new_ids))
    return [part.tolist() for part in np.split(new_ids, new_lengths.cumsum()[:-1])]


def frequencies(
    model: Trained, word: str, rate: float, n: int = 20_000
) -> dict[Segmentation, float]:
    keys = random_keys(np.arange(n, dtype=np.uint64), 1, "test").tolist()
    samples = sample(model.sampler(rate), [model.ids(word)] * n, keys)
    return {
        key: count / n
        for key, count in Counter(tuple(model.vocabulary.tokens(ids)) for ids in samples).items()
    }


def distance(first: dict[Segmentation, float], second: dict[Segmentation, float]) -> float:
    """The total variation."""
    return (
        sum(abs(first.get(key, 0) - second.get(key, 0)) for key in first.keys() | second.keys()) / 2
    )


def test_every_kind_of_subwords_has_a_sampler() -> None:
    assert set(SAMPLERS) == set(having(TOKENIZER_ROWS, "learned"))


texts = st.lists(
    st.one_of(st.sampled_from(TEXTS), st.text("aeghilstwWü .,'日語☃")), min_size=1, max_size=5
)
rates = st.sampled_from([0.05, 0.3, 0.8, 1.0])


@settings(max_examples=100)
@given(
    texts=texts,
    rate=rates,
    seed=st.integers(0, 2**64 - 1),
    kind=st.sampled_from(having(TOKENIZER_ROWS, "learned")),
)
def test_a_sample_has_the_same_text(
    trained: Train, texts: list[str], rate: float, seed: int, kind: TokenizerKind
) -> None:
    model = trained(kind)
    fixed = [model.ids(text) for text in texts]
    samples = sample(model.sampler(rate), fixed, [seed] * len(texts))
    for before, after in zip(fixed, samples, strict=True):
        assert "".join(model.vocabulary.tokens(after)) == "".join(model.vocabulary.tokens(before))
        assert after.count(UNK) == before.count(UNK)


@settings(max_examples=100)
@given(texts=texts)
def test_bpe_that_drops_nothing_is_that_of_sentencepiece(trained: Train, texts: list[str]) -> None:
    model = trained("bpe")
    fixed = [model.ids(text) for text in texts]
    assert sample(model.sampler(0.0), fixed, range(len(texts))) == fixed


def test_bpe_that_drops_everything_gives_characters(trained: Train) -> None:
    model = trained("bpe")
    (ids,) = sample(model.sampler(1.0), [model.ids(TEXTS[0])], [7])
    assert model.vocabulary.tokens(ids) == list("▁Hallo▁Welt,▁wie▁geht▁es▁dir?")


@pytest.mark.parametrize("kind", having(TOKENIZER_ROWS, "learned"))
def test_tokens_that_are_not_pieces_stay(trained: Train, kind: TokenizerKind) -> None:
    model = trained(kind)
    fixed = model.vocabulary.ids(["<tag>", *model.tokenizer.split("Welt 日語 es☃ Welt")])
    assert UNK not in fixed
    (ids,) = sample(model.sampler(0.9 if kind == "bpe" else 0.05), [fixed], [1])
    tokens = model.vocabulary.tokens(ids)
    assert [token for token in tokens if token in OTHER_TOKENS] == ["<tag>", "日語", "☃"]
    assert tokens[0] == "<tag>"
    assert len(ids) > len(fixed)


@given(texts=texts, rate=rates, kind=st.sampled_from(having(TOKENIZER_ROWS, "learned")))
def test_a_sample_depends_on_its_sentence_and_its_key_alone(
    trained: Train, texts: list[str], rate: float, kind: TokenizerKind
) -> None:
    model = trained(kind)
    sampler, fixed = model.sampler(rate), [model.ids(text) for text in texts]
    keys = [2**63 + 12345 * index for index in range(len(texts))]
    together = sample(sampler, fixed, keys)
    alone = [
        sample(model.sampler(rate), [ids], [key])[0] for ids, key in zip(fixed, keys, strict=True)
    ]
    assert together == alone


@pytest.mark.parametrize(("kind", "rate"), [("bpe", 0.3), ("unigram", 0.1)])
def test_equal_words_of_a_sentence_are_drawn_independently(
    trained: Train, kind: TokenizerKind, rate: float
) -> None:
    model = trained(kind)
    samples = sample(
        model.sampler(rate), [model.ids("Welt Welt")] * 2000, range(0, 2_000_000, 1000)
    )
    pairs = [tuple(" ".join(model.vocabulary.tokens(ids)).split(" ▁")) for ids in samples]
    first, second = (
        Counter(word.removeprefix("▁") for word in words) for words in zip(*pairs, strict=True)
    )
    expected = sum(first[word] * second[word] for word in first) / len(samples) ** 2
    assert 0.1 < expected < 0.8
    assert np.mean([one.removeprefix("▁") == other for one, other in pairs]) == pytest.approx(
        expected, abs=0.04
    )


def dropout_distribution(
    pieces: dict[str, float], word: Segmentation, rate: float
) -> dict[Segmentation, float]:
    """All outcomes of algorithm 1 of Provilkov (2020) with their probabilities."""
    merges = sorted(
        (-pieces[word[i] + word[i + 1]], i)
        for i in range(len(word) - 1)
        if word[i] + word[i + 1] in pieces
    )
    outcomes = defaultdict[Segmentation, float](float, {word: rate ** len(merges)})
    for rank, (_, i) in enumerate(merges):
        merged = (*word[:i], word[i] + word[i + 1], *word[i + 2 :])
        for outcome, probability in dropout_distribution(pieces, merged, rate).items():
            outcomes[outcome] += rate**rank * (1 - rate) * probability
    return outcomes


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("word", ["Welt", "geht's", "weil"])
def test_bpe_dropout_has_the_probabilities_of_its_algorithm(
    trained: Train, word: str, rate: float
) -> None:
    model = trained("bpe")
    expected = dropout_distribution(model.pieces, tuple(f"▁{word}"), rate)
    assert len(expected) > 3
    assert sum(expected.values()) == pytest.approx(1)
    assert distance(frequencies(model, word, rate), expected) < 0.02


def test_a_word_keeps_its_segmentation_if_the_vocabulary_lacks_a_sampled_piece(
    trained: Train,
) -> None:
    model = trained("bpe")
    fixed = tuple(model.tokenizer.split("Welt"))
    complete = dropout_distribution(model.pieces, tuple("▁Welt"), 0.5)
    lacking = max(
        (piece for outcome in complete for piece in outcome if piece not in fixed), key=len
    )
    known = [token for token in list(model.vocabulary)[4:] if token != lacking]
    poorer = Trained(
        "bpe", model.tokenizer, model.pieces, Vocabulary(known, [0] * (len(known) + 1))
    )
    expected = defaultdict[Segmentation, float](float)
    for outcome, probability in complete.items():
        expected[fixed if lacking in outcome else outcome] += probability
    assert expected[fixed] > complete[fixed]
    assert distance(frequencies(poorer, "Welt", 0.5), expected) < 0.02


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("word", ["Welt", "geht's", "dir?"])
def test_unigram_sampling_has_the_probabilities_of_the_model(
    trained: Train, word: str, rate: float
) -> None:
    model, text = trained("unigram"), f"▁{word}"
    weights: dict[Segmentation, float] = {}
    for n_cuts in range(len(text)):
        for cuts in combinations(range(1, len(text)), n_cuts):
            parts = tuple(
                text[start:end] for start, end in zip((0, *cuts), (*cuts, len(text)), strict=True)
            )
            if all(part in model.pieces for part in parts):
                weights[parts] = prod(exp(model.pieces[part]) ** rate for part in parts)
    assert len(weights) > 2
    expected = {parts: weight / sum(weights.values()) for parts, weight in weights.items()}
    assert distance(frequencies(model, word, rate), expected) < 0.02
