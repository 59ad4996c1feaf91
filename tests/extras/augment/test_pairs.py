"""nmt.extras.augment.pairs: which sentences are translated, which pairs are kept, and how they are
written.
"""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import CleaningConfig, TokenizerConfig
from nmt.data.corpus import Corpus, encode_pairs, restore_texts
from nmt.extras.augment import pairs as module
from nmt.extras.augment.pairs import (
    SECONDS_FILE,
    PairFilter,
    seconds_of_shards,
    select_sentences,
    write_shard,
    write_training_data,
)
from nmt.files import write_text
from nmt.run.leaks import HeldOut
from nmt.text.tokenizers import CharacterTokenizer
from nmt.text.vocabulary import Vocabulary

CLEANING = CleaningConfig(max_characters=20)
TOKENIZERS = (
    CharacterTokenizer(TokenizerConfig(), "en", Path()),
    CharacterTokenizer(TokenizerConfig(), "de", Path()),
)
LETTERS = "aAbBcC ."
VOCABULARIES = (
    Vocabulary.build(Counter("aAbBcC▁."), tags=["<bt>"]),
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
    pair_filter = PairFilter([("A dog.", "Ein Hund.")], HeldOut({"acat"}, {"einekatze"}), CLEANING)
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
    assert {pair: pair_filter.drop_reason(pair) for pair in reasons} == reasons
    assert pair_filter.drop_reason(("A dog.", "Ein Hund!")) == "copy of a synthetic pair"


@given(PAIRS, st.booleans())
def test_encoded_pairs_can_be_restored(pairs: list[tuple[str, str]], is_tagged: bool) -> None:
    corpus = encode_pairs(
        pairs, TOKENIZERS, VOCABULARIES, VOCABULARIES[0].ids(["<bt>"])[0] if is_tagged else None
    )
    texts = zip(
        *map(restore_texts, (corpus.src, corpus.tgt), TOKENIZERS, VOCABULARIES), strict=True
    )
    tag = "<bt>" if is_tagged else ""
    assert [*texts] == [((tag + src), tgt) for src, tgt in pairs]


def test_corpora_are_repeated(tmp_path: Path) -> None:
    first, second = (
        encode_pairs(pairs, TOKENIZERS, VOCABULARIES)
        for pairs in ([("a", "b"), ("c.", "")], [("b c", "a")])
    )

    def rows(corpus: Corpus) -> list[tuple[list[int], list[int]]]:
        return [(corpus.src[i].tolist(), corpus.tgt[i].tolist()) for i in range(len(corpus))]

    write_training_data(tmp_path, [(first, 2), (second, 1), (first, 0)])
    assert rows(Corpus.load(tmp_path, "train")) == rows(first) * 2 + rows(second)
    write_training_data(tmp_path, [(first, 0)])
    assert len(Corpus.load(tmp_path, "train")) == 0


def test_a_shard_is_there_only_with_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translation = SimpleNamespace(
        text="Hallo.", src_cut=False, complete=True, tokens=["Hallo"], src_tokens=["Hello"]
    )
    translator: Any = SimpleNamespace(translate=lambda texts: [translation for _ in texts])
    assert seconds_of_shards(tmp_path) == 0
    (tmp_path / SECONDS_FILE).write_text("1.00\n0.50\n")  # as older versions wrote it
    failing = {SECONDS_FILE}

    def write(path: Path, text: str) -> None:
        if path.name in failing:
            raise OSError(5, "Input/output error", str(path))
        write_text(path, text)

    monkeypatch.setattr(module, "write_text", write)
    with pytest.raises(OSError, match=SECONDS_FILE):
        write_shard(tmp_path / "000000.txt", ["Hello."], translator)
    assert [path.name for path in tmp_path.iterdir()] == [SECONDS_FILE]
    failing.clear()
    write_shard(tmp_path / "000000.txt", ["Hello."], translator)
    assert (tmp_path / "000000.txt").read_text() == "Hallo.\n"
    assert seconds_of_shards(tmp_path) >= 1.5
