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


class Journal:
    """A file of events, one JSON object per line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, event: str, step: int, **values: Any) -> None:
        """Append an event, and wait until it is on disk: a later checkpoint must not survive a
        power loss without it.
        """
        line = json.dumps({"event": event, "step": step, **values}, ensure_ascii=False)
        is_new = not self.path.exists()
        with naming(self.path), self.path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read() != b"\n":  # a crash came while the last line was written
                    file.seek(0)
                    file.truncate(file.read().rfind(b"\n") + 1)
            file.write(f"{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            synchronize(self.path.parent)

    def read(self) -> list[dict[str, Any]]:
        """All events in order; an empty list if there is no journal. Skips lines that are
        damaged, with a warning.

        Raises:
            DataError: the file is too large for a journal.
        """
        if not self.path.exists():
            return []
        if self.path.stat().st_size > MAX_TEXT_BYTES:
            raise DataError(
                f"{self.path}: larger than {MAX_TEXT_BYTES:,} bytes; this is no journal"
            )
        lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
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
            warnings.warn(
                f"{self.path}: damaged lines left out: {n_damaged}", NmtWarning, stacklevel=2
            )
        return events

    def rewind(self, step: int) -> None:
        """Delete the events after `step`: a resumed training writes them again."""
        lines = [
            json.dumps(each, ensure_ascii=False) for each in self.read() if each["step"] <= step
        ]
        write_text(self.path, "".join(f"{line}\n" for line in lines))
