"""Event files for TensorBoard, in the folder tensorboard/ of a run."""

import threading
from collections.abc import Mapping
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.config.schema import Config
from nmt.errors import NmtError
from nmt.training.record import BeginEvent, EndEvent, Event, StepEvent, ValidationEvent
from nmt.training.validation import Validation

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


def open_listener(folder: Path, config: Config, step: int) -> "TensorBoard | None":
    """A listener for the training of a run, which continues after `step`; None without the
    library.
    """
    if find_spec("tensorboard") is None:
        return None
    return TensorBoard(folder / "tensorboard", step, config.training.log_every)


class TensorBoard:
    """Writes a new event file from the first event on, and flushes it after each that has figures.

    Args:
        step: TensorBoard hides the values of later steps in earlier files.
        log_every: updates between figures of the training.
    """

    def __init__(self, folder: Path, step: int, log_every: int) -> None:
        self.folder, self.step, self.log_every = folder, step, log_every
        self._report_of_thread = threading.excepthook

    @cached_property
    def writer(self) -> "SummaryWriter":
        from torch.utils.tensorboard import SummaryWriter

        threading.excepthook = self._report_thread
        # TensorBoard ignores purge_step in the first start event that it reads, so each file begins
        # with one.
        return SummaryWriter(str(self.folder), purge_step=self.step + 1)

    def __call__(self, event: Event) -> None:
        try:
            match event:
                case BeginEvent():
                    self.writer.flush()
                case StepEvent() if event.step % self.log_every == 0:
                    self._write(event.step, "train", event.figures)
                case ValidationEvent():
                    self._write_validation(event.step, event.result)
                case EndEvent():
                    self.writer.close()
                    threading.excepthook = self._report_of_thread
        except OSError as error:
            threading.excepthook = self._report_of_thread
            raise NmtError(
                f"{self.folder}: cannot be written ({error.strerror or error})"
            ) from None

    def _write(self, step: int, group: str, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self.writer.add_scalar(f"{group}/{name}", value, step)
        self.writer.flush()

    def _write_validation(self, step: int, result: Validation) -> None:
        """The figures, and the sample translations."""
        for number, sample in enumerate(result.samples, start=1):
            # As a code block, since Markdown would read some characters as emphasis or a list.
            self.writer.add_text(f"samples/{number}", f"```\n{sample}\n```", step)
        self._write(step, "validation", result.figures)

    def _report_thread(self, arguments: threading.ExceptHookArgs) -> None:
        # The thread of TensorBoard would print a traceback; the next flush raises its error.
        is_own = type(arguments.thread).__module__.startswith("tensorboard.")
        if not (is_own and isinstance(arguments.exc_value, OSError)):
            self._report_of_thread(arguments)
