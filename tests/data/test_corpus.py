"""nmt.data.corpus: ids on disk."""

import io
import os
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nmt.data import corpus as corpus_module
from nmt.data.corpus import (
    Corpus,
    Sequences,
    SequencesWriter,
    pack_soft_targets,
    unpack_soft_targets,
)
from nmt.data.manifest import is_prepared_file
from nmt.errors import DataError
from nmt.files import record_checksums, sha256_of

SENTENCES = [[5, 6, 7], [], [4]]


def write(stem: Path, sentences: list[list[int]]) -> None:
    with SequencesWriter(stem, len(sentences)) as writer:
        for sentence in sentences:
            writer.write(np.array(sentence, np.int32), np.array([len(sentence)], np.int32))


def write_lengths(stem: Path, lengths: list[int]) -> None:
    """Numbers from 0, divided into sentences."""
    ends = [*accumulate(lengths, initial=0)]
    write(stem, [[*range(*bounds)] for bounds in pairwise(ends)])


@given(sentences=st.lists(st.lists(st.integers(0, 2**31 - 1))))
def test_sentences_are_read_back_as_written(
    sentences: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    stem = tmp_path_factory.mktemp("corpus") / "train.src"
    write(stem, sentences)
    read = Sequences.load(stem)
    assert [read[index].tolist() for index in range(len(read))] == sentences
    assert read.lengths.tolist() == [len(sentence) for sentence in sentences]
    assert read.lengths.dtype == np.int32


def test_sentences_of_large_files_are_mapped_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_module, "MIN_MAPPED_BYTES", 1 << 12)
    write(tmp_path / "train.src", [list(range(4, 1000)), list(range(4, 2000))])
    read = Sequences.load(tmp_path / "train.src")
    assert isinstance(read[1], np.memmap)
    assert read[1].dtype == np.int32
    with pytest.raises(IndexError, match="sentence 2 of 2"):
        read[2]


def test_a_file_that_is_cut_off_later_does_not_disturb(tmp_path: Path) -> None:
    sentence = list(range(4, 100_000))
    write(tmp_path / "train.src", [sentence])
    read = Sequences.load(tmp_path / "train.src")
    # If the file were mapped, the line after the next would end the process.
    os.truncate(tmp_path / "train.src.npy", 100)
    assert read[0].tolist() == sentence


def test_many_sentences_are_written_in_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = [[index] * (index % 4) for index in range(11)]
    write(tmp_path / "one.src", sentences)
    monkeypatch.setattr(corpus_module, "SHARD_SENTENCES", 3)
    monkeypatch.setattr(corpus_module, "BLOCK_SENTENCES", 4)
    with SequencesWriter(tmp_path / "train.src", len(sentences)) as writer:
        for block in Sequences.load(tmp_path / "one.src").blocks():
            writer.write(*block)
    endings = ("npy", "offsets.npy")
    names = [f"train-000{n}-of-0004.src.{ending}" for n in range(1, 5) for ending in endings]
    assert sorted(path.name for path in tmp_path.glob("train*")) == names
    assert all(map(is_prepared_file, names))
    read = Sequences.load(tmp_path / "train.src")
    assert [read[index].tolist() for index in range(11)] == sentences
    assert (len(read), read.n_tokens) == (11, 15)
    assert read.lengths.tolist() == [index % 4 for index in range(11)]
    for start in range(12):
        for end in range(start, 12):
            ids, lengths = read.block(start, end)
            assert ids.tolist() == [*chain.from_iterable(sentences[start:end])]
            assert lengths.tolist() == [len(sentence) for sentence in sentences[start:end]]
    assert read.rows(np.array([10, 2, 6])).tolist() == [sentences[10], sentences[2], sentences[6]]
    (tmp_path / "train-0002-of-0004.src.npy").unlink()
    with pytest.raises(DataError, match=r"train-0002-of-0004\.src\.npy: no such file"):
        Sequences.load(tmp_path / "train.src")


def test_the_content_of_large_files_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train.src.npy"
    write(tmp_path / "train.src", [list(range(4, 3000))])
    content = path.read_bytes()
    record_checksums(tmp_path, {path.name: sha256_of(path)})
    path.write_bytes(content[:-4] + b"\1\0\0\0")
    with pytest.raises(DataError, match=r"train\.src\.npy: damaged, its content has changed"):
        Sequences.load(tmp_path / "train.src")
    for name in ("MAX_HASHED_BYTES", "MIN_MAPPED_BYTES"):
        monkeypatch.setattr(corpus_module, name, len(content) - 1)
    assert Sequences.load(tmp_path / "train.src")[0][-1] == 1
    path.write_bytes(content + b"\0")
    with pytest.raises(
        DataError, match=rf"damaged \(has {len(content) + 1:,} bytes instead of {len(content):,}"
    ):
        Sequences.load(tmp_path / "train.src")


def test_sides_of_different_length_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "dev.src", SENTENCES)
    write(tmp_path / "dev.tgt", SENTENCES[:2])
    with pytest.raises(DataError, match="damaged, dev has 3 source and 2 target sentences"):
        Corpus.load(tmp_path, "dev")


def npy(array: NDArray[Any], *, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


HOSTILE_HEADERS = [
    b"{'descr': '<i4', 'fortran_order': False, 'shape': " + shape
    for shape in (b"(3,", b"(9999999999999999999999,), }", b"(999999999999,), }", b"(" * 300 + b"3")
]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of np.load
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *((name, length, "") for name in ("npy", "offsets.npy") for length in (0, 60, 130, -4)),
        ("npy", npy(np.array([{}]), allow_pickle=True), ""),
        ("npy", b"PK\x05\x06" * 9, ""),
        *(
            (
                "npy",
                (b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text).ljust(size, b"\0"),
                "",
            )
            for text in HOSTILE_HEADERS
            for size in (0, 100_000)  # read, and mapped
        ),
        (
            "npy",
            npy(np.zeros(4, np.float32)),
            r"\(holds float32 of 1 dimensions, expected int32 of 1",
        ),
        *(
            ("offsets.npy", npy(np.array(offsets, np.int64)), ", its offsets do not fit its 4 ids")
            for offsets in ([0, 3, 3, 5], [1, 3, 3, 4], [0, 3, 2, 4], [])
        ),
    ],
)
def test_a_damaged_file_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: bytes | int,
    message: str,
) -> None:
    """content: what the file then holds, or how many of its bytes stay."""
    monkeypatch.setattr(corpus_module, "MIN_MAPPED_BYTES", 1 << 12)
    write(tmp_path / "dev.src", SENTENCES)
    path = tmp_path / f"dev.src.{name}"
    path.write_bytes(path.read_bytes()[:content] if isinstance(content, int) else content)
    with pytest.raises(DataError, match=rf"dev\.src.*damaged ?{message}"):
        Sequences.load(tmp_path / "dev.src")


@given(st.integers(1, 9), st.integers(1, 20), st.integers(0, 99))
def test_unpacked_soft_targets_are_those_that_were_packed(
    n_tokens: int, n_words: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    ids = random.integers(0, 2**31, (n_tokens, n_words))
    probabilities = (random.random((n_tokens, n_words)) ** 9).astype(np.float32)
    probabilities[0, 0] = 1.0
    packed = pack_soft_targets(ids, probabilities)
    assert packed.dtype == np.int32
    again, units = unpack_soft_targets(packed, n_tokens)
    assert np.array_equal(again, ids)
    assert units.dtype == np.float32
    assert np.abs(units - probabilities).max() <= 2**-24  # of a float32 just below 1
