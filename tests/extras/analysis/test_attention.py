"""nmt.extras.analysis.attention: results that can be worked out by hand."""

import numpy as np
import pytest

from nmt.extras.analysis.attention import by_position

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
