"""The journal of a run: one JSON object per line, each with its step."""

import json
from pathlib import Path
from typing import Any

from nmt.files import write_text


class Journal:
    """A file of events, one JSON object per line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, event: str, step: int, **values: Any) -> None:
        """Append an event."""
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps({"event": event, "step": step, **values}, ensure_ascii=False) + "\n")

    def read(self) -> list[dict[str, Any]]:
        """All events in order; an empty list if there is no journal. Skips lines that a crash damaged."""
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")
        return [value for line in lines[:-1] if (value := _parse(line)) is not None]

    def rewind(self, step: int) -> None:
        """Delete the events after `step`: a resumed training writes them again."""
        kept = [event for event in self.read() if event["step"] <= step]
        write_text(self.path, "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in kept))


def _parse(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("step"), int) else None
