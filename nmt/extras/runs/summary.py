"""The facts of a run, read from its folder without the weights."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nmt.config.load import differences
from nmt.config.schema import Config
from nmt.data.manifest import MANIFEST, load_manifest
from nmt.errors import CheckpointError, NmtError
from nmt.run.checkpoint import read_progress
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
    progress is that of the last checkpoint.

    Raises:
        CheckpointError, ConfigError, DataError: a part of the run is missing or damaged.
    """
    if not holds_run(folder):
        raise CheckpointError(f"{folder}: config.yaml is missing; this is no run, or half of one")
    config = load_run_config(folder)
    checkpoints = open_checkpoints(folder, config)
    kept = {
        name: {key: getattr(each, key) for key in ("checkpoint", "step", "score")}
        for name in ("best", "last")
        for each in checkpoints.kept(name)[:1]
    }
    last = checkpoints.find("last")
    progress = None if last is None else read_progress(last)
    events = Journal(folder / JOURNAL_FILE).read()
    sizes, changed = _files(folder)
    changes = differences(Config(name=config.name), config)
    return config, {
        "run": str(folder),
        "name": config.name,
        "direction": config.data.direction,
        "state": _state(folder, progress),
        "finished": progress and progress.finished,
        "changed": changed,
        "not_default": {
            key: {"value": value, "default": default} for key, (default, value) in changes.items()
        },
        **_data_facts(config, folder),
        "progress": progress
        and {key: getattr(progress, key) for key in ("step", "epoch", "seconds", "skipped")},
        "best": kept.get("best"),
        "last": kept.get("last"),
        "training": [
            {key: event[key] for key in ("step", "perplexity")}
            for event in events
            if event["event"] == "train"
        ],
        "validations": [
            {key: event.get(key) for key in ("step", "loss", "bleu", "chrf")}
            for event in events
            if event["event"] == "validation"
        ],
        "evaluations": Journal(folder / EVALUATION_FOLDER / HISTORY_FILE).read(),
        "sessions": read_training(folder),
        "bytes": {
            "total": sum(sizes.values()),
            "checkpoints": sum(
                size for path, size in sizes.items() if checkpoints.folder in path.parents
            ),
        },
    }


def find_runs(folder: Path) -> list[Path]:
    """The runs and damaged runs below `folder`, sorted; not those inside of other runs."""
    if not folder.is_dir():
        return []
    is_run = holds_run(folder) and (folder / MANIFEST).exists()
    if is_run or (folder / JOURNAL_FILE).exists() or (folder / "checkpoints").is_dir():
        return [folder]
    below = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [run for path in below for run in find_runs(path)]


def _state(folder: Path, progress: Progress | None) -> str:
    if is_training(folder):
        return "training"
    if holds_weights_only(folder):
        return "weights only"
    if progress is None:
        return "not started"
    return "finished" if progress.finished else "unfinished"


def _data_facts(config: Config, folder: Path) -> Mapping[str, Any]:
    manifest, problem, url = load_manifest(folder), None, config.data.source.url
    try:
        check_same_data(folder, config.prepared_folder)
    except NmtError as error:  # what trained the run may have moved
        problem = str(error)
    return {
        "data": {
            "prepared": str(config.prepared_folder),
            "problem": problem,
            "url": None if url is None else str(url),
            "content": manifest["content"],
            "nmt_version": manifest["nmt_version"],
            "pairs": {name: split["pairs"] for name, split in manifest["splits"].items()},
            "inputs": manifest["inputs"],
            "augmented": "augmentation" in manifest,
        },
        "vocabulary": {
            side: {**manifest["vocabulary"][side], "tokenizer": manifest["tokenizers"][side]}
            for side in SIDES
        },
    }


def _files(folder: Path) -> tuple[dict[Path, int], str]:
    """The bytes of each file, and the time of the last change."""
    sizes, last_change = {}, 0.0
    for path in folder.rglob("*"):
        with suppress(OSError):  # a training may delete it meanwhile
            if path.is_file():
                status = path.stat()
                sizes[path] = status.st_size
                last_change = max(last_change, status.st_mtime)
    return sizes, datetime.fromtimestamp(last_change, UTC).isoformat(timespec="seconds")
