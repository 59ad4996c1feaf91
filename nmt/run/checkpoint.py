"""Checkpoints: what a training needs to go on, written so that the previous one loads whenever the writing is cut short.

A checkpoint is a folder `checkpoints/step-00012000/` with `model.safetensors`, `optimizer.safetensors` and `progress.json` (and
`raw.safetensors`, where the model is a moving average); `average-00012000/` holds an average of several. `last.json` and
`best.json` beside them name those that are kept.
"""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import nn
from torch.optim import Optimizer

from nmt.errors import CheckpointError
from nmt.files import synchronize, write_text

MODEL, RAW_MODEL = "model.safetensors", "raw.safetensors"


@dataclass(frozen=True)
class Interval:
    """Sums since the last line of the journal: of objective and likelihood, in nats, over so many target tokens."""

    objective: float = 0.0
    likelihood: float = 0.0
    n_tokens: int = 0

    def plus(self, objective: float, likelihood: float, n_tokens: int) -> "Interval":
        """With one more update."""
        return Interval(self.objective + objective, self.likelihood + likelihood, self.n_tokens + n_tokens)


@dataclass(frozen=True)
class Progress:
    """How far a training has come; with seed and configuration, all that batch order, schedules and dropout depend on.

    Attributes:
        step: updates done.
        epoch: of the next batch, from 0.
        batch: of the next batch within its epoch, from 0.
        best: the best validation score so far, higher being better; None before the first.
        stale: validations since the best one.
        reductions: how often the plateau schedule has lowered the learning rate.
        skipped: updates that were skipped, their loss or gradient not being finite; skipped_in_row: those since the last good one.
        interval: what the journal's next line will tell the mean of.
        seconds: time trained, over all resumptions.
        finished: why training ended, if it did.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best: float | None = None
    stale: int = 0
    reductions: int = 0
    skipped: int = 0
    skipped_in_row: int = 0
    interval: Interval = Interval()
    seconds: float = 0.0
    finished: str | None = None


@dataclass(frozen=True)
class KeptCheckpoint:
    """A checkpoint that `last.json` or `best.json` names. score: of its validation, higher is better; None if there was none."""

    checkpoint: str
    step: int
    score: float | None = None

    @property
    def is_average(self) -> bool:
        """Whether it holds the mean of several checkpoints."""
        return self.checkpoint.startswith("average-")


class Checkpoints:
    """The checkpoints of one run folder.

    Args:
        keep_best, keep_last: how many are kept; `best.json` and `last.json` name them, the best and the last of them first.
    """

    def __init__(self, run: Path, *, keep_best: int = 1, keep_last: int = 1) -> None:
        self.folder = run / "checkpoints"
        self.keep_best, self.keep_last = keep_best, keep_last

    def save(
        self,
        progress: Progress,
        model: nn.Module,
        optimizer: Optimizer,
        *,
        score: float | None = None,
        averaged: nn.Module | None = None,
    ) -> None:
        """Write a checkpoint, point `last` (and `best`) at it, and delete those that nothing points at.

        Args:
            score: its validation's, higher being better; None if it was not validated.
            averaged: the moving average of the model, which is translated with; the model itself then serves to go on.

        Raises:
            CheckpointError: it cannot be written; the one before is as it was.
        """
        name = f"step-{progress.step:08d}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if (self.folder / name).exists():  # the same step again, so the same weights: only the progress can differ
                _write_json(self.folder / name / "progress.json", asdict(progress))
            else:
                with _new_folder(self.folder / name) as folder:
                    save_model(model if averaged is None else averaged, str(folder / MODEL))
                    if averaged is not None:
                        save_model(model, str(folder / RAW_MODEL))
                    save_file(_optimizer_tensors(model, optimizer), folder / "optimizer.safetensors")
                    _write_json(folder / "progress.json", asdict(progress))
            self._point(KeptCheckpoint(name, progress.step, score))
        except (OSError, SafetensorError) as error:
            raise self._failed(f"step {progress.step}", error) from None
        self.delete_unnamed()

    def add_average(self, step: int, model: nn.Module, score: float) -> None:
        """Write the average of earlier checkpoints, and keep it as the best if it is.

        Raises:
            CheckpointError: it cannot be written; the others are as they were.
        """
        name = f"average-{step:08d}"
        try:
            shutil.rmtree(self.folder / name, ignore_errors=True)
            with _new_folder(self.folder / name) as folder:
                save_model(model, str(folder / MODEL))
            self._rank(KeptCheckpoint(name, step, score))
        except (OSError, SafetensorError) as error:
            raise self._failed("the average", error) from None
        self.delete_unnamed()

    def _failed(self, what: str, error: Exception) -> CheckpointError:
        return CheckpointError(f"{self.folder}: {what} cannot be written ({error}); earlier checkpoints are intact")

    def _point(self, new: KeptCheckpoint) -> None:
        # `last` comes last: whoever resumes must find the best that its progress speaks of.
        if new.score is not None:
            self._rank(new)
        before = [kept for kept in self.kept("last") if kept.step < new.step]
        self._write("last", [new, *before][: self.keep_last])

    def _rank(self, new: KeptCheckpoint) -> None:
        """Among those before it, for what a training that was cut short had saved later is not part of this one."""
        before = [kept for kept in self.kept("best") if kept.step <= new.step and kept.checkpoint != new.checkpoint]
        ranked = sorted([*before, new], key=lambda kept: (-(kept.score or 0.0), kept.step))
        self._write("best", ranked[: self.keep_best])

    def _write(self, pointer: str, kept: Sequence[KeptCheckpoint]) -> None:
        first = kept[0]
        _write_json(
            self.folder / f"{pointer}.json",
            {"checkpoint": first.checkpoint, "step": first.step, "kept": [asdict(one) for one in kept]},
        )

    def kept(self, pointer: str) -> list[KeptCheckpoint]:
        """What `last` or `best` keeps, the first being what it names; none where there is no checkpoint yet.

        Raises:
            CheckpointError: the pointer is damaged.
        """
        path = self.folder / f"{pointer}.json"
        if not path.exists():
            return []
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            return [
                KeptCheckpoint(**one) for one in value.get("kept", [{"checkpoint": value["checkpoint"], "step": value["step"]}])
            ]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CheckpointError(f"{path}: damaged; it should name a checkpoint beside it") from None

    def find(self, pointer: str) -> Path | None:
        """The folder that `last` or `best` names; None where there is none yet.

        Raises:
            CheckpointError: the pointer or the checkpoint is damaged.
        """
        if not (kept := self.kept(pointer)):
            return None
        folder = self.folder / kept[0].checkpoint
        if not folder.is_dir():
            raise CheckpointError(f"{self.folder / pointer}.json: names {folder.name}, which is not there")
        return folder

    def delete_unnamed(self) -> None:
        """Delete the checkpoints that no pointer names, those that a crash left half written among them."""
        named = {kept.checkpoint for pointer in ("last", "best") for kept in self.kept(pointer)}
        for folder in [path for pattern in ("step-*", "average-*", ".*.tmp") for path in self.folder.glob(pattern)]:
            if folder.name not in named:
                shutil.rmtree(folder, ignore_errors=True)


def read_progress(folder: Path) -> Progress:
    """Raises: CheckpointError if it cannot be read."""
    try:
        values = json.loads((folder / "progress.json").read_text(encoding="utf-8"))
        return Progress(**{**values, "interval": Interval(**values["interval"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"{folder / 'progress.json'}: cannot be read ({error})") from None


def load_weights(folder: Path, model: nn.Module, *, raw: bool = False) -> None:
    """Fill `model` from a checkpoint.

    Args:
        raw: with the weights to go on training from, where these are not those to translate with.

    Raises:
        CheckpointError: the weights are missing, damaged, or of another model.
    """
    path = folder / (RAW_MODEL if raw and (folder / RAW_MODEL).exists() else MODEL)
    try:
        missing, unexpected = load_model(model, str(path), strict=False)
    except RuntimeError:  # sizes that differ
        missing, unexpected = ["?"], []
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be loaded ({error})") from None
    if missing or unexpected:
        raise CheckpointError(f"{path}: does not fit the configuration and the vocabularies beside it; was one of them changed?")


def mean_weights(folders: Sequence[Path], model: nn.Module) -> None:
    """Fill `model` with the mean of the weights of several checkpoints.

    Raises:
        CheckpointError: as `load_weights`.
    """
    total: dict[str, torch.Tensor] = {}
    for folder in folders:
        load_weights(folder, model)
        for name, parameter in model.named_parameters():
            value = parameter.detach().double()
            total[name] = total[name] + value if name in total else value
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(total[name] / len(folders))


def load_optimizer(folder: Path, model: nn.Module, optimizer: Optimizer) -> None:
    """Fill the state of `optimizer` from a checkpoint.

    Raises:
        CheckpointError: the state is missing, damaged, or of another model.
    """
    path = folder / "optimizer.safetensors"
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be loaded ({error})") from None
    states: dict[str, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        parameter, _, entry = key.rpartition(".")
        states.setdefault(parameter, {})[entry] = tensor
    names = [name for name, _ in model.named_parameters()]
    if not states.keys() <= set(names):
        raise CheckpointError(f"{path}: holds the state of another model")
    state = {index: states[name] for index, name in enumerate(names) if name in states}
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _optimizer_tensors(model: nn.Module, optimizer: Optimizer) -> dict[str, torch.Tensor]:
    """`<parameter>.exp_avg` and so on. The optimizer was given `model.parameters()`, so the order of the names is its own."""
    names = [name for name, _ in model.named_parameters()]
    state: dict[int, dict[str, Any]] = optimizer.state_dict()["state"]
    return {
        f"{names[index]}.{entry}": torch.as_tensor(value) for index, entries in state.items() for entry, value in entries.items()
    }


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that becomes `folder` when all in it is written and on disk."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    yield temporary
    for path in [*temporary.iterdir(), temporary]:
        synchronize(path)
    os.replace(temporary, folder)
    synchronize(folder.parent)


def _write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value))
