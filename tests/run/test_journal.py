"""The journal of a run."""

import json
import os
from pathlib import Path

import pytest

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


def test_an_event_after_a_crash_is_not_lost_with_the_cut_off_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write("train", 1, loss=2.0)
    with journal.path.open("a", encoding="utf-8") as file:
        file.write('{"event": "tra')
    journal.write("train", 2, loss=1.0)
    assert [line["step"] for line in journal.read()] == [1, 2]
    assert [json.loads(line)["step"] for line in journal.path.read_text().splitlines()] == [1, 2]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the names of open files")
def test_an_event_is_on_disk_before_the_next_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synchronized: list[Path] = []
    monkeypatch.setattr(
        os,
        "fsync",
        lambda descriptor: synchronized.append(Path(f"/proc/self/fd/{descriptor}").resolve()),
    )
    Journal(tmp_path / "journal.jsonl").write("train", 1, loss=2.0)
    assert synchronized == [tmp_path / "journal.jsonl", tmp_path]
