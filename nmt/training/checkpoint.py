"""Checkpoints: what a training needs to go on, written so that the previous one loads whenever the writing is cut short.

A checkpoint is a folder `checkpoints/step-00012000/` with `model.safetensors`, `optimizer.safetensors` and `progress.json`;
`last.json` and `best.json` beside them name one each.
"""

import json
import os
import shutil
from collections.abc import Iterator
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


@dataclass(frozen=True)
class Progress:
    """How far a training has come; with seed and configuration, all that batch order, schedules and dropout depend on.

    Attributes:
        step: updates done.
        epoch: of the next batch, from 0.
        batch: of the next batch within its epoch, from 0.
        best: the best validation score so far, higher being better; None before the first.
        stale: validations since the best one.
        seconds: time trained, over all resumptions.
        finished: why training ended, if it did.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best: float | None = None
    stale: int = 0
    seconds: float = 0.0
    finished: str | None = None


class Checkpoints:
    """The checkpoints of one run folder."""

    def __init__(self, run: Path) -> None:
        self.folder = run / "checkpoints"

    def save(self, progress: Progress, model: nn.Module, optimizer: Optimizer, *, best: bool) -> None:
        """Write a checkpoint, point `last` (and `best`) at it, and delete those that nothing points at.

        Raises:
            CheckpointError: it cannot be written; the one before is as it was.
        """
        try:
            self._write(progress, model, optimizer, best=best)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(
                f"{self.folder}: step {progress.step} cannot be written ({error}); earlier checkpoints are intact"
            ) from None
        self.delete_unnamed()

    def _write(self, progress: Progress, model: nn.Module, optimizer: Optimizer, *, best: bool) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"step-{progress.step:08d}"
        if (self.folder / name).exists():  # the same step again, so the same weights: only the progress can differ
            _write_json(self.folder / name / "progress.json", asdict(progress))
        else:
            with _new_folder(self.folder / name) as folder:
                save_model(model, str(folder / "model.safetensors"))
                save_file(_optimizer_tensors(model, optimizer), folder / "optimizer.safetensors")
                _write_json(folder / "progress.json", asdict(progress))
        # `last` comes last: whoever resumes must find the best that its progress speaks of.
        for pointer in ("best", "last") if best else ("last",):
            _write_json(self.folder / f"{pointer}.json", {"checkpoint": name, "step": progress.step})

    def find(self, pointer: str) -> Path | None:
        """The folder that `last` or `best` names; None where there is none yet.

        Raises:
            CheckpointError: the pointer or the checkpoint is damaged.
        """
        path = self.folder / f"{pointer}.json"
        if not path.exists():
            return None
        try:
            folder = self.folder / str(json.loads(path.read_text(encoding="utf-8"))["checkpoint"])
        except (ValueError, KeyError, TypeError):
            raise CheckpointError(f"{path}: damaged; it should name a checkpoint beside it") from None
        if not folder.is_dir():
            raise CheckpointError(f"{path}: names {folder.name}, which is not there")
        return folder

    def delete_unnamed(self) -> None:
        """Delete the checkpoints that no pointer names, those that a crash left half written among them."""
        named = {self.find("last"), self.find("best")}
        for folder in [*self.folder.glob("step-*"), *self.folder.glob(".step-*")]:
            if folder not in named:
                shutil.rmtree(folder, ignore_errors=True)


def read_progress(folder: Path) -> Progress:
    """Raises: CheckpointError if it cannot be read."""
    try:
        return Progress(**json.loads((folder / "progress.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{folder / 'progress.json'}: cannot be read ({error})") from None


def load_weights(folder: Path, model: nn.Module) -> None:
    """Fill `model` from a checkpoint.

    Raises:
        CheckpointError: the weights are missing, damaged, or of another model.
    """
    path = folder / "model.safetensors"
    try:
        missing, unexpected = load_model(model, str(path), strict=False)
    except RuntimeError:  # sizes that differ
        missing, unexpected = ["?"], []
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be loaded ({error})") from None
    if missing or unexpected:
        raise CheckpointError(f"{path}: does not fit the configuration and the vocabularies beside it; was one of them changed?")


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
