"""The journal of a run: one JSON object per line, each with its step."""

import json
import os
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from nmt.errors import DataError, NmtWarning
from nmt.files import MAX_TEXT_BYTES, naming, synchronize, write_text

MAX_STEP = 10**12


def write_event(path: Path, event: str, step: int, **values: Any) -> None:
    """Append an event, and wait until it is on disk: a later checkpoint must not survive a
    power loss without it.
    """
    line = json.dumps({"event": event, "step": step, **values}, ensure_ascii=False)
    is_new = not path.exists()
    with naming(path), path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":  # a crash came while the last line was written
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
        file.write(f"{line}\n".encode())
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        synchronize(path.parent)


def read_events(path: Path) -> list[dict[str, Any]]:
    """All events in order; an empty list if there is no journal. Skips lines that are
    damaged, with a warning.

    Raises:
        DataError: the file is too large for a journal.
    """
    if not path.exists():
        return []
    if path.stat().st_size > MAX_TEXT_BYTES:
        raise DataError(f"{path}: larger than {MAX_TEXT_BYTES:,} bytes; this is no journal")
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    events: list[dict[str, Any]] = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
            if (
                isinstance(value, dict)
                and isinstance(value.get("event"), str)
                and isinstance(value.get("step"), int)
                and 0 <= value["step"] <= MAX_STEP
            ):
                events.append(value)
    if n_damaged := len(lines) - len(events):
        warnings.warn(f"{path}: damaged lines left out: {n_damaged}", NmtWarning, stacklevel=2)
    return events


def rewind(path: Path, step: int) -> None:
    """Delete the events after `step`: a resumed training writes them again."""
    lines = [
        json.dumps(each, ensure_ascii=False) for each in read_events(path) if each["step"] <= step
    ]
    write_text(path, "".join(f"{line}\n" for line in lines))
