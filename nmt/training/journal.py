"""The journal of a run: one JSON object a line, each with the step it belongs to."""

import json
import os
from pathlib import Path
from typing import Any


class Journal:
    """Appends to a file; a line is on disk when `write` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, event: str, step: int, **values: Any) -> None:
        """Append one line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, "step": step, **values}, ensure_ascii=False) + "\n")

    def read(self) -> list[dict[str, Any]]:
        """All whole lines, in order; an empty list if there is no journal. A line cut short by a crash is passed over."""
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines[:-1]]

    def rewind(self, step: int) -> None:
        """Forget what was written after `step`: a resumed training writes it again."""
        kept = [line for line in self.read() if line["step"] <= step]
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept), encoding="utf-8")
        os.replace(temporary, self.path)
