"""`nmt inspect`: what a run is, from its folder: configuration, data, model, curve, scores, and the
next commands.
"""

import json
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite, log
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.commands.options import JsonOption, RunOrBundleArgument, to_json
from nmt.config.load import differences
from nmt.config.schema import Config
from nmt.errors import CheckpointError, NmtError, printable
from nmt.extras.runs.summary import RunSummary
from nmt.extras.share.bundle import unpacked
from nmt.extras.share.card import model_card
from nmt.model.seq2seq import parameters_by_part
from nmt.report.sparkline import sparkline
from nmt.report.table import label_rows
from nmt.run.checkpoint import KeptCheckpoint
from nmt.run.folder import CONFIG_FILE, build_model, check_same_data, find_run
from nmt.run.provenance import read_training
from nmt.text.tokenizers import SIDES

HASH_LENGTH = 12  # characters of a SHA-256 on the screen
MAX_SCORES_SHOWN = 6
MAX_CURVE_WIDTH = 48
LABEL_WIDTH = 14

Rows = Iterator[tuple[str, str]]


def command(
    folder: RunOrBundleArgument = None,
    as_json: JsonOption = False,
    as_card: Annotated[
        bool,
        typer.Option(
            "--card", help="Print a model card: Markdown, with the metadata of model hubs."
        ),
    ] = False,
) -> None:
    """The command line."""
    if as_card and as_json:
        raise typer.BadParameter("give --card or --json, not both")

    facts = run(folder)
    if as_card:
        print(card(facts), end="")
    else:
        print(to_json(facts) if as_json else describe(facts))


def run(path: Path | None = None) -> dict[str, Any]:
    """All facts of a run or a bundle (default: the newest run), ready for JSON.

    Raises:
        CheckpointError: there is no run, or the bundle is damaged.
        ConfigError: the configuration of the run is damaged.
    """
    if path is None or not path.is_file():
        folder = find_run(path)
        return _facts(folder, folder)
    with unpacked(path) as folder:
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return {**_facts(folder, path), "changed": changed.isoformat(timespec="seconds")}


def _facts(folder: Path, path: Path) -> dict[str, Any]:
    """The facts of the run in `folder`, which the user calls `path`."""
    summary = RunSummary.load(folder)
    config, manifest, progress = summary.config, summary.manifest or {}, summary.progress
    problems = list(summary.problems)
    return {
        "run": str(path),
        "name": config.name,
        "direction": config.data.direction,
        "state": summary.state,
        "finished": progress.finished if progress else None,
        "changed": summary.changed.isoformat(timespec="seconds"),
        "not_default": _not_default(config),
        "data": _data(folder, config, manifest),
        "vocabulary": {
            side: {**manifest["vocabulary"][side], "tokenizer": manifest["tokenizers"][side]}
            for side in SIDES
            if manifest
        },
        "parameters": _parameters(folder, config, problems),
        "progress": progress
        and {
            "step": progress.step,
            "epoch": progress.epoch,
            "seconds": progress.seconds,
            "skipped": progress.skipped,
        },
        "best": _checkpoint(summary.best),
        "last": _checkpoint(summary.last),
        "training": [
            {key: event.get(key) for key in ("step", "perplexity")}
            for event in summary.journal
            if _is_update(event)
        ],
        "validations": [
            {key: event.get(key) for key in ("step", "loss", "bleu", "chrf")}
            for event in summary.validations
        ],
        "evaluations": summary.evaluations,
        "sessions": read_training(folder),
        "bytes": {"total": summary.bytes, "checkpoints": summary.checkpoint_bytes},
        "problems": [problem.replace(str(folder), str(path)) for problem in problems],
        "next": _next_commands(summary, path),
    }


def _is_update(event: dict[str, Any]) -> bool:
    return (
        event.get("event") == "train"
        and isinstance(event.get("perplexity"), float)
        and event["perplexity"] > 0
    )


def _not_default(config: Config) -> dict[str, dict[str, Any]]:
    changes = differences(Config(name=config.name), config)
    return {key: {"value": value, "default": default} for key, (default, value) in changes.items()}


def _data(folder: Path, config: Config, manifest: dict[str, Any]) -> dict[str, Any]:
    try:
        check_same_data(folder, config.prepared_folder)
        problem = None
    except NmtError as error:
        problem = str(error)
    return {
        "prepared": str(config.prepared_folder),
        "problem": problem,
        "url": None if config.data.source.url is None else str(config.data.source.url),
        "content": manifest.get("content"),
        "nmt_version": manifest.get("nmt_version"),
        "pairs": {name: split["pairs"] for name, split in manifest.get("splits", {}).items()},
        "inputs": manifest.get("inputs", []),
        "augmented": "augmentation" in manifest,
    }


def _parameters(folder: Path, config: Config, problems: list[str]) -> dict[str, Any] | None:
    try:
        parts, total = parameters_by_part(build_model(folder, config))
    except NmtError as error:
        problems.append(str(error))
        return None
    return {"total": total, "parts": parts}


def _checkpoint(kept: KeptCheckpoint | None) -> dict[str, Any] | None:
    return (
        None
        if kept is None
        else {"checkpoint": kept.checkpoint, "step": kept.step, "score": kept.score}
    )


def _next_commands(summary: RunSummary, path: Path) -> list[str]:
    folder = shlex.quote(str(path))
    commands = []
    if summary.state in ("unfinished", "not started"):
        commands.append(f"nmt train -c {shlex.quote(str(path / CONFIG_FILE))} -o {folder} --resume")
    if summary.best is None and summary.last is None:
        return commands
    if summary.state == "finished" and not any(
        event.get("split") == "test" for event in summary.evaluations
    ):
        commands.append(f"nmt evaluate {folder}")
    commands.append(f'nmt translate --run {folder} "..."')
    if summary.state == "finished":
        commands.append(f"nmt reproduce {folder}")
    return commands


def describe(facts: dict[str, Any]) -> str:
    """The facts for the screen."""
    rows = [
        *_state_rows(facts),
        *_config_rows(facts),
        *_data_rows(facts),
        *_model_rows(facts),
        *_curve_rows(facts),
        *_score_rows(facts),
        *label_rows("problem", facts["problems"]),
        *label_rows("next", facts["next"]),
    ]
    return "\n".join(f"{label:<{LABEL_WIDTH}}{printable(text)}".rstrip() for label, text in rows)


def card(facts: dict[str, Any]) -> str:
    """The facts as a model card, in Markdown. Raises: CheckpointError if there are no weights
    yet.
    """
    best = facts["best"] or facts["last"]
    if best is None:
        raise CheckpointError(f"{facts['run']}: has no weights yet; train it first")
    return "\n".join(map(printable, model_card(facts, best["step"]).split("\n")))


def _state_rows(facts: dict[str, Any]) -> Rows:
    yield "run", f"{facts['run']}: {facts['name']}, {facts['direction']}"
    progress, state = facts["progress"], facts["state"]
    reason = (
        f": {facts['finished']}"
        if state == "finished"
        else ", in progress now"
        if state == "training"
        else f" ({state})"
    )
    if state == "weights only":
        yield "training", "not in this copy: it translates, but its training cannot resume"
    elif progress is None:
        yield "training", state
    else:
        steps = (
            f"{progress['step']:,} steps, {progress['epoch']} epochs, "
            f"{progress['seconds'] / 60:.1f} minutes"
        )
        yield (
            "training",
            steps
            + (f", {progress['skipped']} updates skipped" if progress["skipped"] else "")
            + reason,
        )
    for name in ("best", "last"):
        if (kept := facts[name]) is not None:
            score = "" if kept["score"] is None else f", {kept['score']:.4g} in validation"
            yield f"{name} step", f"{kept['step']:,}, checkpoints/{kept['checkpoint']}{score}"
    sessions: list[str] = []
    for session in facts["sessions"]:
        libraries = f"nmt {session['version']}, torch {session['libraries']['torch']}"
        count = f", {session['processes']} processes" if session["processes"] > 1 else ""
        step = f", from step {session['step']}" if sessions else ""
        sessions.append(
            f"{libraries}, {session['device']}, {session['cpu']}, threads: "
            f"{session['threads']}{count}{step}"
        )
    yield from label_rows("trained with", sessions)


def _config_rows(facts: dict[str, Any]) -> Rows:
    width = max(map(len, facts["not_default"]), default=0)
    settings = []
    for key, values in facts["not_default"].items():
        value, default = (
            json.dumps(values[name], ensure_ascii=False) for name in ("value", "default")
        )
        settings.append(
            f"{key:<{width}}  {value}" + ("" if default == "null" else f"  (default {default})")
        )
    yield from label_rows("not default", settings)


def _data_rows(facts: dict[str, Any]) -> Rows:
    data = facts["data"]
    if not data["content"]:
        return
    pairs = ", ".join(f"{count:,} {name}" for name, count in data["pairs"].items())
    yield (
        "data",
        (
            f"{data['prepared']}, content {data['content'][:HASH_LENGTH]}: {pairs} "
            f"pairs{', augmented' * data['augmented']}"
        ),
    )
    if data["problem"]:
        yield "", data["problem"]
    for file in data["inputs"]:
        yield (
            "",
            (
                f"{file['role']}: {file['path']}, {_size(file['bytes'])}, SHA-256 "
                f"{file['sha256'][:HASH_LENGTH]}"
            ),
        )
    vocabularies = zip(
        facts["direction"].split("-"), map(facts["vocabulary"].get, SIDES), strict=True
    )
    yield from label_rows(
        "vocabulary",
        (f"{code} {figures['size']:,}, {figures['tokenizer']}" for code, figures in vocabularies),
    )


def _model_rows(facts: dict[str, Any]) -> Rows:
    if (parameters := facts["parameters"]) is not None:
        parts = ", ".join(f"{name} {count:,}" for name, count in parameters["parts"].items())
        yield "parameters", f"{parameters['total']:,}: {parts}"
    sizes = facts["bytes"]
    yield "size on disk", f"{_size(sizes['total'])}, checkpoints {_size(sizes['checkpoints'])}"


def _curve_rows(facts: dict[str, Any]) -> Rows:
    validations = facts["validations"]
    curves = {
        "train loss": ([log(event["perplexity"]) for event in facts["training"]], ".3f"),
        "dev loss": ([event["loss"] for event in validations], ".3f"),
        "dev BLEU": ([event["bleu"] for event in validations], ".2f"),
        "dev chrF": ([event["chrf"] for event in validations], ".2f"),
    }
    for name, (values, digits) in curves.items():
        points = [value for value in values if isinstance(value, float) and isfinite(value)]
        if points:
            shown = points[:: -(-len(points) // MAX_CURVE_WIDTH)]
            yield (
                name,
                (
                    f"{sparkline(shown, low=min(shown))}  {points[0]:{digits}} to "
                    f"{points[-1]:{digits}}"
                ),
            )


def _score_rows(facts: dict[str, Any]) -> Rows:
    lines = []
    for event in facts["evaluations"][-MAX_SCORES_SHOWN:]:
        scores = "  ".join(
            f"{score['metric']} {score['score']:.2f}" for score in event.get("scores", [])
        )
        sentences = event.get("split") or "other sentences"
        lines.append(f"{sentences}, step {event['step']:,}, beam {event.get('beam')}: {scores}")
    yield from label_rows("scores", lines)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"
