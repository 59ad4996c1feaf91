"""The training data with soft targets; which words are shown as `<unk>`, in which pairs; what is
trained if a training is resumed, or divided among processes.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.commands import prepare
from nmt.config.schema import Config
from nmt.data import corpus as corpus_module
from nmt.data.batches import read_batches
from nmt.data.corpus import Corpus, Sequences
from nmt.data.training_corpus import (
    NO_RARE_WORDS,
    find_rare_words,
    load_soft_targets,
    load_training_corpus,
    notes_on,
)
from nmt.errors import DataError
from nmt.run.progress import Progress
from nmt.text.vocabulary import EOS, SOS, UNK
from nmt.training.loop import Training, World, updates
from tests.data.test_corpus import write_lengths
from tests.toy import configure, sequences, write_table
from tests.training.test_loop import make_model

SRC, TGT = [[4, 5, 6], [4, 5, 7], [4, 8, 5]], [[4, 9], [4, 10], [4, 4]]


def make_config(**training: Any) -> Config:
    return configure(Path("pairs.tsv"), tokenizer={"kind": "words"}, training=training)


def find(src: list[list[int]], tgt: list[list[int]]) -> Corpus:
    corpus = Corpus(sequences(src), sequences(tgt))
    corpus.rare_words = find_rare_words(corpus)
    return corpus


def test_words_that_occur_once_are_hidden_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "HIDDEN_SHARE", 1.0)
    corpus = find(SRC, TGT)
    (batch,) = read_batches(corpus.hide_rare_words((1, 0)), [np.array([2, 0])])
    assert batch.src.tolist() == [[4, UNK, 5, EOS], [4, 5, UNK, EOS]]
    assert batch.tgt_in.tolist() == [[SOS, 4, 4], [SOS, 4, UNK]]
    assert batch.tgt_out.tolist() == [[4, 4, EOS], [4, UNK, EOS]]
    assert notes_on(corpus) == []
    assert [ids.tolist() for ids in corpus.read(np.array([0, 1]))[0]] == SRC[:2]


def test_other_pairs_are_drawn_in_each_epoch() -> None:
    corpus = find([[i] for i in range(5, 1005)], [[i] for i in range(5, 1005)])
    epochs = [corpus.hide_rare_words((1, epoch)).read(np.arange(1000)) for epoch in range(20)]
    drawn = np.array([np.concatenate(src) == UNK for src, _ in epochs])
    assert (drawn == np.array([np.concatenate(tgt) == UNK for _, tgt in epochs])).all()
    assert all(50 < epoch.sum() < 150 for epoch in drawn)
    assert drawn.any(axis=0).mean() == pytest.approx(1 - 0.9**20, abs=0.05)


def test_nothing_is_hidden_where_the_data_has_unknown_words() -> None:
    assert find([*SRC, [UNK]], [*TGT, [UNK]]).rare_words is None


@pytest.mark.parametrize("kind", ["words", "characters"])
def test_only_whole_words_are_hidden(kind: str, tmp_path: Path) -> None:
    names = [(f"I am Tom{i}.", f"Ich bin Tom{i}.") for i in range(120)]
    table = write_table(tmp_path / "pairs.tsv", names)
    data = {"split": {"dev": 20, "test": 20}, "prepared": str(tmp_path / "prepared")}
    config = configure(table, data=data, tokenizer={"kind": kind})
    prepare.run(config, progress=False)
    rare_words = load_training_corpus(config).rare_words
    assert [int(words.sum()) for words in rare_words or ()] == [80] * 2 * (kind == "words")


def test_it_is_said_where_unknown_words_cannot_be_trained() -> None:
    assert notes_on(find(SRC * 2, TGT)) == [NO_RARE_WORDS]
    assert notes_on(find([*SRC * 2, [UNK]], [*TGT, [5]])) == []


def test_a_resumed_training_and_several_processes_hide_the_same_words() -> None:
    config = make_config(epochs=4, batch={"size": 8})
    corpus = find(*([[i, 4, 4] for i in range(5, 45)] for _ in range(2)))
    training = Training.of(make_model(config), corpus, config)
    whole = [*updates(training)]
    rows = [row for update in whole for batch in update.micro_batches for row in batch.src.tolist()]
    assert 4 < sum(UNK in row for row in rows) < 40
    rest = [*updates(replace(training, progress=Progress(7, 1, 0, 2)))]
    assert [[batch.src.tolist() for batch in update.micro_batches] for update in rest] == [
        [batch.src.tolist() for batch in update.micro_batches] for update in whole[7:]
    ]
    half = make_config(epochs=4, batch={"size": 4})
    shares = [
        [*updates(Training.of(make_model(half), corpus, half, World(rank, 2)))] for rank in (0, 1)
    ]
    for update, *divided in zip(whole, *shares, strict=True):
        (batch,) = update.micro_batches
        parts = [row for share in divided for row in share.micro_batches[0].src.tolist()]
        assert sorted(parts) == sorted(batch.src.tolist())


def test_soft_targets_must_fit_the_training_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for side in ("src", "tgt"):
        write_lengths(tmp_path / f"train.{side}", [2, 0, 1])
    corpus = Corpus.load(tmp_path, "train")

    def load() -> Sequences:
        return load_soft_targets(tmp_path, corpus)

    with pytest.raises(DataError) as missing:
        load()
    assert str(missing.value) == (
        f"training.distillation: {tmp_path} has no soft targets; write a folder that has them "
        "with `nmt augment --teacher`, or set it to 0"
    )
    write_lengths(tmp_path / "train.soft-targets", [12, 4, 8])  # 2 words of each of 6 tokens
    assert load()[1].tolist() == [12, 13, 14, 15]
    for lengths in ([12, 4], [12, 4, 9], [0, 0, 0]):
        write_lengths(tmp_path / "train.soft-targets", lengths)
        with pytest.raises(
            DataError, match=r"npy: damaged, it does not fit the training data; run"
        ):
            load()
    for path in tmp_path.glob("train.soft-targets*"):
        path.unlink()
    monkeypatch.setattr(corpus_module, "SHARD_SENTENCES", 2)
    write_lengths(tmp_path / "train.soft-targets", [12, 4, 8])
    assert (tmp_path / "train-0002-of-0002.soft-targets.npy").exists()
    assert load()[2].tolist() == [*range(16, 24)]
