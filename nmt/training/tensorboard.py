"""What TensorBoard shows of a training."""

from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nmt.training.console import Validation

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorBoardWriter:
    """Writes event files for TensorBoard; used as a context, at whose end they are closed, however it ends.

    Each call is in the file when it returns. A file that cannot be written ends no training: it is said once, and nothing more is
    written.
    """

    def __init__(self, folder: Path, step: int, warn: Callable[[str], None]) -> None:
        """What earlier trainings have written into `folder` for later steps than `step` is no longer shown.

        warn: told, in a line, what went wrong.
        """
        self.folder, self.warn = folder, warn
        self.writer: SummaryWriter | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # TensorBoard forgets nothing at the first start that it reads of, so there is one at the head of each file.
            self.writer = _open(folder, first_step=step + 1)
        except OSError as error:
            self._give_up(error)

    def __enter__(self) -> "TensorBoardWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.writer is not None:
            try:
                self.writer.close()
            except OSError as fault:
                self._give_up(fault)

    def update(self, step: int, figures: Mapping[str, float]) -> None:
        """Figures of an interval of training."""
        self._write(step, {f"train/{name}": value for name, value in figures.items()})

    def validation(self, step: int, result: Validation) -> None:
        """Scores on the dev set, the sample translations, and the attention of one of them."""
        # As code, which shows letter by letter what Markdown would take for emphasis or a list.
        texts = {f"samples/{number}": f"```\n{sample}\n```" for number, sample in enumerate(result.samples, 1)}
        images = {} if result.attention is None else {"attention": result.attention}
        self._write(step, {f"validation/{name}": value for name, value in result.figures.items()}, texts, images)

    def _write(
        self, step: int, scalars: Mapping[str, float], texts: Mapping[str, str] = {}, images: Mapping[str, bytes] = {}
    ) -> None:
        if self.writer is None:
            return
        try:
            for name, value in scalars.items():
                self.writer.add_scalar(name, value, step)
            for name, text in texts.items():
                self.writer.add_text(name, text, step)
            for name, png in images.items():
                self.writer.add_image(name, _pixels(png), step, dataformats="HWC")
            self.writer.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.writer = None
        self.warn(f"{self.folder}: cannot be written ({error.strerror or error}); training goes on without it")


def _open(folder: Path, first_step: int) -> "SummaryWriter":
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder), purge_step=first_step)
    writer.flush()
    return writer


def _pixels(png: bytes) -> NDArray[np.uint8]:
    """[height, width, 3]"""
    from PIL import Image

    with Image.open(BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"))
