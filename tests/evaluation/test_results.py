"""nmt.evaluation.results: files that correspond line by line, and files that do not."""

from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.evaluation.results import EvaluationSet, pick_across_lengths, read_files


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8"))
    return path


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return write(tmp_path / "h", "1\n2\n")


def test_references_are_files_or_columns(tmp_path: Path, first: Path) -> None:
    a, b = write(tmp_path / "a", "x\ny\n"), write(tmp_path / "b", "X\r\n\r\n")
    assert read_files(first, [a, b]) == (["1", "2"], [["x", "y"], ["X", ""]])
    table = write(tmp_path / "r.tsv", "x\tX\ny\tY\n")
    assert read_files(first, [table], columns=2) == (["1", "2"], [["x", "y"], ["X", "Y"]])


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("X\n", 1, "{path} has 1 lines, but {first} has 2"),
        ("x\tX\ny\n", 2, "{path}, line 2: 1 columns, expected 2 references separated by tabs"),
        ("\n \n", 1, "{path} has only empty lines; there is nothing to score"),
    ],
)
def test_references_that_do_not_fit(
    tmp_path: Path, first: Path, text: str, columns: int, message: str
) -> None:
    path = write(tmp_path / "r", text)
    with pytest.raises(DataError) as caught:
        read_files(first, [path], columns)
    assert str(caught.value) == message.format(path=path, first=first)


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
