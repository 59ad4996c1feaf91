"""The events of a training on stderr: a live view at a terminal, otherwise lines."""

import os
import sys
from contextlib import suppress
from textwrap import indent
from types import TracebackType

from nmt.config.schema import Config
from nmt.training.events import (
    BeginEvent,
    EndEvent,
    Event,
    MessageEvent,
    StepEvent,
    ValidationEvent,
)
from nmt.training.interrupt import write_notice


class Console:
    """Prints the events of a training as lines. Used as a context, so that a live view can close.

    A training does not end because nobody can read it: errors of writing, as of a closed terminal
    or a full disk, are ignored.
    """

    def __init__(self, config: Config, *, quiet: bool = False) -> None:
        self.config, self.quiet = config, quiet
        self._has_begun = False

    def __enter__(self) -> "Console":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def show(self, event: Event) -> None:
        """Print an event."""
        with suppress(OSError):
            match event:
                case MessageEvent():
                    self.message(event)
                case BeginEvent():
                    self.begin(event)
                case StepEvent():
                    self.step(event)
                case ValidationEvent():
                    self.validation(event)
                case EndEvent():
                    self.end(event)

    def notify_stop(self) -> None:
        """Say that the training will stop; called by a signal handler."""
        write_notice()

    def message(self, event: MessageEvent) -> None:
        """Print a line; a warning even if quiet."""
        if event.is_warning:
            _write(f"nmt: {event.text}")
        else:
            self.info(event.text)

    def begin(self, event: BeginEvent) -> None:
        """Print what is trained, on how much data and where."""
        self._has_begun = True
        where = f"{event.device}, {event.n_threads} thread{'s' * (event.n_threads > 1)}"
        where += f", {event.precision}" if event.precision != "float32" else ""
        where += f", in {event.n_processes} processes" if event.n_processes > 1 else ""
        self.info(
            f"{event.folder}: {event.n_parameters:,} parameters, {event.n_pairs:,} pairs, on "
            f"{where}"
        )
        if event.step:
            self.info(f"resuming from step {event.step}")

    def step(self, event: StepEvent) -> None:
        """Print the figures at the end of each interval."""
        if event.step % self.config.training.log_every == 0:
            figures = (
                f"loss {event.loss:.3f}  perplexity {event.perplexity:.1f}  "
                f"{event.tokens_per_second:,.0f} tokens/s"
            )
            self.info(f"step {event.step}  epoch {event.epoch}  {figures}")

    def validation(self, event: ValidationEvent) -> None:
        """Print the figures of a validation, and one of its samples."""
        result = event.result
        figures = (
            f"dev loss {result.loss:.3f}  perplexity {result.perplexity:.2f}  BLEU "
            f"{result.bleu:.2f}  chrF {result.chrf:.2f}"
        )
        self.info(f"step {event.step}  validation  {figures}  ({event.seconds:.0f} s)")
        if (sample := result.middle_sample) is not None:
            self.info(indent(str(sample), "    "))

    def end(self, event: EndEvent) -> None:
        """Print why the training ended, and which commands come next."""
        folder, progress = event.folder, event.progress
        if self._has_begun:
            self.info(
                f"done after {progress.step} steps and {progress.seconds / 60:.1f} minutes: "
                f"{progress.finished}"
            )
            self.info(f'next: nmt evaluate {folder}    nmt translate --run {folder} "..."')
        else:
            self.info(
                f"{folder}: already trained, to step {progress.step} "
                f"({progress.finished or 'nothing is left to do'})"
            )

    def info(self, line: str) -> None:
        """Print a line, unless quiet."""
        if not self.quiet:
            _write(line)


def _write(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def open_console(config: Config, *, quiet: bool) -> Console:
    """A live view if stderr is a terminal that can move the cursor, otherwise lines."""
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):
        return Console(config, quiet=quiet)
    from nmt.training.live_view import LiveConsole

    return LiveConsole(config)
