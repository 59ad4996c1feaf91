"""nmt.extras.analysis.alignment_error: the file format, and the rate worked out by hand."""

from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.extras.analysis.alignment_error import (
    ReferenceAlignment,
    alignment_error_rate,
    check_links,
    read_reference_alignments,
)


def write(folder: Path, text: str) -> Path:
    path = folder / "gold.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_sure_and_possible_links(tmp_path: Path) -> None:
    first, second = read_reference_alignments(write(tmp_path, "0-0 1?2\n\n"), 2)
    assert first == ReferenceAlignment(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2)}))
    assert second == ReferenceAlignment(frozenset(), frozenset())


def test_the_rate_by_hand() -> None:
    reference = [
        ReferenceAlignment(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)})),
        ReferenceAlignment(frozenset(), frozenset()),
    ]
    predicted = [frozenset({(0, 0), (2, 1), (3, 3)}), frozenset({(0, 0)})]
    # A & S = 1, A & P = 2, |A| = 3, |S| = 2; the second sentence has no reference links and does
    # not count.
    rate, sentences = alignment_error_rate(predicted, reference)
    assert rate == pytest.approx(1 - 3 / 5)
    assert sentences == 1
    assert alignment_error_rate([reference[0].sure, frozenset()], reference)[0] == 0
    assert alignment_error_rate([frozenset({(5, 5)}), frozenset()], reference)[0] == 1
    with pytest.raises(DataError, match="attends to no word"):
        alignment_error_rate([frozenset(), frozenset()], reference)
    only_possible = [
        ReferenceAlignment(frozenset(), frozenset({(0, 0)})),
        ReferenceAlignment(frozenset(), frozenset()),
    ]
    with pytest.raises(
        DataError, match="attends to no word"
    ):  # only in the sentence without reference links
        alignment_error_rate([frozenset(), frozenset({(0, 0)})], only_possible)


def test_links_to_missing_words_are_refused() -> None:
    reference = [ReferenceAlignment(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2)}))]
    check_links(reference, ["a b"], ["c d e"])
    text = (
        "line 1: a link goes to a missing word; the source has 2 words and the reference 2, "
        "counted from 0"
    )
    with pytest.raises(DataError, match=text):
        check_links(reference, ["a b"], ["c d"])


def test_invalid_alignments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DataError,
        match=r"gold\.txt, line 2: '1:2' is not a link; write source-target, for example 0-0, or 0\?0 if it is ",
    ):
        read_reference_alignments(write(tmp_path, "0-0\n1:2\n"), 2)
    with pytest.raises(DataError, match=r"gold\.txt, line 1: '9+-0' is not a link"):
        read_reference_alignments(write(tmp_path, f"{'9' * 5000}-0\n"), 1)
    with pytest.raises(
        DataError, match=r"gold\.txt has 2 lines, but there are 3 sentences to align$"
    ):
        read_reference_alignments(write(tmp_path, "0-0\n1-2\n"), 3)
    with pytest.raises(DataError, match="the reference alignments have no links"):
        alignment_error_rate([frozenset()], [ReferenceAlignment(frozenset(), frozenset())])
