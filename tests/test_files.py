"""nmt.files: nothing is half written, and what killed processes left is deleted."""

import errno
import fcntl
import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from nmt import files
from nmt.files import (
    LOCK_FILE,
    new_folder,
    recover_folder,
    replacing,
    replacing_folder,
    write_text,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def age(path: Path, seconds: float = 100) -> Path:
    """Make a file or folder look as if nobody had changed it for a while."""
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def make(folder: Path, content: str) -> None:
    with replacing_folder(folder) as building:
        (building / "file").write_text(content)


# One file


def test_a_text_replaces_the_file_and_follows_links(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_text(tmp_path / "link", "Grüß Gott!\n")
    assert names(tmp_path) == ["link", "target"]
    assert (tmp_path / "target").read_bytes() == "Grüß Gott!\n".encode()


def test_what_killed_processes_left_is_deleted_by_the_next_write(tmp_path: Path) -> None:
    for name in (".a.4711.tmp", ".a.0123abcd.tmp", ".b.a.0123abcd.tmp", ".a.notes.tmp"):
        (tmp_path / name).touch()
        age(tmp_path / name)
    (tmp_path / ".a.4567abcd.tmp").touch()  # another process is writing it
    write_text(tmp_path / "a", "new")
    assert names(tmp_path) == [".a.4567abcd.tmp", ".a.notes.tmp", ".b.a.0123abcd.tmp", "a"]
    left = tmp_path / ".data.0123abcd.tmp"
    make(left, "half")
    age(left)
    with new_folder(tmp_path / "data"):
        pass
    assert not left.exists()


@pytest.mark.parametrize(
    "raised",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.ENOSPC, "full", "a", None, "b"),
    ],
)
def test_an_error_names_the_file_that_is_written(tmp_path: Path, raised: OSError) -> None:
    for fill in (replacing, new_folder):
        with pytest.raises(OSError) as caught, fill(tmp_path / "file"):
            raise raised
        assert (caught.value.filename, caught.value.filename2) == (str(tmp_path / "file"), None)


# Windows


def fsync_of_windows(descriptor: int) -> None:
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")


def open_of_windows(path: Path, *arguments: int, open_file: Any = os.open) -> Any:
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied")
    return open_file(path, *arguments)


def test_windows_synchronizes_no_folder_and_only_what_is_open_for_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", fsync_of_windows)
    monkeypatch.setattr(os, "open", open_of_windows)
    monkeypatch.setattr(files, "FOLDERS_CAN_BE_OPENED", False)
    write_text(tmp_path / "file", "text")
    for fill in (new_folder, replacing_folder):
        with fill(tmp_path / fill.__name__) as folder:
            (folder / "file").write_text("text")
    assert names(tmp_path) == ["file", "new_folder", "replacing_folder"]


# Folders


def state(folder: Path) -> tuple[list[str], str]:
    return names(folder), (folder / "data" / "file").read_text()


@pytest.mark.parametrize("fill", [replacing_folder, new_folder])
def test_ctrl_c_just_after_the_temporary_folder_was_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fill: Callable[[Path], AbstractContextManager[Path]],
) -> None:
    make_folder = Path.mkdir

    def make_and_interrupt(path: Path, *arguments: Any, **options: Any) -> None:
        make_folder(path, *arguments, **options)
        if path.name.startswith("."):
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", make_and_interrupt)
    with pytest.raises(KeyboardInterrupt), fill(tmp_path / "data"):
        pass
    assert names(tmp_path) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("fill", [replacing_folder, new_folder, replacing])
def test_an_error_leaves_nothing_half_written(
    tmp_path: Path, fill: Callable[[Path], AbstractContextManager[Path]], error: type[BaseException]
) -> None:
    make(tmp_path / "data", "old")
    write_text(tmp_path / "file", "old")
    old = "file" if fill == replacing else "data"
    for name in (old, "new"):
        with pytest.raises(error), fill(tmp_path / name) as building:  # noqa: PT012
            (building if fill == replacing else building / "file").write_text("half")
            raise error
    assert state(tmp_path) == (["data", "file"], "old")
    assert (tmp_path / "file").read_text() == "old"


def test_a_new_folder_replaces_no_other(tmp_path: Path) -> None:
    make(tmp_path / "data", "old")
    with pytest.raises(OSError, match="data"), new_folder(tmp_path / "data") as building:
        (building / "file").write_text("new")
    assert state(tmp_path) == (["data"], "old")


def test_a_failing_rename_puts_the_old_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "data", "old")
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if "building" in self.name:
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(PermissionError):
        make(tmp_path / "data", "new")
    monkeypatch.undo()
    assert state(tmp_path) == (["data"], "old")


def test_ctrl_c_waits_until_the_old_folder_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "data", "old")
    delete = shutil.rmtree

    def interrupt_twice(path: Path, *, ignore_errors: bool) -> None:
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
        delete(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", interrupt_twice)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "data", "new")
    assert state(tmp_path) == (["data"], "new")


def test_building_folders_of_killed_processes_are_deleted(tmp_path: Path) -> None:
    left, unlocked, living, new, other = (
        tmp_path / f".{name}"
        for name in (
            *("data.building-0123abcd", "data.building-1234abcd", "data.building-2345abcd"),
            *("data.building-4567abcd", "other.building-0123abcd"),
        )
    )
    for path in (left, unlocked, living, new, other):
        path.mkdir()
    (left / LOCK_FILE).touch()
    age(unlocked)
    with FileLock(living / LOCK_FILE):
        make(tmp_path / "data", "new")
        assert names(tmp_path) == [living.name, new.name, other.name, "data"]


def test_a_kill_between_or_after_the_renames_loses_nothing(tmp_path: Path) -> None:
    make(tmp_path / ".data.replaced-0123abcd", "old")
    recover_folder(tmp_path / "data")
    assert state(tmp_path) == (["data"], "old")
    make(tmp_path / ".data.replaced-0123abcd", "older")
    recover_folder(tmp_path / "data")
    assert state(tmp_path) == (["data"], "old")
