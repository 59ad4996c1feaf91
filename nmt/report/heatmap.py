"""A picture of the attention: for each output token, its weights over the source tokens."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nmt.report.style import GRID, INK, check_path, save, settings
from nmt.text.tokenizers import JOINER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOR_MAP = "Blues"  # lightness falls evenly from 0 (nearly white) to 1
MIN_CELL, MAX_CELL = 0.22, 0.46  # inches
TARGET_SIZE = 14.0  # inches: cells of long sentences shrink to keep the longer side near it
POINTS_PER_INCH = 72.0
RESOLUTION = 160.0  # dots per inch
MAX_PIXELS = 16_000  # along a side; image formats and viewers fail somewhere above
MAX_LABEL_LENGTH = 28  # characters
MAX_CELLS_WITH_VALUES = 260  # in larger pictures numbers would only distract
MIN_VALUE = 0.05  # smaller weights are not written into their cells


def draw(
    source: Sequence[str],
    output: Sequence[str],
    weights: NDArray[np.floating[Any]],
    path: Path,
) -> None:
    """Draw `weights` with the source tokens on top and the output tokens on the left.

    Args:
        source: S tokens.
        output: T tokens.
        weights: [T, S], each 0..1: row t is the attention of output token t.
        path: its suffix sets the format; an old file is replaced only when the new one is complete.

    Raises:
        NmtError: the suffix is not in `style.PICTURE_FORMATS`.
        DataError: the folder is missing, or the file cannot be written.
    """
    check_path(path)
    with settings():
        figure = _figure(source, output, weights)
        # Fewer dots for a very large picture.
        resolution = min(RESOLUTION, MAX_PIXELS / (float(max(figure.get_size_inches())) + 6))
        save(figure, path, resolution, expand=True)


def _figure(
    source: Sequence[str],
    output: Sequence[str],
    weights: NDArray[np.floating[Any]],
) -> "Figure":
    """The cells fill the figure exactly; what lies outside needs `expand` when it is saved."""
    from matplotlib.figure import Figure

    cell = float(np.clip(TARGET_SIZE / max(weights.shape), MIN_CELL, MAX_CELL))
    height, width = cell * weights.shape[0], cell * weights.shape[1]
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    mesh = axes.pcolormesh(weights, cmap=COLOR_MAP, vmin=0, vmax=1, edgecolors=GRID, linewidth=0.5)
    axes.invert_yaxis()
    _label(axes, source, output, cell)
    if weights.size <= MAX_CELLS_WITH_VALUES:
        for (row, column), weight in np.ndenumerate(weights):
            if weight >= MIN_VALUE:
                axes.text(
                    column + 0.5,
                    row + 0.5,
                    f"{weight:.2f}",
                    ha="center",
                    va="center",
                    fontsize=0.23 * cell * POINTS_PER_INCH,
                    color="white" if weight > 0.55 else INK,
                )
    scale_height = float(np.clip(height, 0.9, 2.6))
    scale = figure.add_axes(
        (1 + 0.28 / width, 1 - scale_height / height, 0.11 / width, scale_height / height)
    )
    bar = figure.colorbar(mesh, cax=scale, ticks=[0, 0.5, 1])
    bar.outline.set_visible(False)
    scale.tick_params(length=0, pad=4, labelsize=8, labelcolor=INK)
    return figure


def _label(axes: "Axes", source: Sequence[str], output: Sequence[str], cell: float) -> None:
    size = min(0.36 * cell * POINTS_PER_INCH, 12)
    # Vertical where the columns are too narrow for slanted words.
    rotation = (
        {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
        if cell > 0.3
        else {"rotation": 90}
    )
    axes.xaxis.tick_top()
    # parse_math=False: a "$" in a token does not start a formula.
    axes.set_xticks(
        np.arange(len(source)) + 0.5,
        list(map(_shorten, source)),
        fontsize=size,
        color=INK,
        parse_math=False,
        **rotation,
    )
    axes.set_yticks(
        np.arange(len(output)) + 0.5,
        list(map(_shorten, output)),
        fontsize=size,
        color=INK,
        parse_math=False,
    )
    axes.tick_params(length=0, pad=4)
    axes.spines[:].set_visible(False)


def _shorten(token: str) -> str:
    word = token.removeprefix(JOINER)  # few fonts have the mark, and it adds nothing here
    return word if len(word) <= MAX_LABEL_LENGTH else word[: MAX_LABEL_LENGTH - 1] + "…"
