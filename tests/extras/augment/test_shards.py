"""Shards of translations."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.extras.augment import shards
from nmt.extras.augment.shards import SECONDS_FILE, seconds_of_shards, write_shard
from nmt.files import write_text


def test_a_shard_is_there_only_with_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translation = SimpleNamespace(
        text="Hallo.", src_cut=False, complete=True, tokens=["Hallo"], src_tokens=["Hello"]
    )
    translator: Any = SimpleNamespace(translate=lambda texts: [translation for _ in texts])
    assert seconds_of_shards(tmp_path) == 0
    (tmp_path / SECONDS_FILE).write_text("1.00\n0.50\n")  # as older versions wrote it
    failing = {SECONDS_FILE}

    def write(path: Path, text: str) -> None:
        if path.name in failing:
            raise OSError(5, "Input/output error", str(path))
        write_text(path, text)

    monkeypatch.setattr(shards, "write_text", write)
    with pytest.raises(OSError, match=SECONDS_FILE):
        write_shard(tmp_path / "000000.txt", ["Hello."], translator)
    assert [path.name for path in tmp_path.iterdir()] == [SECONDS_FILE]
    failing.clear()
    write_shard(tmp_path / "000000.txt", ["Hello."], translator)
    assert (tmp_path / "000000.txt").read_text() == "Hallo.\n"
    assert seconds_of_shards(tmp_path) >= 1.5
