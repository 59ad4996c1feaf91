"""What is seen of a training, on stderr."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

from nmt.config.schema import Config
from nmt.metrics.scores import perplexity
from nmt.run.progress import Interval, Progress
from nmt.training.loop import Update


@dataclass(frozen=True)
class Sample:
    """A sentence of the dev set, as it is and as the model translates it."""

    source: str
    reference: str
    output: str

    def __str__(self) -> str:
        return f"source     {self.source}\nreference  {self.reference}\noutput     {self.output}"


@dataclass(frozen=True)
class Validation:
    """Over the dev set.

    Attributes:
        loss: nats per target token, teacher-forced.
        bleu, chrf: of greedy translations, detokenised, ignoring case if the model does.
        samples: the same sentences at each validation, the shorter ones first.
        attention: in the sample in the middle, drawn (PNG); None if the model has none.
    """

    loss: float
    bleu: float
    chrf: float
    samples: tuple[Sample, ...] = ()
    attention: bytes | None = None

    @property
    def perplexity(self) -> float:
        return perplexity(self.loss)

    @property
    def figures(self) -> dict[str, float]:
        """For the journal, and for TensorBoard."""
        return {"loss": self.loss, "perplexity": self.perplexity, "bleu": self.bleu, "chrf": self.chrf}


class Console:
    """What is seen of a training, on stderr: a bar at a terminal, else a line at each interval."""

    def __init__(self, folder: Path, config: Config, quiet: bool) -> None:
        self.folder, self.config, self.quiet = folder, config, quiet
        self.at_terminal = sys.stderr.isatty() and not quiet
        self.bar: tqdm[Any] | None = None
        self.clock = _Clock()

    def __enter__(self) -> None:
        self.clock = _Clock()

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def info(self, line: str) -> None:
        """One line, above the bar."""
        if not self.quiet:
            tqdm.write(line, file=sys.stderr)
            sys.stderr.flush()

    def warn(self, line: str) -> None:
        """One line about something that went wrong, which is said even to those who want it quiet."""
        tqdm.write(f"nmt: {line}", file=sys.stderr)
        sys.stderr.flush()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The time within is not spent on training."""
        begun = time.monotonic()
        yield
        self.clock.begun += time.monotonic() - begun

    def begin(self, model: nn.Module, device: torch.device, n_pairs: int, progress: Progress, processes: int = 1) -> None:
        """Say what is trained on what."""
        n_parameters = sum(parameter.numel() for parameter in model.parameters())
        where = f"{device}, {torch.get_num_threads()} threads" + (f", in {processes} processes" if processes > 1 else "")
        self.info(f"{self.folder}: {n_parameters:,} parameters, {n_pairs:,} pairs, on {where}")
        if progress.step:
            self.info(f"going on from step {progress.step}")

    def update(self, update: Update, interval: Interval) -> dict[str, Any]:
        """Show an update; at the end of an interval also returns what it was, for the journal."""
        self.clock.n_tokens += update.outcome.n_tokens
        summary = _summary(update, interval, self.clock)
        if self.at_terminal:
            self._move_bar(update, summary)
        if update.step % self.config.training.log_every:
            return {}
        self.clock = _Clock()
        if not self.at_terminal:
            self.info(f"step {update.step}  epoch {update.epoch + 1}  {_show(summary)}")
        return summary

    def validation(self, step: int, result: Validation, seconds: float) -> None:
        """Show a validation, which took `seconds`, and one of its samples."""
        figures = f"dev loss {result.loss:.3f}  perplexity {result.perplexity:.2f}  BLEU {result.bleu:.2f}  chrF {result.chrf:.2f}"
        self.info(f"step {step}  validation  {figures}  ({seconds:.0f} s)")
        if result.samples:
            self.info(indent(str(result.samples[len(result.samples) // 2]), "    "))

    def end(self, progress: Progress) -> None:
        """Say how it ended, and what can be done now."""
        self.info(f"done after {progress.step} steps and {progress.seconds / 60:.1f} minutes: {progress.finished}")
        self.info(f'next: nmt evaluate {self.folder}    nmt translate --run {self.folder} "..."')

    def _move_bar(self, update: Update, summary: dict[str, Any]) -> None:
        if self.bar is None or update.batch == 0:
            if self.bar is not None:
                self.bar.close()
            self.bar = tqdm(
                total=update.n_batches, initial=update.batch, unit="batch", file=sys.stderr, leave=False, dynamic_ncols=True
            )
            self.bar.set_description(f"epoch {update.epoch + 1}/{self.config.training.epochs}", refresh=False)
        self.bar.set_postfix_str(_show(summary), refresh=False)
        self.bar.update()


class _Clock:
    """How fast it has gone since the last line of the journal, or since training went on."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.n_tokens = 0

    @property
    def tokens_per_second(self) -> float:
        return self.n_tokens / max(1e-9, time.monotonic() - self.begun)


def _summary(update: Update, interval: Interval, clock: _Clock) -> dict[str, Any]:
    n_tokens = max(1, interval.n_tokens)  # none where all updates were skipped
    return {
        "loss": interval.objective / n_tokens,
        "perplexity": perplexity(interval.likelihood / n_tokens),
        "tokens_per_second": clock.tokens_per_second,
        "learning_rate": update.learning_rate,
        "forcing_ratio": update.forcing_ratio,
        "gradient_norm": update.outcome.gradient_norm,
    }


def _show(figures: dict[str, Any]) -> str:
    return f"loss {figures['loss']:.3f}  perplexity {figures['perplexity']:.1f}  {figures['tokens_per_second']:,.0f} tokens/s"
