"""What is seen of a training, on stderr."""

import sys
import time
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

from nmt.config import Config
from nmt.training.checkpoint import Progress
from nmt.training.loop import Update


@dataclass(frozen=True)
class Validation:
    """Over the dev set. loss: nats per target token, teacher-forced. bleu: greedy, detokenised, ignoring case if the model does."""

    loss: float
    bleu: float

    @property
    def perplexity(self) -> float:
        return perplexity(self.loss)


class Screen:
    """What is seen of a training, on stderr: a bar at a terminal, else a line at each interval."""

    def __init__(self, folder: Path, config: Config, quiet: bool) -> None:
        self.folder, self.config, self.quiet = folder, config, quiet
        self.at_terminal = sys.stderr.isatty() and not quiet
        self.bar: tqdm[Any] | None = None
        self.since = _Interval()

    def __enter__(self) -> None:
        self.since = _Interval()

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def say(self, line: str) -> None:
        """One line, above the bar."""
        if not self.quiet:
            tqdm.write(line, file=sys.stderr)
            sys.stderr.flush()

    def begin(self, model: nn.Module, device: torch.device, n_pairs: int, progress: Progress) -> None:
        """Say what is trained on what."""
        n_parameters = sum(parameter.numel() for parameter in model.parameters())
        self.say(f"{self.folder}: {n_parameters:,} parameters, {n_pairs:,} pairs, on {device}, {torch.get_num_threads()} threads")
        if progress.step:
            self.say(f"going on from step {progress.step}")

    def update(self, update: Update) -> dict[str, Any]:
        """Show an update; at the end of an interval also returns what it was, for the journal."""
        self.since.add(update)
        if self.at_terminal:
            self._move_bar(update)
        if update.step % self.config.training.log_every:
            return {}
        summary = self.since.summary(update)
        self.since = _Interval()
        if not self.at_terminal:
            self.say(f"step {update.step}  epoch {update.epoch + 1}  {_show(summary)}")
        return summary

    def validation(self, step: int, result: Validation, seconds: float) -> None:
        """Show a validation, which took `seconds`."""
        self.since.exclude(seconds)
        figures = f"dev loss {result.loss:.3f}  perplexity {result.perplexity:.2f}  BLEU {result.bleu:.2f}"
        self.say(f"step {step}  validation  {figures}  ({seconds:.0f} s)")

    def end(self, progress: Progress) -> None:
        """Say how it ended, and what can be done now."""
        self.say(f"done after {progress.step} steps and {progress.seconds / 60:.1f} minutes: {progress.finished}")
        self.say(f'next: nmt evaluate {self.folder}    nmt translate --run {self.folder} "..."')

    def _move_bar(self, update: Update) -> None:
        if self.bar is None or update.batch == 0:
            if self.bar is not None:
                self.bar.close()
            self.bar = tqdm(
                total=update.n_batches, initial=update.batch, unit="batch", file=sys.stderr, leave=False, dynamic_ncols=True
            )
            self.bar.set_description(f"epoch {update.epoch + 1}/{self.config.training.epochs}", refresh=False)
        self.bar.set_postfix_str(_show(self.since.summary(update)), refresh=False)
        self.bar.update()


class _Interval:
    """Sums since the last line of the journal."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.objective = self.likelihood = 0.0
        self.n_tokens = 0

    def add(self, update: Update) -> None:
        self.objective += update.loss * update.n_tokens
        self.likelihood += update.likelihood * update.n_tokens
        self.n_tokens += update.n_tokens

    def exclude(self, seconds: float) -> None:
        """Time that was not spent on training."""
        self.begun += seconds

    def summary(self, update: Update) -> dict[str, Any]:
        return {
            "loss": self.objective / self.n_tokens,
            "perplexity": perplexity(self.likelihood / self.n_tokens),
            "tokens_per_second": self.n_tokens / max(1e-9, time.monotonic() - self.begun),
            "learning_rate": update.learning_rate,
            "forcing_ratio": update.forcing_ratio,
            "gradient_norm": update.gradient_norm,
        }


def perplexity(loss: float) -> float:
    """exp(loss), short of overflow."""
    return exp(min(loss, 700))


def _show(figures: dict[str, Any]) -> str:
    return f"loss {figures['loss']:.3f}  perplexity {figures['perplexity']:.1f}  {figures['tokens_per_second']:,.0f} tokens/s"
