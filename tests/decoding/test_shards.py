"""Shards of translations."""

from pathlib import Path

from nmt.decoding.shards import SECONDS_FILE, seconds_of_shards


def test_lines_that_a_crash_has_damaged_do_not_count(tmp_path: Path) -> None:
    assert seconds_of_shards(tmp_path) == 0
    (tmp_path / SECONDS_FILE).write_bytes(b"1.50\n2.2.25\n\0\0\0\0\n0.25\n")
    assert seconds_of_shards(tmp_path) == 1.75
