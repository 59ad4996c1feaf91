"""The progress of a training on stderr: a bar in a terminal, otherwise a line per interval."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

from nmt.config.schema import Config
from nmt.metrics.scores import perplexity
from nmt.run.progress import Interval, Progress
from nmt.training.loop import Outcome, Update
from nmt.training.validation import Validation


class Console:
    """Prints the progress of a training on stderr. As a context, it starts the clock and closes the bar."""

    def __init__(self, folder: Path, config: Config, quiet: bool) -> None:
        self.folder, self.config, self.quiet = folder, config, quiet
        self.at_terminal = sys.stderr.isatty() and not quiet
        self.bar: tqdm[Any] | None = None
        self._restart_clock()

    def __enter__(self) -> None:
        self._restart_clock()

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def info(self, line: str) -> None:
        """Print a line above the bar, unless quiet."""
        if not self.quiet:
            tqdm.write(line, file=sys.stderr)
            sys.stderr.flush()

    def warn(self, line: str) -> None:
        """Print a warning, even if quiet."""
        tqdm.write(f"nmt: {line}", file=sys.stderr)
        sys.stderr.flush()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The time inside the block does not count as training time."""
        start_time = time.monotonic()
        yield
        self.start_time += time.monotonic() - start_time

    def begin(self, model: nn.Module, device: torch.device, n_pairs: int, progress: Progress, processes: int = 1) -> None:
        """Print what is trained, on how much data and where."""
        n_parameters = sum(parameter.numel() for parameter in model.parameters())
        n_threads = torch.get_num_threads()
        where = f"{device}, {n_threads} thread{'s' * (n_threads > 1)}" + (f", in {processes} processes" if processes > 1 else "")
        self.info(f"{self.folder}: {n_parameters:,} parameters, {n_pairs:,} pairs, on {where}")
        if progress.step:
            self.info(f"resuming from step {progress.step}")

    def update(self, update: Update, outcome: Outcome, interval: Interval) -> dict[str, Any]:
        """Show an update. At the end of an interval, returns its figures for the journal; otherwise an empty dict."""
        self.n_tokens += outcome.n_tokens
        n_tokens = max(1, interval.n_tokens)  # 0 if all updates of the interval were skipped
        figures = {
            "loss": interval.objective / n_tokens,
            "perplexity": perplexity(interval.likelihood / n_tokens),
            "tokens_per_second": self.n_tokens / max(1e-9, time.monotonic() - self.start_time),
            "learning_rate": outcome.learning_rate,
            "forcing_ratio": outcome.forcing_ratio,
            "gradient_norm": outcome.gradient_norm,
        }
        line = f"loss {figures['loss']:.3f}  perplexity {figures['perplexity']:.1f}  {figures['tokens_per_second']:,.0f} tokens/s"
        if self.at_terminal:
            self._move_bar(update, line)
        if update.step % self.config.training.log_every:
            return {}
        self._restart_clock()
        if not self.at_terminal:
            self.info(f"step {update.step}  epoch {update.epoch + 1}  {line}")
        return figures

    def validation(self, step: int, result: Validation, seconds: float) -> None:
        """Print the figures of a validation, which took `seconds`, and one of its samples."""
        figures = f"dev loss {result.loss:.3f}  perplexity {result.perplexity:.2f}  BLEU {result.bleu:.2f}  chrF {result.chrf:.2f}"
        self.info(f"step {step}  validation  {figures}  ({seconds:.0f} s)")
        if result.samples:
            self.info(indent(str(result.samples[len(result.samples) // 2]), "    "))

    def end(self, progress: Progress) -> None:
        """Print why the training ended, and which commands come next."""
        self.info(f"done after {progress.step} steps and {progress.seconds / 60:.1f} minutes: {progress.finished}")
        self.info(f'next: nmt evaluate {self.folder}    nmt translate --run {self.folder} "..."')

    def _restart_clock(self) -> None:
        """The speed is that since the last line of the journal, or since the start."""
        self.start_time, self.n_tokens = time.monotonic(), 0

    def _move_bar(self, update: Update, line: str) -> None:
        if self.bar is None or update.batch == 0:
            if self.bar is not None:
                self.bar.close()
            self.bar = tqdm(
                total=update.n_batches, initial=update.batch, unit="batch", file=sys.stderr, leave=False, dynamic_ncols=True
            )
            self.bar.set_description(f"epoch {update.epoch + 1}/{self.config.training.epochs}", refresh=False)
        self.bar.set_postfix_str(line, refresh=False)
        self.bar.update()
