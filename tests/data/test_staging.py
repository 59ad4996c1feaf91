"""Folders that appear whole or not at all."""

import os
import time
from pathlib import Path

import pytest
from filelock import FileLock

from nmt.data.staging import LOCK, SCRATCH, recover, staged
from nmt.errors import DataError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make(folder: Path, content: str) -> None:
    with staged(folder) as building:
        (building / SCRATCH / "temporary").write_text("x")
        (building / "file").write_text(content)


def test_a_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    with staged(tmp_path / "deep" / "data") as building:
        assert not (tmp_path / "deep" / "data").exists()
        (building / "file").write_text("new")
    assert names(tmp_path / "deep") == ["data"]
    assert names(tmp_path / "deep" / "data") == ["file"]


def test_it_takes_the_place_of_the_old_one_or_of_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    make(tmp_path / "data", "old")
    make(tmp_path / "data", "new")
    assert names(tmp_path) == ["data"]
    assert (tmp_path / "data" / "file").read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_one_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    make(tmp_path / "data", "old")

    def fail() -> None:
        with staged(tmp_path / "data") as building:
            (building / "file").write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert names(tmp_path) == ["data"]
    assert (tmp_path / "data" / "file").read_text() == "old"


def test_a_failing_rename_puts_the_old_one_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "data", "old")
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if "building" in self.name:
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(DataError, match=r"data: cannot be written \(Permission denied\)"):
        make(tmp_path / "data", "new")
    monkeypatch.undo()
    assert names(tmp_path) == ["data"]
    assert (tmp_path / "data" / "file").read_text() == "old"


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    left = tmp_path / ".data.building-0123abcd"
    left.mkdir()
    (left / LOCK).touch()
    unlocked = tmp_path / ".data.building-4567abcd"
    unlocked.mkdir()
    os.utime(unlocked, (time.time() - 100, time.time() - 100))
    other = tmp_path / ".other.building-0123abcd"
    other.mkdir()
    make(tmp_path / "data", "new")
    assert names(tmp_path) == [other.name, "data"]


def test_what_a_living_process_is_building_stays(tmp_path: Path) -> None:
    building, new = tmp_path / ".data.building-0123abcd", tmp_path / ".data.building-4567abcd"
    building.mkdir()
    new.mkdir()
    with FileLock(building / LOCK):
        make(tmp_path / "data", "new")
        assert names(tmp_path) == [building.name, new.name, "data"]


def test_a_kill_between_the_renames_loses_nothing(tmp_path: Path) -> None:
    make(tmp_path / "data", "old")
    (tmp_path / "data").rename(tmp_path / ".data.replaced-0123abcd")
    recover(tmp_path / "data")
    assert (tmp_path / "data" / "file").read_text() == "old"


def test_a_kill_after_the_renames_leaves_the_new_one(tmp_path: Path) -> None:
    make(tmp_path / ".data.replaced-0123abcd", "old")
    make(tmp_path / "data", "new")
    assert names(tmp_path) == ["data"]
    assert (tmp_path / "data" / "file").read_text() == "new"


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"data: cannot be written \((Not a directory|File exists)\)"):
        make(tmp_path / "file" / "data", "new")


def test_a_full_disk_is_reported_in_one_line(tmp_path: Path) -> None:
    def fill() -> None:
        with staged(tmp_path / "data"):
            raise OSError(28, "No space left on device")

    with pytest.raises(DataError, match=r"data: cannot be written \(No space left on device\)"):
        fill()
    assert names(tmp_path) == []
