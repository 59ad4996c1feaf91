"""nmt.data.evaluation_set: files that correspond line by line, and files that do not."""

from pathlib import Path

import pytest

from nmt.data.evaluation_set import EvaluationSet, pick_across_lengths, read_files, read_texts
from nmt.errors import DataError


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8"))
    return path


def test_streams_of_one_file_each(tmp_path: Path) -> None:
    first, a, b = (
        write(tmp_path / name, text)
        for name, text in (("h", "1\n2\n"), ("a", "x\ny\n"), ("b", "X\r\n\r\n"))
    )
    assert read_files(first, [a, b]) == (["1", "2"], [["x", "y"], ["X", ""]])


def test_columns_are_streams(tmp_path: Path) -> None:
    first, references = write(tmp_path / "h", "1\n2\n"), write(tmp_path / "r.tsv", "x\tX\ny\tY\n")
    assert read_files(first, [references], columns=2) == (["1", "2"], [["x", "y"], ["X", "Y"]])


def test_fewer_columns_than_expected(tmp_path: Path) -> None:
    first, references = write(tmp_path / "h", "1\n2\n"), write(tmp_path / "r.tsv", "x\tX\ny\n")
    with pytest.raises(
        DataError, match=r"r\.tsv, line 2: 1 columns, expected 2 references separated by tabs$"
    ):
        read_files(first, [references], columns=2)


def test_the_message_about_different_lengths_names_both_files(tmp_path: Path) -> None:
    first, a, b = (
        write(tmp_path / name, text)
        for name, text in (("h", "1\n2\n"), ("a", "x\ny\n"), ("b", "X\n"))
    )
    with pytest.raises(DataError) as caught:
        read_files(first, [a, b])
    assert str(caught.value) == f"{b} has 1 lines, but {first} has 2"


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_empty_files_are_refused(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "h", text)
    with pytest.raises(DataError, match=r"h has only empty lines; there is nothing to score"):
        read_texts(path)


def test_the_digest_depends_on_every_text_and_its_position() -> None:
    digests = {
        EvaluationSet("", *texts).digest
        for texts in (
            (["a"], [["b"]]),
            (None, [["b"]]),
            (["b"], [["a"]]),
            (["a"], [["b"], ["b"]]),
            (["a"], [["b", ""]]),
        )
    }
    assert len(digests) == 5
    assert (
        EvaluationSet("one", ["a"], [["b"]]).digest == EvaluationSet("other", ["a"], [["b"]]).digest
    )


def test_picks_across_lengths() -> None:
    texts = ["x" * length for length in (9, 1, 5, 3, 7, 2)]
    assert [len(texts[i]) for i in pick_across_lengths(texts, 3)] == [2, 5, 9]
    assert sorted(pick_across_lengths(texts, 10)) == [*range(6)]
    assert pick_across_lengths([], 3) == []
