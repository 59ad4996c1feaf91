"""Checkpoints: all that a training needs to resume. A crash leaves the one before intact.

A checkpoint is a folder `checkpoints/step-00012000/` with `model.safetensors`,
`optimizer.safetensors` and `progress.json`. A folder `average-00012000/` holds the mean of several
checkpoints. `last.json` and `best.json` beside them name the checkpoints to keep.
"""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter
from safetensors import SafetensorError
from safetensors.numpy import load_file

from nmt.config.parts import PointerName
from nmt.errors import CheckpointError, first_problem, pass_on_lack_of_memory
from nmt.files import (
    is_intact,
    new_folder,
    read_json,
    record_checksums,
    replacing,
    sha256_of,
    write_json,
)
from nmt.run.progress import Progress, Rank

MODEL_FILE = "model.safetensors"
OPTIMIZER_FILE, PROGRESS_FILE = "optimizer.safetensors", "progress.json"
REMEDY = "copy it again, or use another checkpoint"
STEP_PREFIX, AVERAGE_PREFIX = "step-", "average-"
CHECKPOINT_NAME = re.compile(rf"(?:{STEP_PREFIX}|{AVERAGE_PREFIX})[0-9]{{1,12}}")


@dataclass(frozen=True)
class KeptCheckpoint:
    """A checkpoint that `last.json` or `best.json` names. score: of its validation, higher is
    better; None if there was none. loss: of the same validation.
    """

    checkpoint: str
    step: int
    score: float | None = None
    loss: float | None = None

    __pydantic_config__ = ConfigDict(extra="forbid")

    @property
    def rank(self) -> Rank:
        """What checkpoints are ranked by."""
        return Rank.of(self.score or 0.0, self.loss)


_KEPT, _PROGRESS = TypeAdapter(list[KeptCheckpoint]), TypeAdapter(Progress)


def is_average(checkpoint: str) -> bool:
    """Whether the checkpoint folder of this name holds the mean of several checkpoints."""
    return checkpoint.startswith(AVERAGE_PREFIX)


def step_of(checkpoint: str) -> int:
    """The number of updates, from the name of a checkpoint; those of the last of an average."""
    return int(checkpoint.rpartition("-")[2])


class Checkpoints:
    """The checkpoints of one run folder.

    Args:
        keep_best, keep_last: how many to keep. `best.json` names them from the best on, `last.json`
            from the last on.
    """

    def __init__(self, run: Path, *, keep_best: int = 1, keep_last: int = 1) -> None:
        self.folder = run / "checkpoints"
        self.keep_best, self.keep_last = keep_best, keep_last

    def save(
        self, progress: Progress, write: Callable[[Path], None], *, rank: Rank | None = None
    ) -> None:
        """Write a checkpoint, name it in the pointers, and delete those that neither names.

        Args:
            write: writes the tensors into a folder, as `save_training` of `nmt.run.weights` does.
                Not called if there is a checkpoint of this step.
            rank: the result of its validation; None without one.

        Raises:
            CheckpointError: writing fails; earlier checkpoints are intact.
        """
        name = f"{STEP_PREFIX}{progress.step:08d}"
        with self._writing(f"step {progress.step}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            if (self.folder / name).exists():
                # Same step, same weights: only the progress can differ.
                write_json(self.folder / name / PROGRESS_FILE, asdict(progress))
            else:
                with new_folder(self.folder / name) as folder:
                    write(folder)
                    record_checksums(
                        folder, {path.name: sha256_of(path) for path in folder.iterdir()}
                    )
                    write_json(folder / PROGRESS_FILE, asdict(progress))
            checkpoint = KeptCheckpoint(name, progress.step)
            if rank is not None:
                checkpoint = KeptCheckpoint(name, progress.step, rank.score, -rank.negative_loss)
                self._insert_into_best(checkpoint)
            # `last.json` is written last: a resumed training must find the best checkpoint that its
            # progress refers to. A checkpoint without a validation depends on the clock or on the
            # user: only the last stays, and displaces none for good.
            earlier = [
                kept
                for kept in self.kept("last")
                if kept.step < progress.step and kept.score is not None
            ]
            self._write_pointer("last", [checkpoint, *earlier][: self.keep_last])
        self.delete_unreferenced()

    def add_average(self, step: int, write: Callable[[Path], None], rank: Rank) -> bool:
        """Write the mean of earlier checkpoints, and keep it if it is among the best.

        An earlier average of the same step is replaced only by a better one.

        Args:
            write: writes the weights into a file, as `save_weights` of `nmt.run.weights` does.

        Returns:
            whether it is the best checkpoint now.

        Raises:
            CheckpointError: writing fails; the other checkpoints are intact.
        """
        name = f"{AVERAGE_PREFIX}{step:08d}"
        if any(
            kept.checkpoint == name and kept.score is not None and kept.rank >= rank
            for kept in self.kept("best")
        ):
            self.delete_unreferenced()  # what an earlier call could not delete
            return False
        with self._writing("the average"):
            folder = self.folder / name
            folder.mkdir(exist_ok=True)
            with replacing(folder / MODEL_FILE) as path:
                write(path)
                record_checksums(folder, {MODEL_FILE: sha256_of(path)})
            self._insert_into_best(KeptCheckpoint(name, step, rank.score, -rank.negative_loss))
        self.delete_unreferenced()
        return self.kept("best")[0].checkpoint == name

    def prefer(self, name: str) -> None:
        """Make a kept checkpoint the first of `best.json`.

        The others stay, even beyond `keep_best`, until the next checkpoint is saved: so a resumed
        training keeps the same ones as an uninterrupted one.

        Raises:
            CheckpointError: writing fails; the previous choice stays.
        """
        kept = {
            checkpoint.checkpoint: checkpoint
            for checkpoint in (*self.kept("last"), *self.kept("best"))
        }
        others = [checkpoint for checkpoint in self.kept("best") if checkpoint.checkpoint != name]
        with self._writing("the choice"):
            self._write_pointer("best", [kept[name], *others])

    @contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        """Raises: CheckpointError in place of errors of writing."""
        try:
            yield
        except (OSError, SafetensorError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise CheckpointError(
                f"{self.folder}: {what} cannot be written ({reason}); earlier checkpoints are "
                "intact"
            ) from None

    def _insert_into_best(self, new: KeptCheckpoint) -> None:
        """Insert `new` by its rank; drop later steps, from a training that crashed after them."""
        earlier = [
            kept
            for kept in self.kept("best")
            if kept.step <= new.step and kept.checkpoint != new.checkpoint
        ]
        ranked = sorted([*earlier, new], key=lambda kept: (kept.rank, -kept.step), reverse=True)
        self._write_pointer("best", ranked[: self.keep_best])

    def _write_pointer(self, pointer: PointerName, kept: Sequence[KeptCheckpoint]) -> None:
        write_json(
            self.folder / f"{pointer}.json",
            {
                "checkpoint": kept[0].checkpoint,
                "step": kept[0].step,
                "kept": [asdict(checkpoint) for checkpoint in kept],
            },
        )

    def kept(self, pointer: PointerName) -> list[KeptCheckpoint]:
        """The checkpoints that a pointer names, the last or the best first; none at first.

        Raises:
            CheckpointError: the pointer file is damaged.
        """
        path = self.folder / f"{pointer}.json"
        if not path.exists():
            return []
        try:
            value = read_json(path)
            entries = value.get(
                "kept", [{"checkpoint": value["checkpoint"], "step": value["step"]}]
            )
            kept = _KEPT.validate_python(entries)
            # None may lie outside of the run.
            if all(CHECKPOINT_NAME.fullmatch(checkpoint.checkpoint) for checkpoint in kept):
                return kept
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        raise CheckpointError(f"{path}: damaged; it should name a checkpoint beside it")

    def find(self, pointer: PointerName) -> Path | None:
        """The folder of the last or the best checkpoint; None before the first.

        Raises:
            CheckpointError: the pointer file is damaged, or names a missing checkpoint.
        """
        if not (kept := self.kept(pointer)):
            if pointer == "best" and any(
                checkpoint.score is not None for checkpoint in self.kept("last")
            ):
                raise CheckpointError(
                    f"{self.folder / 'best.json'}: missing; copy the run again, or name one of "
                    "its checkpoints"
                )
            return None
        folder = self.folder / kept[0].checkpoint
        if not folder.is_dir():
            raise CheckpointError(
                f"{self.folder / pointer}.json: names {folder.name}, which is missing; copy "
                "the run again"
            )
        return folder

    def delete_unreferenced(self) -> None:
        """Delete the checkpoints that no pointer names, and what a crash left incomplete."""
        pointers: tuple[PointerName, ...] = ("last", "best")
        referenced = {kept.checkpoint for pointer in pointers for kept in self.kept(pointer)}
        patterns = (f"{STEP_PREFIX}*", f"{AVERAGE_PREFIX}*", ".*.tmp", "*/.*")
        for path in [path for pattern in patterns for path in self.folder.glob(pattern)]:
            if path.is_file():
                path.unlink(missing_ok=True)
            elif path.name not in referenced:
                shutil.rmtree(path, ignore_errors=True)  # or the next call does


def read_progress(folder: Path) -> Progress:
    """The progress in a checkpoint. Raises: CheckpointError if it is missing or damaged."""
    path = folder / PROGRESS_FILE
    try:
        return _PROGRESS.validate_python(read_json(path))
    except (OSError, ValueError) as error:
        pass_on_lack_of_memory(error)
        raise CheckpointError(f"{path}: cannot be read ({first_problem(error)})") from None


def read_arrays(path: Path, remedy: str = REMEDY) -> dict[str, NDArray[Any]]:
    """The tensors in a file. Raises: CheckpointError if it is missing or damaged."""
    with reading(path, remedy):
        return load_file(path)


@contextmanager
def reading(path: Path, remedy: str = REMEDY) -> Iterator[None]:
    """Raises: CheckpointError if a file of tensors cannot be read, or is not as it was written."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        pass_on_lack_of_memory(error)
        raise CheckpointError(f"{path}: cannot be loaded ({error}); {remedy}") from None
    if not is_intact(path):
        raise CheckpointError(
            f"{path}: damaged, its content has changed since nmt wrote it; {remedy}"
        )
