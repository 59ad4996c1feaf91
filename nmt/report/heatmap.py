"""A picture of the attention: which source words each output word looked at."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError, NmtError
from nmt.files import replacing
from nmt.text.tokenizers import JOINER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What may be written, and the field of its metadata that is left empty so that the same attention gives the same file.
FORMATS: Mapping[str, dict[str, None]] = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

COLOURS = "Blues"  # its lightness falls evenly from 0 (nearly white) to 1
INK, GRID = "#26323f", "#e1e6ec"
FALLBACK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans",
    "Hiragino Sans",
    "Microsoft YaHei",
    "WenQuanYi Zen Hei",
)
CELL_MIN, CELL_MAX = 0.22, 0.46  # inches
WIDTH_SOUGHT = 14.0  # inches: cells shrink so that long sentences stay near it
POINTS = 72.0  # in an inch
PIXELS_MAX = 16_000  # along a side; image formats and viewers give up somewhere above
LABEL_LENGTH_MAX = 28  # characters
VALUES_IN_CELLS_MAX = 260  # more cells than this, and figures in them only disturb
VALUE_MIN = 0.05  # smaller weights are not written into their cells


def check_path(path: Path) -> None:
    """Whether a picture can be written to `path`: worth asking before the work that it is to show.

    Raises:
        NmtError: the suffix is none of `FORMATS`.
        DataError: the folder is missing.
    """
    if path.suffix.lower() not in FORMATS:
        raise NmtError(f"{path}: pictures are written as {', '.join(FORMATS)}; end the name with one of these")
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent} to put the picture in")


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
    assert weights.shape == (len(output), len(source)), f"weights {weights.shape} for {len(output)} x {len(source)} tokens"
    assert weights.size, "no attention to draw"
    check_path(path)
    # Some of these settings are read when the figure is made, others when it is saved.
    with _settings():
        _save(_figure(source, output, weights, title), path)


def _figure(source: Sequence[str], output: Sequence[str], weights: NDArray[np.floating[Any]], title: str | None) -> "Figure":
    """The cells fill the figure exactly; labels and scale lie outside it, and saving widens the page to hold them."""
    from matplotlib.figure import Figure

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


@contextmanager
def _settings() -> Iterator[None]:
    from matplotlib import font_manager, rc_context

    present = set(font_manager.get_font_names())
    families = ["DejaVu Sans", *(family for family in FALLBACK_FONTS if family in present)]
    with rc_context({"font.family": families, "pdf.fonttype": 42, "svg.hashsalt": "nmt"}), warnings.catch_warnings():
        # A box stands for a letter that no font has; the user cannot mend that, and the weights are right all the same.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def _save(figure: "Figure", path: Path) -> None:
    """Write beside `path`, then rename: a picture is whole or not there."""
    suffix = path.suffix.lower()
    resolution = min(160.0, PIXELS_MAX / (max(figure.get_size_inches()) + 6))
    try:
        with replacing(path) as temporary, temporary.open("wb") as file:
            figure.savefig(
                file,
                format=suffix[1:],
                dpi=resolution,
                bbox_inches="tight",
                pad_inches=0.2,
                facecolor="white",
                metadata=FORMATS[suffix],
            )
    except OSError as error:
        raise DataError(f"{path}: the picture cannot be written ({error.strerror or error})") from None
