"""Which sentences are translated, which pairs are kept, how they are written, and soft targets
against the probabilities that each model gives to each sentence alone.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import CleaningConfig, ModelConfig, TokenizerConfig
from nmt.data.corpus import Corpus, Sequences, encode_pairs, restore_texts, unpack_soft_targets
from nmt.data.splitting import fingerprint
from nmt.extras.augment import pairs as module
from nmt.extras.augment.pairs import (
    drop_reason,
    select_sentences,
    soft_targets,
)
from nmt.model.seq2seq import Seq2Seq
from nmt.text.tokenizers import CharacterTokenizer
from nmt.text.vocabulary import EOS, SOS, Vocabulary
from tests.toy import sequences

CLEANING = CleaningConfig(max_characters=20)
TOKENIZERS = (
    CharacterTokenizer(TokenizerConfig(), "en", Path()),
    CharacterTokenizer(TokenizerConfig(), "de", Path()),
)
LETTERS = "aAbBcC ."
VOCABULARIES = (
    Vocabulary.build(Counter("aAbBcC▁.")),
    Vocabulary.build(Counter("cCbBaA.▁")),
)

TEXTS = st.text(LETTERS, max_size=4).map(lambda text: " ".join(text.split()))
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=30)


def test_each_sentence_is_translated_once_and_the_others_are_counted() -> None:
    texts = ["A dog.", "", "A cat.", "A dog.", "a <unk>", "x" * 21, "the test!", "A dog!"]
    selected, dropped = select_sentences(texts, {"thetest"}, CLEANING)
    assert selected == ["A dog.", "A cat.", "A dog!"]
    assert dropped == {
        "repeated sentence": 1,
        "empty sentence": 1,
        "unknown words": 1,
        "too long": 1,
        "in dev or test": 1,
    }


def test_pairs_are_dropped_for_a_reason() -> None:
    known = {fingerprint("A dog.\tEin Hund."): "copy of an original pair"}
    more = known, {"src": {"acat"}, "tgt": {"einekatze"}}, CLEANING
    reasons = {
        ("A dog.", "Ein Hund!"): None,
        ("A dog.", "Ein Hund."): "copy of an original pair",
        ("a dog.", "Ein Hund."): None,
        ("A cat", "Ein Tier."): "in dev or test",
        ("An animal.", "eine Katze"): "in dev or test",
        ("A dog.", ""): "empty target",
        ("", "Ein Hund."): "empty source",
        ("A dog.", "Ein" + " Hund" * 4): "too long",
    }
    assert {pair: drop_reason(pair, *more) for pair in reasons} == reasons
    assert drop_reason(("A dog.", "Ein Hund!"), *more) == "copy of a synthetic pair"


@given(PAIRS)
def test_encoded_pairs_can_be_restored(pairs: list[tuple[str, str]]) -> None:
    corpus = encode_pairs(pairs, TOKENIZERS, VOCABULARIES)
    texts = zip(
        *map(restore_texts, (corpus.src, corpus.tgt), TOKENIZERS, VOCABULARIES), strict=True
    )
    assert corpus.src.n_tokens == sum(len(src) for src, _ in pairs)
    assert [*texts] == pairs


def test_marks_of_earlier_versions_are_no_text() -> None:
    marked = Sequences.of_blocks([(np.array([5, 4], np.int32), np.array([2], np.int32))])
    texts = restore_texts(marked, TOKENIZERS[0], Vocabulary(["a", "<bt>"], [0, 9, 0]))
    assert [*texts] == ["a"]


def make_model(seed: int, **values: Any) -> Seq2Seq:
    torch.manual_seed(seed)
    sizes = {"embedding_size": 6, "encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 7}}
    model = Seq2Seq(ModelConfig.model_validate({**sizes, **values}), 11, 13).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    if model.lexical_bias is not None:
        model.lexical_bias.fill(torch.randint(4, 13, (11, 3)), torch.rand(11, 3))
    return model


@pytest.mark.parametrize("values", [{}, {"lexical_bias": 3}], ids=["plain", "lexical bias"])
@pytest.mark.parametrize("block", [3, 100])
def test_they_are_the_most_probable_words_of_the_mean(
    values: dict[str, Any], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "N_WORDS", 5)
    monkeypatch.setattr(module, "BLOCK_PAIRS", block)
    random = np.random.default_rng(1)
    sides = [
        [random.integers(4, size, length).tolist() for length in random.integers(0, 6, 10)]
        for size in (11, 13)
    ]
    corpus = Corpus(*map(sequences, sides))
    models = [make_model(1, **values), make_model(2)]
    blocks = [*soft_targets(models, corpus)]
    assert len(blocks) == -(-10 // block)
    stored = Sequences.of_blocks(blocks)
    for pair, (src, tgt) in enumerate(zip(*sides, strict=True)):
        means = torch.zeros(len(tgt) + 1, 13)
        for model in models:
            inputs = (
                torch.tensor([[*src, EOS]]),
                torch.tensor([len(src) + 1]),
                torch.tensor([[SOS, *tgt]]),
            )
            vectors = model(*inputs).at(torch.arange(len(tgt) + 1))
            means += model.output(*vectors).softmax(1).detach() / 2
        ids, probabilities = unpack_soft_targets(stored[pair], len(tgt) + 1)
        assert ids.shape == (len(tgt) + 1, 5)
        expected = np.sort(means.numpy(), axis=1)[:, :-6:-1]
        np.testing.assert_allclose(probabilities, expected, atol=1e-6)
        np.testing.assert_allclose(np.take_along_axis(means.numpy(), ids, 1), expected, atol=1e-6)
