"""nmt.evaluation.results: files that correspond line by line, and files that do not."""

import gzip
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


def test_packed_files_are_read_whatever_their_name(tmp_path: Path, first: Path) -> None:
    packed = tmp_path / "references"
    packed.write_bytes(gzip.compress(b"x\ny\n"))
    assert read_files(first, [packed]) == (["1", "2"], [["x", "y"]])


SGML = """<!DOCTYPE mteval SYSTEM "x.dtd">
<refset setid="small" srclang="en" trglang="de">
<DOC sysid="a" docid="1">
<hl><seg id="1">Wind &amp; Wetter</seg></hl>
  <SEG id="2"> Der Hund
  sieht  ihn. </SEG>
<seg id="3"></seg><seg id="4"/><seg id="5">Ja.</seg>
</DOC></refset>
"""


def test_the_segments_of_sgml_are_the_sentences(tmp_path: Path) -> None:
    sentences = ["Wind & Wetter", "Der Hund sieht ihn.", "", "", "Ja."]
    plain, sgml = write(tmp_path / "h", "\n".join(sentences)), write(tmp_path / "r.txt", SGML)
    assert read_files(sgml, [plain, sgml]) == (sentences, [sentences, sentences])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "<?xml version='1.0'?>\n<doc><src><seg>a</seg></src><ref><seg>b</seg></ref></doc>\n",
            "XML",
        ),
        ("<tmx><tuv><seg>a</seg></tuv><tuv><seg>b</seg></tuv></tmx>\n", "XML"),
        ("<html>\n<p>a</p>\n", "XML"),
        ("a\tA\nb\tB\n", "2 of 2 lines have tabs"),
        ("a\tA\nb\tB\tb\n", "2 of 2 lines have tabs"),
        ("a\n\n1\tb\n", "1 of 2 lines have tabs"),
    ],
)
def test_what_is_no_sentence_per_line_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = write(tmp_path / "r", text)
    for first, references, advice in ((path, [], "cut -f"), (path, [path], "cut -f")):
        with pytest.raises(DataError, match=problem) as caught:
            read_files(first, references)
        assert problem == "XML" or advice in str(caught.value)
    plain = write(tmp_path / "h", "a\n" * text.count("\n"))
    with pytest.raises(DataError, match=problem) as caught:
        read_files(plain, [path])
    assert problem == "XML" or "--columns" in str(caught.value)


def test_text_may_have_a_few_tabs_and_tags(tmp_path: Path) -> None:
    lines = ["<unk> a", "b\tc", *["d"] * 18]
    path = write(tmp_path / "h", "\n".join(lines))
    assert read_files(path, [path]) == (lines, [lines])
    table = write(tmp_path / "t", "a\tb\n")  # the number of columns is given: a tab is text
    assert read_files(write(tmp_path / "one", "a\n"), [table], 1) == (["a"], [["a\tb"]])


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
