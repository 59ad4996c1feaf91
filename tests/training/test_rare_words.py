"""Which words are shown as `<unk>`, in which pairs; what is trained if a training is resumed, or
divided among processes.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.config.schema import Config
from nmt.data.batches import build_batch
from nmt.data.corpus import Corpus
from nmt.run.progress import Progress
from nmt.text.vocabulary import EOS, SOS, UNK
from nmt.training.loop import Training, World, updates
from nmt.training.rare_words import NOTE, RareWords, draw
from tests.toy import configure, sequences
from tests.training.test_loop import make_model

SRC, TGT = [[4, 5, 6], [4, 5, 7], [4, 8, 5]], [[4, 9], [4, 10], [4, 4]]


def make_config(kind: str = "words", **training: Any) -> Config:
    return configure(Path("pairs.tsv"), tokenizer={"kind": kind}, training=training)


def find(src: list[list[int]], tgt: list[list[int]]) -> RareWords:
    rare = RareWords.find(Corpus(sequences(src), sequences(tgt)), make_config())
    assert rare is not None
    return rare


def test_words_that_occur_once_are_hidden_on_both_sides_of_the_drawn_pairs() -> None:
    rare = find(SRC, TGT)
    batch = rare.hide(build_batch(SRC, TGT), np.array([True, False, True]))
    assert batch.src.tolist() == [[4, 5, UNK, EOS], [4, 5, 7, EOS], [4, UNK, 5, EOS]]
    assert batch.tgt_in.tolist() == [[SOS, 4, UNK], [SOS, 4, 10], [SOS, 4, 4]]
    assert batch.tgt_out.tolist() == [[4, UNK, EOS], [4, 10, EOS], [4, 4, EOS]]
    assert rare.notes == []


def test_other_pairs_are_drawn_in_each_epoch() -> None:
    drawn = np.array([draw(1000, (1, epoch)) for epoch in range(20)])
    assert all(50 < epoch.sum() < 150 for epoch in drawn)
    assert drawn.any(axis=0).mean() == pytest.approx(1 - 0.9**20, abs=0.05)


@pytest.mark.parametrize("kind", ["words", "bpe", "unigram", "characters"])
def test_nothing_is_hidden_where_unknown_words_are_trained(kind: str) -> None:
    src, tgt = (SRC, TGT) if kind != "words" else ([*SRC, [UNK]], [*TGT, [UNK]])
    assert RareWords.find(Corpus(sequences(src), sequences(tgt)), make_config(kind)) is None


def test_it_is_said_where_unknown_words_cannot_be_trained() -> None:
    assert find(SRC * 2, TGT).notes == [NOTE]
    assert find([*SRC * 2, [UNK]], [*TGT, [5]]).notes == []


def test_a_resumed_training_and_several_processes_hide_the_same_words() -> None:
    config = make_config(epochs=4, batch={"size": 8})
    corpus = Corpus(*(sequences([[i, 4, 4] for i in range(5, 45)]) for _ in range(2)))
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
