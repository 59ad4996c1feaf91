"""Judge what a fault has left: messages, the files before the next call, and the files after it."""

import hashlib
import json
import os
import re
import time
from contextlib import chdir
from pathlib import Path
from typing import Any

from nmt.data.manifest import MANIFEST
from nmt.errors import NmtError
from nmt.extras.runs import check as doctor
from nmt.run.folder import holds_run
from scripts.faults.scenarios import Scenario
from scripts.faults.trial import Laboratory, Outcome

# Differ between two undisturbed calls: times, and what they affect.
VOLATILE_KEYS = {
    "checksum",
    "peak_memory",
    "seconds",
    "sentences_per_second",
    "time",
    "translation_seconds",
    "tokens_per_second",
    "validation_seconds",
}
PRESENCE_ONLY = ("curves.png", "seconds.txt", "history.jsonl")  # these record times, or each call
IGNORED = ("tensorboard",)  # a file per call
LEFTOVER = re.compile(r"\.(.*\.tmp|tmp\w+|.*\.(building|replaced)-\w+)|.*\.partial")
# by which files are made older before the next call: it may delete what nothing has changed for a
# minute
SECONDS = 120.0

Files = dict[str, str]


def read_files(folder: Path) -> Files:
    """Each file with a hash of what is equal in all undisturbed calls; each folder with an empty
    text.
    """
    files: Files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if any(part in IGNORED for part in path.parts):
            continue
        files[name] = (
            ""
            if path.is_dir() or path.name in PRESENCE_ONLY
            else hashlib.sha256(_stable(path)).hexdigest()[:16]
        )
    return files


def _stable(path: Path) -> bytes:
    content = path.read_bytes()
    try:
        if path.name == "checksums.json":
            return json.dumps(_stable_checksums(json.loads(content))).encode()
        if path.suffix == ".json":
            return json.dumps(_without_volatile(json.loads(content)), sort_keys=True).encode()
        if path.name == "journal.jsonl":
            events = [
                json.dumps(_without_volatile(json.loads(line)), sort_keys=True)
                for line in content.splitlines()
            ]
            return "\n".join(
                dict.fromkeys(events)
            ).encode()  # a repeated `nmt average` repeats its line
    except (ValueError, KeyError, TypeError):
        return content
    return content


def _stable_checksums(value: dict[str, Any]) -> dict[str, Any]:
    return {name: digests[0] for name, digests in sorted(value["sha256"].items())}


def _without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_volatile(entry)
            for key, entry in value.items()
            if key not in VOLATILE_KEYS
        }
    return [_without_volatile(entry) for entry in value] if isinstance(value, list) else value


def judge_messages(outcome: Outcome, *, may_fail: bool) -> list[str]:
    """Problems of the way a command ended. may_fail: whether an error is right, in one clear
    line.
    """
    problems = []
    if outcome.status is None:
        problems.append("hangs")
    if "Traceback" in outcome.err:
        problems.append(f"traceback: {outcome.last_line}")
    elif outcome.status and outcome.status > 0 and outcome.status != 141:
        if not may_fail:
            problems.append(f"fails: {outcome.last_line}")
        elif not outcome.last_line.startswith("nmt: "):
            problems.append(f"no clear line: {outcome.last_line}")
    if outcome.left_processes:
        problems.append("leaves a process")
    return problems


def judge_kept(folder: Path, scenario: Scenario, contents: dict[str, set[str]]) -> list[str]:
    """Damage to what was complete before the fault. contents: the hashes that a whole file may
    have.
    """
    problems = []
    for name in scenario.kept:
        problems += [f"{name}: {text}" for text in diagnose(folder, name)]
    for name in scenario.whole:
        path = folder / name
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
        if digest not in contents[name]:
            problems.append(f"{name}: neither the old file nor the new one")
    return problems


def diagnose(folder: Path, name: str) -> list[str]:
    """The damage that `nmt doctor` finds in a run or prepared folder."""
    path = Path(name)
    with chdir(folder):
        try:
            findings = doctor.run(path)
        except NmtError as error:
            return [str(error)]
    return [finding.text for finding in findings if finding.state == "damaged"]


def complete_folders(folder: Path) -> list[str]:
    """The runs and prepared folders directly below `folder`. A run gets its configuration last."""
    folders = [
        path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")
    ]
    return [
        path.name
        for path in folders
        if holds_run(path) or {"train.src.npy", MANIFEST} <= {*os.listdir(path)}
    ]


def leftovers(folder: Path) -> list[str]:
    """Files that only a killed process may leave."""
    return [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*"))
        if LEFTOVER.fullmatch(path.name)
    ]


def judge_next_call(laboratory: Laboratory, scenario: Scenario, expected: Files) -> list[str]:
    """Problems of the next call, two minutes later, and of the files after it."""
    then = time.time() - SECONDS
    for path in laboratory.folder.rglob("*"):
        os.utime(path, (then, then))
    outcome = laboratory.run(scenario.next_words)
    is_done = bool(scenario.done) and outcome.status == 1 and scenario.done in outcome.last_line
    if problems := judge_messages(outcome, may_fail=is_done):
        return [f"next call: {problem}" for problem in problems]
    return compare(expected, read_files(laboratory.folder))


def compare(expected: Files, files: Files) -> list[str]:
    """Differences to the files after an undisturbed call."""
    lacking = sorted(expected.keys() - files.keys())
    stray = sorted(files.keys() - expected.keys())
    changed = sorted(
        name for name in expected.keys() & files.keys() if expected[name] != files[name]
    )
    listed = {"lacking": lacking, "stray": stray, "different": changed}
    return [f"{state}: {', '.join(names)}" for state, names in listed.items() if names]
