"""The journal of a run: one JSON object a line, each with the step it belongs to."""

import json
from pathlib import Path
from typing import Any

from nmt.files import write_text


class Journal:
    """Appends to a file, line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, event: str, step: int, **values: Any) -> None:
        """Append one line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, "step": step, **values}, ensure_ascii=False) + "\n")

    def read(self) -> list[dict[str, Any]]:
        """All whole lines, in order; an empty list if there is no journal. What a crash has damaged is passed over."""
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")
        return [value for line in lines[:-1] if (value := _parse(line)) is not None]

    def rewind(self, step: int) -> None:
        """Forget what was written after `step`: a resumed training writes it again."""
        kept = [line for line in self.read() if line["step"] <= step]
        write_text(self.path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept))


def _parse(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("step"), int) else None
