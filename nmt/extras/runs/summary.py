"""The facts of a run, read from its folder without the weights. What cannot be read becomes a
problem, not an error.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from nmt.config.schema import Config
from nmt.data.manifest import MANIFEST, load_manifest
from nmt.errors import CheckpointError, NmtError
from nmt.extras.share.bundle import holds_weights_only
from nmt.run.checkpoint import KeptCheckpoint, read_progress
from nmt.run.folder import (
    EVALUATION_FOLDER,
    HISTORY_FILE,
    JOURNAL_FILE,
    holds_run,
    is_training,
    load_run_config,
    open_checkpoints,
)
from nmt.run.journal import Journal
from nmt.run.progress import Progress

RunState = Literal["training", "finished", "unfinished", "not started", "weights only"]

ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class RunSummary:
    """What is known of a run.

    Attributes:
        state: "training" if a process trains it now; "unfinished" if its training was interrupted;
            "weights only" if it is a copy without the state of training, from a bundle or from the
            hub.
        progress: at the last checkpoint; None before the first.
        best, last: the checkpoints to translate with and to resume from; None before the first one.
        manifest: of the prepared data.
        journal: the events of the training. evaluations: those of `nmt evaluate`, in the order of
            time.
        bytes: size on disk. checkpoint_bytes: the checkpoints' part of it.
        changed: the time of the last change.
        problems: a line for each part that cannot be read.
    """

    folder: Path
    config: Config
    state: RunState
    progress: Progress | None
    best: KeptCheckpoint | None
    last: KeptCheckpoint | None
    manifest: dict[str, Any] | None
    journal: list[dict[str, Any]]
    evaluations: list[dict[str, Any]]
    bytes: int
    checkpoint_bytes: int
    changed: datetime
    problems: list[str]

    @classmethod
    def load(cls, folder: Path) -> "RunSummary":
        """Raises: CheckpointError or ConfigError if the configuration of the run is missing or
        unreadable.
        """
        if not holds_run(folder):
            raise CheckpointError(
                f"{folder}: config.yaml is missing; this is no run, or half of one"
            )
        config, problems = load_run_config(folder), list[str]()

        def attempt(read: Callable[[], ValueT]) -> ValueT | None:
            try:
                return read()
            except (NmtError, OSError) as error:
                problems.append(str(error))
                return None

        checkpoints = open_checkpoints(folder, config)
        best, last = (
            attempt(lambda: checkpoints.kept("best")),
            attempt(lambda: checkpoints.kept("last")),
        )
        if best:
            attempt(lambda: checkpoints.find("best"))
        last_folder = attempt(lambda: checkpoints.find("last")) if last else None
        progress = None if last_folder is None else attempt(lambda: read_progress(last_folder))
        files = list(_files(folder))
        return cls(
            folder=folder,
            config=config,
            state=_state(folder, progress, has_checkpoint=bool(last)),
            progress=progress,
            best=best[0] if best else None,
            last=last[0] if last else None,
            manifest=attempt(lambda: load_manifest(folder)),
            journal=attempt(Journal(folder / JOURNAL_FILE).read) or [],
            evaluations=[
                *filter(
                    _is_evaluation,
                    attempt(Journal(folder / EVALUATION_FOLDER / HISTORY_FILE).read) or [],
                )
            ],
            bytes=sum(size for _, size, _ in files),
            checkpoint_bytes=sum(
                size for path, size, _ in files if checkpoints.folder in path.parents
            ),
            changed=datetime.fromtimestamp(max((time for _, _, time in files), default=0.0), UTC),
            problems=problems,
        )

    @property
    def validations(self) -> list[dict[str, Any]]:
        """The validations of the training, with their figures."""
        return [event for event in self.journal if event.get("event") == "validation"]

    @property
    def best_validation(self) -> dict[str, Any] | None:
        """The validation of the best checkpoint, or the last one."""
        of_best = [
            event for event in self.validations if self.best and event["step"] == self.best.step
        ]
        return next(iter(of_best or self.validations[-1:]), None)


class _Score(BaseModel):
    metric: str
    score: float
    signature: str
    interval: list[float] | None = None


class _Evaluation(BaseModel):
    """What is shown of an evaluation."""

    text_sha256: str | None = None
    split: str | None = None
    beam: int | None = None
    scores: list[_Score] = []


def _is_evaluation(event: dict[str, Any]) -> bool:
    try:
        _Evaluation.model_validate(event)
    except ValidationError:
        return False
    return True


def find_runs(folder: Path) -> list[Path]:
    """The runs and damaged runs below `folder`, sorted; not those inside of other runs."""
    if not folder.is_dir():
        return []
    is_run = holds_run(folder) and (folder / MANIFEST).exists()
    if is_run or (folder / JOURNAL_FILE).exists() or (folder / "checkpoints").is_dir():
        return [folder]
    return [
        run
        for path in sorted(folder.iterdir())
        if not path.name.startswith(".")
        for run in find_runs(path)
    ]


def _state(folder: Path, progress: Progress | None, *, has_checkpoint: bool) -> RunState:
    if is_training(folder):
        return "training"
    if progress is not None and progress.finished:
        return "finished"
    if holds_weights_only(folder):
        return "weights only"
    return "unfinished" if has_checkpoint else "not started"


def _files(folder: Path) -> Iterator[tuple[Path, int, float]]:
    """(path, bytes, time of the last change) of each file; a training may delete some meanwhile."""
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                yield path, path.stat().st_size, path.stat().st_mtime
        except OSError:
            continue
