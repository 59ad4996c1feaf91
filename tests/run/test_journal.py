"""The journal of a run."""

import json
from pathlib import Path

from nmt.run.journal import Journal


def test_rewinding_deletes_later_events(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    for step in (1, 2, 3):
        journal.write("train", step, loss=1 / step)
    with journal.path.open("a", encoding="utf-8") as file:
        file.write('\0\0\0\n[]\n{"event": "tra')  # what a power cut may leave
    assert [line["step"] for line in journal.read()] == [1, 2, 3]
    journal.rewind(2)
    assert [json.loads(line)["step"] for line in journal.path.read_text().splitlines()] == [1, 2]


def test_lines_end_in_a_newline_character_on_every_system(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write("train", 1, loss=2.0)
    assert journal.path.read_bytes() == b'{"event": "train", "step": 1, "loss": 2.0}\n'
