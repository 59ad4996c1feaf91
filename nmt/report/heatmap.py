"""A picture of the attention: which source words each output word looked at."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nmt.report.style import GRID, INK, check_path, save, settings, write
from nmt.text.tokenizers import JOINER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = "Blues"  # its lightness falls evenly from 0 (nearly white) to 1
CELL_MIN, CELL_MAX = 0.22, 0.46  # inches
WIDTH_SOUGHT = 14.0  # inches: cells shrink so that long sentences stay near it
POINTS = 72.0  # in an inch
RESOLUTION, RESOLUTION_SMALL = 160.0, 100.0  # dots per inch
PIXELS_MAX = 16_000  # along a side; image formats and viewers give up somewhere above
LABEL_LENGTH_MAX = 28  # characters
VALUES_IN_CELLS_MAX = 260  # more cells than this, and figures in them only disturb
VALUE_MIN = 0.05  # smaller weights are not written into their cells


def draw(
    source: Sequence[str], output: Sequence[str], weights: NDArray[np.floating[Any]], path: Path, title: str | None = None
) -> None:
    """Draw `weights` with the source tokens on top and the output tokens at the left; the suffix of `path` says the format.

    Args:
        source: S tokens.
        output: T tokens.
        weights: [T, S], each 0..1: row t is what output token t looked at.
        path: replaced, if it exists, only when the new picture is whole.
        title: stands above the picture.

    Raises:
        NmtError: the suffix is none of `FORMATS`.
        DataError: the folder is missing, or the file cannot be written.
    """
    check_path(path)
    with settings():
        figure = _figure(source, output, weights, title)
        save(figure, path, _resolution(figure, RESOLUTION), widened=True)


def to_png(source: Sequence[str], output: Sequence[str], weights: NDArray[np.floating[Any]], title: str | None = None) -> bytes:
    """The picture that `draw` writes, smaller, as the bytes of a PNG file."""
    file = BytesIO()
    with settings():
        figure = _figure(source, output, weights, title)
        write(figure, file, ".png", _resolution(figure, RESOLUTION_SMALL), widened=True)
    return file.getvalue()


def _figure(source: Sequence[str], output: Sequence[str], weights: NDArray[np.floating[Any]], title: str | None) -> "Figure":
    """The cells fill the figure exactly; labels and scale lie outside it, and saving widens the page to hold them."""
    from matplotlib.figure import Figure

    assert weights.shape == (len(output), len(source)), f"weights {weights.shape} for {len(output)} x {len(source)} tokens"
    assert weights.size, "no attention to draw"
    cell = float(np.clip(WIDTH_SOUGHT / max(weights.shape), CELL_MIN, CELL_MAX))
    height, width = cell * weights.shape[0], cell * weights.shape[1]
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    mesh = axes.pcolormesh(weights, cmap=COLOURS, vmin=0, vmax=1, edgecolors=GRID, linewidth=0.5)
    axes.invert_yaxis()
    _label(axes, source, output, cell)
    if weights.size <= VALUES_IN_CELLS_MAX:
        _write_values(axes, weights, cell)
    if title is not None:
        lines = fill(title, max(40, int(width * POINTS / 6)))  # a character is about 6 points wide
        axes.set_title(lines, loc="left", pad=14, fontsize=11, color=INK, parse_math=False)

    scale_height = float(np.clip(height, 0.9, 2.6))
    scale = figure.add_axes((1 + 0.28 / width, 1 - scale_height / height, 0.11 / width, scale_height / height))
    bar = figure.colorbar(mesh, cax=scale, ticks=[0, 0.5, 1])
    bar.outline.set_visible(False)
    scale.tick_params(length=0, pad=4, labelsize=8, labelcolor=INK)
    return figure


def _label(axes: "Axes", source: Sequence[str], output: Sequence[str], cell: float) -> None:
    size = min(0.36 * cell * POINTS, 12)
    # Upright where the columns are too narrow for slanting words to stay apart.
    slant = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"} if cell > 0.3 else {"rotation": 90}
    axes.xaxis.tick_top()
    # A "$" in a token is money, not the beginning of a formula.
    axes.set_xticks(
        np.arange(len(source)) + 0.5, list(map(_shortened, source)), fontsize=size, color=INK, parse_math=False, **slant
    )
    axes.set_yticks(np.arange(len(output)) + 0.5, list(map(_shortened, output)), fontsize=size, color=INK, parse_math=False)
    axes.tick_params(length=0, pad=4)
    axes.spines[:].set_visible(False)


def _write_values(axes: "Axes", weights: NDArray[np.floating[Any]], cell: float) -> None:
    for (row, column), weight in np.ndenumerate(weights):
        if weight >= VALUE_MIN:
            ink = "white" if weight > 0.55 else INK
            axes.text(column + 0.5, row + 0.5, f"{weight:.2f}", ha="center", va="center", fontsize=0.23 * cell * POINTS, color=ink)


def _shortened(token: str) -> str:
    word = token.removeprefix(JOINER)  # few fonts have the mark, and beside a grid nobody misses it
    return word if len(word) <= LABEL_LENGTH_MAX else word[: LABEL_LENGTH_MAX - 1] + "…"


def _resolution(figure: "Figure", sought: float) -> float:
    """Dots per inch: as sought, or fewer for a very large picture."""
    return min(sought, PIXELS_MAX / (float(max(figure.get_size_inches())) + 6))
