"""Event files for TensorBoard."""

import threading
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nmt.training.validation import Validation

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorBoardWriter:
    """Writes event files for TensorBoard, until `close`.

    Each call flushes the file. If writing fails, it warns once and writes nothing more; the
    training continues.
    """

    def __init__(self, folder: Path, step: int, warn: Callable[[str], None]) -> None:
        """Open a new file in `folder`. TensorBoard then hides the values of later steps than `step`
        in earlier files.

        Args:
            warn: called with a line if writing fails.
        """
        self.folder, self.warn = folder, warn
        self.writer: SummaryWriter | None = None
        self._report_of_thread, threading.excepthook = threading.excepthook, self._report_thread
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # TensorBoard ignores purge_step in the first start event that it reads, so each file
            # begins with one.
            self.writer = _open(folder, first_step=step + 1)
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the files."""
        threading.excepthook = self._report_of_thread
        if self.writer is not None:
            try:
                self.writer.close()
            except OSError as error:
                self._give_up(error)

    def update(self, step: int, figures: Mapping[str, float]) -> None:
        """Write the figures of a training interval."""
        self._write(step, {f"train/{name}": value for name, value in figures.items()})

    def validation(self, step: int, result: Validation) -> None:
        """Write the figures on the dev set, the sample translations, and the attention of one of
        them.
        """
        # As a code block, since Markdown would read some characters as emphasis or a list.
        texts = {
            f"samples/{number}": f"```\n{sample}\n```"
            for number, sample in enumerate(result.samples, 1)
        }
        images = {} if result.attention is None else {"attention": result.attention}
        self._write(
            step,
            {f"validation/{name}": value for name, value in result.figures.items()},
            texts,
            images,
        )

    def _write(
        self,
        step: int,
        scalars: Mapping[str, float],
        texts: Mapping[str, str] = {},
        images: Mapping[str, bytes] = {},
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

    def _report_thread(self, arguments: threading.ExceptHookArgs) -> None:
        # The thread of TensorBoard would print a traceback; the next flush raises its error, which
        # becomes a warning.
        if not (
            isinstance(arguments.exc_value, OSError)
            and type(arguments.thread).__module__.startswith("tensorboard.")
        ):
            self._report_of_thread(arguments)

    def _give_up(self, error: OSError) -> None:
        self.writer = None
        self.warn(
            f"{self.folder}: cannot be written ({error.strerror or error}); the training "
            "continues without it"
        )


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
