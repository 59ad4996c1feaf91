"""Prepared folders on disk."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.corpus import FORMAT, Corpus, Sequences, SequencesWriter, load_manifest, read_lines, write_lines
from nmt.errors import DataError

SENTENCES = [[5, 6, 7], [], [4]]


def write(stem: Path, sentences: list[list[int]]) -> None:
    writer = SequencesWriter(stem, sum(map(len, sentences)))
    for sentence in sentences:
        writer.write(np.array(sentence, np.int32), np.array([len(sentence)], np.int32))
    writer.close()


@given(sentences=st.lists(st.lists(st.integers(0, 2**31 - 1))))
def test_sentences_are_read_back_as_written(sentences: list[list[int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    stem = tmp_path_factory.mktemp("corpus") / "train.src"
    write(stem, sentences)
    read = Sequences.load(stem)
    assert [read[index].tolist() for index in range(len(read))] == sentences
    assert read.lengths.tolist() == [len(sentence) for sentence in sentences]
    assert read.lengths.dtype == np.int32


def test_sentences_are_mapped_not_loaded(tmp_path: Path) -> None:
    write(tmp_path / "train.src", [list(range(4, 1000)), list(range(4, 2000))])
    read = Sequences.load(tmp_path / "train.src")
    assert isinstance(read[1], np.memmap)
    assert read[1].dtype == np.int32
    assert read[-1].tolist() == read[1].tolist()
    with pytest.raises(IndexError, match="sentence 2 of 2"):
        read[2]


def test_a_corpus_has_two_sides(tmp_path: Path) -> None:
    write(tmp_path / "dev.src", SENTENCES)
    write(tmp_path / "dev.tgt", SENTENCES[::-1])
    corpus = Corpus.load(tmp_path, "dev")
    assert len(corpus) == 3
    assert (corpus.src[0].tolist(), corpus.tgt[0].tolist()) == ([5, 6, 7], [4])


def test_sides_of_different_length_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "dev.src", SENTENCES)
    write(tmp_path / "dev.tgt", SENTENCES[:2])
    with pytest.raises(DataError, match="damaged, dev has 3 source and 2 target sentences"):
        Corpus.load(tmp_path, "dev")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write(tmp_path / "dev.src", SENTENCES)
    with pytest.raises(DataError, match=r"dev\.tgt\.npy: no such file; run `nmt prepare -c \.\.\.` first"):
        Corpus.load(tmp_path, "dev")


@pytest.mark.parametrize("name", ["dev.src.npy", "dev.src.offsets.npy"])
@pytest.mark.parametrize("length", [0, 60, 130, -4])
def test_a_truncated_file_is_refused(tmp_path: Path, name: str, length: int) -> None:
    write(tmp_path / "dev.src", [list(range(4, 3000)), *SENTENCES])
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:length])
    with pytest.raises(DataError, match=r"dev\.src.*damaged"):
        Sequences.load(tmp_path / "dev.src")


def test_pickles_and_other_types_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "dev.src", SENTENCES)
    np.save(tmp_path / "dev.src.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(DataError, match="damaged"):
        Sequences.load(tmp_path / "dev.src")
    np.save(tmp_path / "dev.src.npy", np.zeros(4, np.float32))
    with pytest.raises(DataError, match="holds float32 of 1 dimensions, expected int32 of 1"):
        Sequences.load(tmp_path / "dev.src")


def test_offsets_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "dev.src", SENTENCES)
    for offsets in ([0, 3, 3, 5], [1, 3, 3, 4], [0, 3, 2, 4], []):
        np.save(tmp_path / "dev.src.offsets.npy", np.array(offsets, np.int64))
        with pytest.raises(DataError, match="its offsets do not fit its 4 ids"):
            Sequences.load(tmp_path / "dev.src")


def test_lines_are_utf8_with_line_feeds_only(tmp_path: Path) -> None:
    lines = ["Grüß Gott!", "", "a\u2028b"]
    write_lines(tmp_path / "dev.tgt.txt", lines)
    assert (tmp_path / "dev.tgt.txt").read_bytes() == "Grüß Gott!\n\na\u2028b\n".encode()
    assert read_lines(tmp_path, "dev", "tgt") == lines


def test_missing_or_damaged_lines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"dev\.tgt\.txt: no such file"):
        read_lines(tmp_path, "dev", "tgt")
    (tmp_path / "dev.tgt.txt").write_bytes(b"a\nb")
    with pytest.raises(DataError, match=r"dev\.tgt\.txt, line 2: the file breaks off here"):
        read_lines(tmp_path, "dev", "tgt")
    (tmp_path / "dev.tgt.txt").write_bytes(b"\xff\n")
    with pytest.raises(DataError, match="cannot be read as UTF-8 text"):
        read_lines(tmp_path, "dev", "tgt")


def test_a_manifest_is_asked_for_by_the_command_that_makes_it(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(DataError, match=r"no prepared data here; run `nmt prepare -c \.\.\.` first"):
            load_manifest(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format": ', "damaged .*--overwrite"),
        ("[]", "not written by `nmt prepare`"),
        ('{"format": "of another tool"}', "not written by `nmt prepare`"),
        (json.dumps({"format": FORMAT, "format_version": 99}), "format 99, but this nmt reads 1"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_manifest(tmp_path)
