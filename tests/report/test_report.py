"""nmt.report: pictures are complete, show the values, and print nothing; tables."""

import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nmt.report import heatmap
from nmt.report.table import Table


@pytest.fixture(scope="module", autouse=True)
def quick_pictures() -> None:
    """In place of that of all tests: pictures are drawn here."""


SOURCE = ["He", "paid", "$5", "or", "$6", "."]
OUTPUT = ["Er", "▁zahlte", "￭fünf", "<eos>"]


def random_weights(n_output: int, n_source: int) -> NDArray[np.float32]:
    """Weights that sum to 1 in each row."""
    weights: NDArray[np.float32] = np.random.default_rng(1).random(
        (n_output, n_source), dtype=np.float32
    )
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


WEIGHTS = random_weights(len(OUTPUT), len(SOURCE))
STARTS = {".png": b"\x89PNG\r\n", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", [*STARTS, ".PNG"])
def test_the_suffix_says_the_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"attention{suffix}"
    heatmap.draw(SOURCE, OUTPUT, WEIGHTS, path)
    assert path.read_bytes().startswith(STARTS[suffix.lower()])
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_tokens_stand_as_they_are_and_where_they_belong(
    tmp_path: Path, figures: list[Figure]
) -> None:
    heatmap.draw(SOURCE, OUTPUT, WEIGHTS, tmp_path / "a.png")
    axes, scale = figures[0].axes
    top, left = axes.get_xticklabels(), axes.get_yticklabels()
    assert [label.get_text() for label in top] == SOURCE
    assert [label.get_text() for label in left] == ["Er", "▁zahlte", "fünf", "<eos>"]
    assert not any(label.get_parse_math() for label in [*top, *left])
    assert axes.xaxis.get_ticks_position() == "top"
    assert axes.yaxis_inverted()
    assert scale.get_ylim() == (0, 1)
    (mesh,) = axes.collections
    np.testing.assert_array_equal(mesh.get_array(), WEIGHTS)
    assert mesh.get_clim() == (0, 1)


def test_only_small_pictures_have_numbers_in_their_cells(
    tmp_path: Path, figures: list[Figure]
) -> None:
    for n in (3, 40):
        heatmap.draw(["a"] * n, ["b"] * n, np.eye(n), tmp_path / "a.png")
    small, large = ([text.get_text() for text in figure.axes[0].texts] for figure in figures)
    assert small == ["1.00", "1.00", "1.00"]
    assert large == []


@pytest.mark.parametrize(("n_output", "n_source"), [(1, 1), (1, 30), (60, 80)])
def test_any_size(tmp_path: Path, n_output: int, n_source: int) -> None:
    path = tmp_path / "a.png"
    heatmap.draw(
        [f"wört{i}" for i in range(n_source)],
        ["Donaudampfschifffahrt" * 3] * n_output,
        random_weights(n_output, n_source),
        path,
    )
    header = path.read_bytes()[16:24]
    for size in (header[:4], header[4:]):
        assert 60 < int.from_bytes(size, "big") < heatmap.MAX_PIXELS


@pytest.mark.parametrize("token", ["中文", "🙂", "\t", "", "$\\frac{", "\u0301", "%s {x} <b>&"])
def test_no_token_warns_or_fails(
    tmp_path: Path, token: str, capfd: pytest.CaptureFixture[str]
) -> None:
    # Warnings are errors in this test run.
    for name in ("a.png", "a.svg"):
        heatmap.draw([token], [token], np.ones((1, 1)), tmp_path / name)
    assert capfd.readouterr() == ("", "")


def test_global_settings_of_matplotlib_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib

    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    before = matplotlib.rcParams.copy()
    heatmap.draw(SOURCE, OUTPUT, WEIGHTS, tmp_path / "a.png")
    assert matplotlib.rcParams.copy() == before
    assert "matplotlib.pyplot" not in sys.modules


# Tables

TABLE = Table(
    "name",
    "Heading",
    ("group", "count", "score"),
    [("short", 1234, 5.25), ("a longer one", 7, 66.0)],
    "a note",
)


def test_words_are_left_aligned_and_numbers_right_aligned() -> None:
    assert TABLE.to_text().splitlines() == [
        "Heading",
        "a note",
        "group         count  score",
        "short         1,234    5.2",
        "a longer one      7   66.0",
    ]


def test_json_values_are_not_rounded() -> None:
    assert TABLE.to_dict() == [
        {"group": "short", "count": 1234, "score": 5.25},
        {"group": "a longer one", "count": 7, "score": 66.0},
    ]


def test_no_rows() -> None:
    assert Table("name", "Heading", ("group", "count"), []).to_text().splitlines() == [
        "Heading",
        "group  count",
    ]
