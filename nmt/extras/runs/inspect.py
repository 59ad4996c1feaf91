"""`nmt runs show`: all about a run, from its folder."""

import json
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError

from nmt.commands.options import JsonOption, RunOrBundleArgument, to_json
from nmt.config.load import differences
from nmt.config.schema import Config
from nmt.data.manifest import load_manifest, training_parts
from nmt.errors import CheckpointError, NmtError, NmtWarning, printable
from nmt.report.table import label_rows
from nmt.run.checkpoint import KeptCheckpoint, read_progress, step_of
from nmt.run.folder import (
    EVALUATION_FOLDER,
    HISTORY_FILE,
    JOURNAL_FILE,
    check_same_data,
    find_run,
    holds_run,
    holds_weights_only,
    load_run_config,
    lock_file,
    open_checkpoints,
)
from nmt.run.journal import read_events
from nmt.run.load import unpacked
from nmt.run.progress import Progress
from nmt.run.provenance import read_training
from nmt.text.tokenizers import SIDES

HASH_LENGTH = 12  # characters of a SHA-256 on the screen


class Score(BaseModel, strict=True):
    """A score in the history of evaluations."""

    metric: str
    score: float


class ShownEvent(BaseModel, strict=True):
    """What is shown of an event of a training or an evaluation, if the event has it."""

    loss: float | None = None
    bleu: float | None = None
    chrf: float | None = None
    scores: list[Score] = []
    split: str | None = None
    beam: int | None = None


def command(path: RunOrBundleArgument = None, as_json: JsonOption = False) -> None:
    """Print all facts of a run or a bundle (default: the newest run).

    Raises:
        CheckpointError, ConfigError, DataError: there is no run, or a part of it is missing or
            damaged.
    """
    with unpacked(path) as folder:
        _, facts = read_facts(find_run(folder))
    if path is not None and path.is_file():
        facts |= {"run": str(path), "changed": _time_text(path.stat().st_mtime)}
    if as_json:
        print(to_json(facts))
    else:
        for rows in (_state_rows, _data_rows, _result_rows):
            for label, text in rows(facts):
                print(f"{label:<14}{printable(text)}".rstrip())


def is_of(event: Mapping[str, Any], checkpoint: str) -> bool:
    """Whether an evaluation is of this checkpoint alone, not of an ensemble with it."""
    match event.get("provenance"):
        case {"model": {"checkpoint": name}}:
            return bool(name == checkpoint)
        case {"members": _}:
            return False
    return bool(event["step"] == step_of(checkpoint))  # of an earlier version


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
    last = checkpoints.find("last")
    progress = None if last is None else read_progress(last)
    journal = _read_events(folder / JOURNAL_FILE)
    sessions = read_training(folder)
    manifest = load_manifest(folder)
    statuses = _statuses(folder)
    changes = differences(Config(name=config.name), config)
    return config, {
        "run": str(folder),
        "name": config.name,
        "direction": config.data.direction,
        "state": _state(folder, progress),
        "finished": progress and progress.finished,
        "changed": _time_text(max(status.st_mtime for status in statuses.values())),
        "not_default": {
            key: {"value": value, "default": default} for key, (default, value) in changes.items()
        },
        "data": _data_facts(folder, config, manifest),
        "vocabulary": {
            side: {**manifest["vocabulary"][side], "tokenizer": manifest["tokenizers"][side]}
            for side in SIDES
        },
        "progress": progress and _picked(vars(progress), "step", "epoch", "seconds", "skipped"),
        "best": _first(checkpoints.kept("best")),
        "last": _first(checkpoints.kept("last")),
        "validations": _events(journal, "validation", "step", "loss", "bleu", "chrf"),
        "averages": _events(journal, "average", "step", "loss", "bleu", "chrf"),
        "evaluations": _read_events(folder / EVALUATION_FOLDER / HISTORY_FILE),
        "sessions": sessions,
        "bytes": {
            "total": _bytes_below(folder, statuses),
            "checkpoints": _bytes_below(checkpoints.folder, statuses),
        },
    }


def _picked(values: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: values.get(key) for key in keys}


def _events(journal: Sequence[Mapping[str, Any]], name: str, *keys: str) -> list[dict[str, Any]]:
    return [_picked(event, *keys) for event in journal if event["event"] == name]


def _first(kept: Sequence[KeptCheckpoint]) -> dict[str, Any] | None:
    return _picked(vars(kept[0]), "checkpoint", "step", "score") if kept else None


def _data_facts(folder: Path, config: Config, manifest: Mapping[str, Any]) -> dict[str, Any]:
    origins: Counter[str] = Counter()  # how many training pairs of each there are
    for part in training_parts(manifest):
        origins[part["origin"]] += part["pairs"] * part["repeat"]
    problem = None
    try:
        check_same_data(folder, config.prepared_folder)
    except NmtError as error:  # what trained the run may have moved
        problem = str(error)
    return {
        "prepared": str(config.prepared_folder),
        "problem": problem,
        "url": config.data.source.url,
        "content": manifest["content"],
        "nmt_version": manifest["nmt_version"],
        "pairs": {name: split["pairs"] for name, split in manifest["splits"].items()},
        "inputs": manifest["inputs"],
        "augmented": "augmentation" in manifest,
        "origins": dict(origins),
    }


def _bytes_below(folder: Path, statuses: Mapping[Path, os.stat_result]) -> int:
    return sum(status.st_size for path, status in statuses.items() if folder in path.parents)


def _statuses(folder: Path) -> dict[Path, os.stat_result]:
    """Size and time of each file in a folder."""
    statuses = {}
    for path in folder.rglob("*"):
        with suppress(OSError):  # a training may delete it meanwhile
            if path.is_file():
                statuses[path] = path.stat()
    return statuses


def _read_events(path: Path) -> list[dict[str, Any]]:
    """The events of a journal without those that someone has damaged; a warning counts these."""
    events, n_damaged = [], 0
    for event in read_events(path):
        try:
            if event["event"] in ("validation", "average", "evaluation"):
                ShownEvent.model_validate(event)
            events.append(event)
        except ValidationError:
            n_damaged += 1
    if n_damaged:
        warnings.warn(f"{path}: damaged lines left out: {n_damaged}", NmtWarning, stacklevel=2)
    return events


def _state(folder: Path, progress: Progress | None) -> str:
    if is_training(folder):
        return "training"
    if holds_weights_only(folder):
        return "weights only"
    if progress is None:
        return "not started"
    return "finished" if progress.finished else "unfinished"


def is_training(folder: Path) -> bool:
    """Whether a process trains into the folder."""
    path = lock_file(folder)
    try:
        if path.exists():
            with FileLock(path, blocking=False):
                pass
    except OSError as error:  # or this user cannot take the lock
        return isinstance(error, Timeout)
    return False


def _time_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _state_rows(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "run", f"{facts['run']}: {facts['name']}, {facts['direction']}"
    progress, state = facts["progress"], facts["state"]
    if state == "weights only":
        yield "training", "not in this copy: it translates, but its training cannot resume"
    elif progress is None:
        yield "training", state
    else:
        skipped = f", {progress['skipped']} updates skipped" if progress["skipped"] else ""
        reasons = {"finished": f": {facts['finished']}", "training": ", in progress now"}
        yield (
            "training",
            f"{progress['step']:,} steps, {progress['epoch']} epochs, "
            f"{progress['seconds'] / 60:.1f} minutes{skipped}{reasons.get(state, f' ({state})')}",
        )
    for name in ("best", "last"):
        if (kept := facts[name]) is not None:
            score = "" if kept["score"] is None else f", {kept['score']:.4g} in validation"
            yield f"{name} step", f"{kept['step']:,}, checkpoints/{kept['checkpoint']}{score}"
    sessions: list[str] = []
    for session in facts["sessions"]:
        count = f", {session['processes']} processes" if session["processes"] > 1 else ""
        step = f", from step {session['step']}" if sessions else ""
        sessions.append(
            f"nmt {session['version']}, torch {session['libraries']['torch']}, "
            f"{session['device']}, {session['cpu']}, threads: {session['threads']}{count}{step}"
        )
    yield from label_rows("trained with", sessions)
    width = max(map(len, facts["not_default"]), default=0)
    settings = []
    for key, values in facts["not_default"].items():
        value, default = (json.dumps(values[name], ensure_ascii=False) for name in values)
        end = "" if default == "null" else f"  (default {default})"
        settings.append(f"{key:<{width}}  {value}{end}")
    yield from label_rows("not default", settings)


def _data_rows(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    data, sizes = facts["data"], facts["bytes"]
    pairs, origins = (
        ", ".join(f"{count:,} {name}" for name, count in data[key].items())
        for key in ("pairs", "origins")
    )
    yield (
        "data",
        f"{data['prepared']}, content {data['content'][:HASH_LENGTH]}: {pairs} pairs"
        f"{f', augmented ({origins})' if data['augmented'] else ''}",
    )
    if data["problem"]:
        yield "", data["problem"]
    for file in data["inputs"]:
        yield (
            "",
            f"{file['role']}: {file['path']}, {_size(file['bytes'])}, "
            f"SHA-256 {file['sha256'][:HASH_LENGTH]}",
        )
    vocabularies = zip(facts["direction"].split("-"), facts["vocabulary"].values(), strict=True)
    yield from label_rows(
        "vocabulary",
        (f"{code} {each['size']:,}, {each['tokenizer']}" for code, each in vocabularies),
    )
    yield "size on disk", f"{_size(sizes['total'])}, checkpoints {_size(sizes['checkpoints'])}"


def _result_rows(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    lines = []
    for event in facts["evaluations"][-6:]:
        scores = "  ".join(
            f"{score['metric']} {score['score']:.2f}" for score in event.get("scores", [])
        )
        lines.append(
            f"{event.get('split') or 'other sentences'}, step {event['step']:,}, "
            f"beam {event.get('beam')}: {scores}"
        )
    yield from label_rows("scores", lines)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"
