"""Colors, fonts and file formats of all pictures."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.errors import DataError, NmtError
from nmt.files import explain_write_errors, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Suffix -> the metadata to leave empty, so that the same content gives the same file.
PICTURE_FORMATS: Mapping[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}

INK, GRID = "#26323f", "#e1e6ec"
# for Chinese and Japanese
FALLBACK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans",
    "Hiragino Sans",
    "Microsoft YaHei",
    "WenQuanYi Zen Hei",
)


def check_path(path: Path) -> None:
    """Check that a picture can be written to `path`: call it before long work whose result the
    picture shows.

    Raises:
        NmtError: the suffix is not in `PICTURE_FORMATS`.
        DataError: the folder is missing.
    """
    if path.suffix.lower() not in PICTURE_FORMATS:
        raise NmtError(
            f"{path}: not a picture format; use a name that ends in {', '.join(PICTURE_FORMATS)}"
        )
    if not path.parent.is_dir():
        raise DataError(f"{path}: the folder {path.parent} does not exist")


@contextmanager
def settings() -> Iterator[None]:
    """matplotlib settings inside the `with` block only. It must enclose making and saving a figure:
    each reads some of them.
    """
    from matplotlib import font_manager, rc_context

    available = set(font_manager.get_font_names())
    families = ["DejaVu Sans", *(family for family in FALLBACK_FONTS if family in available)]
    with (
        rc_context({"font.family": families, "pdf.fonttype": 42, "svg.hashsalt": "nmt"}),
        warnings.catch_warnings(),
    ):
        # A letter that no font has is drawn as a box; the user can do nothing about it, and the
        # rest of the picture is right.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def save(figure: "Figure", path: Path, resolution: float, *, expand: bool) -> None:
    """Write a figure to `path`, which is replaced only when the new file is complete.

    Args:
        path: its suffix is the format, one of `PICTURE_FORMATS`.
        resolution: dots per inch.
        expand: enlarge the page to show what lies outside the figure; otherwise it has the figure's
            size.

    Raises:
        DataError: the file cannot be written.
    """
    suffix = path.suffix.lower()
    with explain_write_errors(path), replacing(path) as temporary, temporary.open("wb") as file:
        figure.savefig(
            file,
            format=suffix[1:],
            dpi=resolution,
            bbox_inches="tight" if expand else None,
            pad_inches=0.2,
            facecolor="white",
            metadata=PICTURE_FORMATS[suffix],
        )
