"""nmt.extras.analysis.attention: results that can be worked out by hand."""

import re
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.extras.analysis.attention import (
    alignment_error_rate,
    by_position,
    read_reference_alignments,
)

SHARP = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], np.float32)  # the last column belongs to <eos>
EVEN = np.full((3, 4), 0.25, np.float32)


def test_entropy_and_sharpness() -> None:
    table = by_position([SHARP, EVEN])
    assert [row[:2] for row in table.rows] == [("1", 2), ("2", 2), ("3-4", 1)]
    entropy, share, sharpness = table.rows[0][2:]
    assert entropy == pytest.approx(np.log(4) / 2)  # of even weights log 4, of a sure choice 0
    assert share == pytest.approx(0.5)
    assert sharpness == pytest.approx((1 + 0.25) / 2)
    assert list(table.rows[2][2:]) == pytest.approx([np.log(4), 1, 0.25])


def test_sure_and_possible_links(tmp_path: Path) -> None:
    path = tmp_path / "gold.txt"
    path.write_text("0-0 1?2\n\n", encoding="utf-8")
    first, second = read_reference_alignments(path, ["a b", "a"], ["c d e", "c"])
    assert [*map(set, first)] == [{(0, 0)}, {(0, 0), (1, 2)}]
    assert not any(second)


def test_the_rate_by_hand() -> None:
    reference = [
        (frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)})),
        (frozenset[tuple[int, int]](), frozenset[tuple[int, int]]()),
    ]
    predicted = [frozenset({(0, 0), (2, 1), (3, 3)}), frozenset({(0, 0)})]
    # A & S = 1, A & P = 2, |A| = 3, |S| = 2; the second sentence has no reference links and does
    # not count.
    rate, sentences = alignment_error_rate(predicted, reference)
    assert rate == pytest.approx(1 - 3 / 5)
    assert sentences == 1
    assert alignment_error_rate([reference[0][0], frozenset()], reference)[0] == 0
    assert alignment_error_rate([frozenset({(5, 5)}), frozenset()], reference)[0] == 1
    nothing = [frozenset[tuple[int, int]]()] * 2
    only_possible = [(nothing[0], frozenset({(0, 0)})), reference[1]]
    for links, gold in ((nothing, reference), ([nothing[0], predicted[1]], only_possible)):
        with pytest.raises(DataError, match="no alignment error rate"):
            alignment_error_rate(links, gold)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0\n1:2\n", "gold.txt, line 2: '1:2' is not a link; write source-target, for example"),
        (f"{'9' * 5000}-0\n\n", "gold.txt, line 1: '9"),
        ("0-0\n", "gold.txt has 1 lines, but there are 2 sentences to align"),
        (
            "0-0\n0?1 2-0",
            "gold.txt, line 2: 2-0 goes to a missing word; the source has 2 words and the "
            "reference 3, counted from 0",
        ),
    ],
)
def test_invalid_alignments_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "gold.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(message)):
        read_reference_alignments(path, ["a", "a b"], ["c", "c d e"])
