"""The listener that prints a training on stderr: lines, and a progress bar at a terminal."""

import os
import sys
from contextlib import AbstractContextManager, suppress
from textwrap import indent
from typing import Any

from tqdm import tqdm

from nmt.config.schema import Config
from nmt.training.precision import describe_precision
from nmt.training.record import (
    BeginEvent,
    EndEvent,
    Event,
    MessageEvent,
    StepEvent,
    ValidationEvent,
)

BAR_FORMAT = "{percentage:3.0f} %|{bar}| {desc} [{elapsed}<{remaining}]"


class Console(AbstractContextManager["Console"]):
    """Prints the events of a training. As a context, it closes the bar at the end.

    A training does not end because nobody can read it: errors of writing, as of a closed terminal
    or a full disk, are ignored.

    Args:
        quiet: print only warnings.
    """

    def __init__(self, config: Config, *, quiet: bool = False) -> None:
        self.config, self.quiet = config, quiet
        self.bar: Any = None
        self._has_begun = False

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            with suppress(OSError):
                self.bar.close()

    def __call__(self, event: Event) -> None:
        with suppress(OSError):
            match event:
                case MessageEvent(is_warning=True):
                    self._write(f"nmt: {event.text}")
                case _ if self.quiet:
                    pass
                case MessageEvent():
                    self._write(event.text)
                case BeginEvent():
                    self._begin(event)
                case StepEvent():
                    self._step(event)
                case ValidationEvent():
                    self._validation(event)
                case EndEvent():
                    self._end(event)

    def _begin(self, event: BeginEvent) -> None:
        self._has_begun = True
        where = f"{event.device}, {event.n_threads} thread{'s' * (event.n_threads > 1)}"
        if event.rates or event.precision != "float32":
            where += f", {describe_precision(event.precision, event.rates)}"
        where += f", in {event.n_processes} processes" if event.n_processes > 1 else ""
        self._write(
            f"{event.folder}: {event.n_parameters:,} parameters, {event.n_pairs:,} pairs, "
            f"on {where}"
        )
        if event.step:
            self._write(f"resuming from step {event.step}")

    def _step(self, event: StepEvent) -> None:
        """A bar that moves with each update or, where there is none, a line for each interval."""
        line = (
            f"step {event.step}  epoch {event.epoch}  loss {event.loss:.3f}  "
            f"perplexity {event.perplexity:.1f}  {event.tokens_per_second:,.0f} tokens/s"
        )
        if sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
            if self.bar is None:  # a training that continues begins in the middle
                self.bar = tqdm(total=1.0, initial=event.fraction, bar_format=BAR_FORMAT)
            self.bar.set_description_str(line, refresh=False)
            self.bar.update(event.fraction - self.bar.n)
        elif event.step % self.config.training.log_every == 0:
            self._write(line)

    def _validation(self, event: ValidationEvent) -> None:
        result = event.result
        self._write(
            f"step {event.step}  validation  dev loss {result.loss:.3f}  "
            f"perplexity {result.perplexity:.2f}  {result.scores_text}  ({event.seconds:.0f} s)"
        )
        if result.samples:
            self._write(indent(str(result.samples[len(result.samples) // 2]), "    "))

    def _end(self, event: EndEvent) -> None:
        """Why the training ended, and which commands come next."""
        self.__exit__()
        folder, progress = event.folder, event.progress
        if self._has_begun:
            self._write(
                f"done after {progress.step} steps and {progress.seconds / 60:.1f} minutes"
                f"{' with validations' if 'max_minutes' in str(progress.finished) else ''}: "
                f"{progress.finished}"
            )
            self._write(f'next: nmt evaluate {folder}    nmt translate --run {folder} "..."')
        else:
            reason = progress.finished or "nothing is left to do"
            self._write(f"{folder}: already trained, to step {progress.step} ({reason})")

    def _write(self, line: str) -> None:
        """Print a line, above the bar."""
        if self.bar is None:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
        else:
            self.bar.write(line, file=sys.stderr)
