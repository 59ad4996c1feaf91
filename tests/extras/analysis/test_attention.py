"""nmt.extras.analysis.attention: results that can be worked out by hand."""

import numpy as np
import pytest

from nmt.extras.analysis.attention import (
    by_coverage,
    by_position,
    loss_by_position,
    most_ignored,
)

SHARP = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # the last column belongs to <eos>
EVEN = np.full((3, 4), 0.25)


def test_entropy_and_sharpness() -> None:
    table = by_position([SHARP, EVEN])
    assert [row[:2] for row in table.rows] == [("1", 2), ("2", 2), ("3-4", 1)]
    entropy, share, sharpness = table.rows[0][2:]
    assert entropy == pytest.approx(
        np.log(4) / 2
    )  # that of even weights is log 4, of a sure choice 0
    assert share == pytest.approx(0.5)
    assert sharpness == pytest.approx((1 + 0.25) / 2)
    assert list(table.rows[2][2:]) == pytest.approx([np.log(4), 1, 0.25])


def test_coverage_leaves_the_end_of_the_sentence_out() -> None:
    twice = np.array([[0.0, 1.0, 0.0], [0.05, 0.95, 0.0], [0.0, 0.9, 0.1]])
    table = by_coverage([twice, EVEN])
    counts = {str(row[0]): row[1] for row in table.rows}
    assert counts == {
        "0 to 0.1 (ignored)": 1,
        "0.1 to 0.5": 0,
        "0.5 to 1.5": 3,
        "1.5 to 2": 0,
        "above 2 (too much)": 1,
    }
    assert sum(float(row[2]) for row in table.rows) == pytest.approx(100)


def test_most_ignored_tokens() -> None:
    once = np.array([[1.0, 0.0, 0.0]])
    table = most_ignored([once, once, once[:, ::-1]], [["a", "b"], ["a", "b"], ["a", "c"]])
    assert table.rows == [
        ("b", 2, 2, 100.0),
        ("a", 1, 3, pytest.approx(100 / 3)),
        ("c", 1, 1, 100.0),
    ]


def test_exposure_bias_is_the_mean_over_the_tokens_of_a_position() -> None:
    table = loss_by_position(
        [np.array([1.0, 2.0]), np.array([3.0])], [np.array([1.0, 5.0]), np.array([3.0])]
    )
    assert table.rows == [("1", 2, 2.0, 2.0, 0.0), ("2", 1, 2.0, 5.0, 3.0)]
