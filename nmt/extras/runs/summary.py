"""The facts of a run, read from its folder without the weights. What cannot be read becomes a
problem, not an error.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from nmt.config.load import differences
from nmt.config.schema import Config
from nmt.data.manifest import MANIFEST, load_manifest
from nmt.errors import CheckpointError, NmtError
from nmt.run.checkpoint import KeptCheckpoint, read_progress
from nmt.run.folder import (
    EVALUATION_FOLDER,
    HISTORY_FILE,
    JOURNAL_FILE,
    check_same_data,
    holds_run,
    holds_weights_only,
    is_training,
    load_run_config,
    open_checkpoints,
)
from nmt.run.journal import Journal
from nmt.run.progress import Progress
from nmt.run.provenance import read_training
from nmt.text.tokenizers import SIDES


def read_facts(folder: Path) -> tuple[Config, dict[str, Any]]:
    """The configuration of a run, and all that is known of it, ready for JSON.

    state is "training" if a process trains it now, "unfinished" if its training was interrupted,
    "weights only" if it is a copy without the state of training, "finished" or "not started".
    progress is that of the last checkpoint. problems has a line for each part that cannot be read.

    Raises:
        CheckpointError, ConfigError: the configuration of the run is missing or unreadable.
    """
    if not holds_run(folder):
        raise CheckpointError(f"{folder}: config.yaml is missing; this is no run, or half of one")
    config, problems = load_run_config(folder), list[str]()

    def attempt(read: Callable[[], Any], otherwise: Any = None) -> Any:
        try:
            return read()
        except (NmtError, OSError) as error:
            problems.append(str(error))
            return otherwise

    checkpoints = open_checkpoints(folder, config)
    best = attempt(lambda: checkpoints.kept("best"), [])
    last = attempt(lambda: checkpoints.kept("last"), [])
    if best:
        attempt(lambda: checkpoints.find("best"))
    last_folder = attempt(lambda: checkpoints.find("last")) if last else None
    progress = attempt(lambda: last_folder and read_progress(last_folder))
    manifest = attempt(lambda: load_manifest(folder), {})
    journal = attempt(Journal(folder / JOURNAL_FILE).read, [])
    history = attempt(Journal(folder / EVALUATION_FOLDER / HISTORY_FILE).read, [])
    files = [*_files(folder)]
    of_checkpoints = [size for path, size, _ in files if checkpoints.folder in path.parents]
    changed = datetime.fromtimestamp(max((time for _, _, time in files), default=0.0), UTC)
    changes = differences(Config(name=config.name), config)
    facts = {
        "run": str(folder),
        "name": config.name,
        "direction": config.data.direction,
        "state": _state(folder, progress, has_checkpoint=bool(last)),
        "finished": progress and progress.finished,
        "changed": changed.isoformat(timespec="seconds"),
        "not_default": {
            key: {"value": value, "default": default} for key, (default, value) in changes.items()
        },
        "data": {
            "prepared": str(config.prepared_folder),
            "problem": _data_problem(folder, config),
            "url": None if config.data.source.url is None else str(config.data.source.url),
            "content": manifest.get("content"),
            "nmt_version": manifest.get("nmt_version"),
            "pairs": {name: split["pairs"] for name, split in manifest.get("splits", {}).items()},
            "inputs": manifest.get("inputs", []),
            "augmented": "augmentation" in manifest,
        },
        "vocabulary": {
            side: {**manifest["vocabulary"][side], "tokenizer": manifest["tokenizers"][side]}
            for side in SIDES
            if manifest
        },
        "progress": progress
        and {key: getattr(progress, key) for key in ("step", "epoch", "seconds", "skipped")},
        "best": _checkpoint(best),
        "last": _checkpoint(last),
        "training": [
            {key: event.get(key) for key in ("step", "perplexity")}
            for event in journal
            if event.get("event") == "train"
            and isinstance(event.get("perplexity"), float)
            and event["perplexity"] > 0
        ],
        "validations": [
            {key: event.get(key) for key in ("step", "loss", "bleu", "chrf")}
            for event in journal
            if event.get("event") == "validation"
        ],
        "evaluations": [*filter(_is_evaluation, history)],
        "sessions": read_training(folder),
        "bytes": {"total": sum(size for _, size, _ in files), "checkpoints": sum(of_checkpoints)},
        "problems": problems,
    }
    return config, facts


def find_runs(folder: Path) -> list[Path]:
    """The runs and damaged runs below `folder`, sorted; not those inside of other runs."""
    if not folder.is_dir():
        return []
    is_run = holds_run(folder) and (folder / MANIFEST).exists()
    if is_run or (folder / JOURNAL_FILE).exists() or (folder / "checkpoints").is_dir():
        return [folder]
    below = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [run for path in below for run in find_runs(path)]


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


def _state(folder: Path, progress: Progress | None, *, has_checkpoint: bool) -> str:
    if is_training(folder):
        return "training"
    if progress is not None and progress.finished:
        return "finished"
    if holds_weights_only(folder):
        return "weights only"
    return "unfinished" if has_checkpoint else "not started"


def _data_problem(folder: Path, config: Config) -> str | None:
    try:
        check_same_data(folder, config.prepared_folder)
    except NmtError as error:
        return str(error)
    return None


def _checkpoint(kept: list[KeptCheckpoint]) -> dict[str, Any] | None:
    if not kept:
        return None
    return {"checkpoint": kept[0].checkpoint, "step": kept[0].step, "score": kept[0].score}


def _files(folder: Path) -> Iterator[tuple[Path, int, float]]:
    """(path, bytes, time of the last change) of each file; a training may delete some meanwhile."""
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                yield path, path.stat().st_size, path.stat().st_mtime
        except OSError:
            continue
