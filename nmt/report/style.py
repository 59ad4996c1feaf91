"""What all pictures share: their colours and fonts, and how they are written."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from nmt.errors import DataError, NmtError
from nmt.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What may be written, and the field of its metadata that is left empty so that the same content gives the same file.
FORMATS: Mapping[str, dict[str, None]] = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

INK, GRID = "#26323f", "#e1e6ec"
FALLBACK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans",
    "Hiragino Sans",
    "Microsoft YaHei",
    "WenQuanYi Zen Hei",
)


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


@contextmanager
def settings() -> Iterator[None]:
    """Fonts and the like, within and nowhere else: some are read when a figure is made, others when it is saved."""
    from matplotlib import font_manager, rc_context

    present = set(font_manager.get_font_names())
    families = ["DejaVu Sans", *(family for family in FALLBACK_FONTS if family in present)]
    with rc_context({"font.family": families, "pdf.fonttype": 42, "svg.hashsalt": "nmt"}), warnings.catch_warnings():
        # A box stands for a letter that no font has; the user cannot mend that, and the picture is right all the same.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def write(figure: "Figure", file: IO[bytes], suffix: str, resolution: float, *, widened: bool) -> None:
    """Write `figure` in the format of `suffix`, at `resolution` in dots per inch.

    widened: the page grows to hold what lies outside the figure; otherwise it is the figure's size.
    """
    figure.savefig(
        file,
        format=suffix[1:],
        dpi=resolution,
        bbox_inches="tight" if widened else None,
        pad_inches=0.2,
        facecolor="white",
        metadata=FORMATS[suffix],
    )


def save(figure: "Figure", path: Path, resolution: float, *, widened: bool) -> None:
    """As `write`; beside `path`, then renamed: a picture is whole or not there.

    Raises:
        DataError: the file cannot be written.
    """
    try:
        with replacing(path) as temporary, temporary.open("wb") as file:
            write(figure, file, path.suffix.lower(), resolution, widened=widened)
    except OSError as error:
        raise DataError(f"{path}: the picture cannot be written ({error.strerror or error})") from None
