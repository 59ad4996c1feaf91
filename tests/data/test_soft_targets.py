"""nmt.data.soft_targets: what is written is read again, and damage is noticed."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data import corpus as corpora
from nmt.data import soft_targets
from nmt.data.corpus import Corpus, SequencesWriter
from nmt.errors import DataError


@given(st.integers(1, 9), st.integers(1, 20), st.integers(0, 99))
def test_unpack_is_the_inverse_of_pack(n_tokens: int, n_words: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    ids = random.integers(0, 2**31, (n_tokens, n_words))
    probabilities = (random.random((n_tokens, n_words)) ** 9).astype(np.float32)
    probabilities[0, 0] = 1.0
    packed = soft_targets.pack(ids, probabilities)
    assert packed.dtype == np.int32
    again, units = soft_targets.unpack(packed, n_tokens)
    assert np.array_equal(again, ids)
    assert units.dtype == np.float32
    assert np.abs(units - probabilities).max() <= 2**-24  # of a float32 just below 1


def write(folder: Path, stem: str, lengths: list[int]) -> None:
    with SequencesWriter(folder / stem, len(lengths)) as writer:
        writer.write(np.arange(sum(lengths), dtype=np.int32), np.array(lengths, np.int32))


def test_they_must_fit_the_training_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for side in ("src", "tgt"):
        write(tmp_path, f"train.{side}", [2, 0, 1])
    corpus = Corpus.load(tmp_path, "train")
    with pytest.raises(DataError) as missing:
        soft_targets.load(tmp_path, corpus)
    assert str(missing.value) == (
        f"training.distillation: {tmp_path} has no soft targets; write a folder that has them "
        "with `nmt augment --teacher`, "
        "or set it to 0"
    )
    write(tmp_path, "train.soft-targets", [12, 4, 8])  # 2 words of each of 6 tokens
    assert soft_targets.load(tmp_path, corpus)[1].tolist() == [12, 13, 14, 15]
    for lengths in ([12, 4], [12, 4, 9], [0, 0, 0]):
        write(tmp_path, "train.soft-targets", lengths)
        with pytest.raises(
            DataError,
            match=r"train\.soft-targets\.npy: damaged, it does not fit the training data; run `nmt augm",
        ):
            soft_targets.load(tmp_path, corpus)
    for path in tmp_path.glob("train.soft-targets*"):
        path.unlink()
    monkeypatch.setattr(corpora, "SHARD_SENTENCES", 2)
    write(tmp_path, "train.soft-targets", [12, 4, 8])
    assert (tmp_path / "train-0002-of-0002.soft-targets.npy").exists()
    assert soft_targets.load(tmp_path, corpus)[2].tolist() == [*range(16, 24)]
