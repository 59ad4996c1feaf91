"""A folder that appears whole or not at all: it is built beside its place and renamed when it is complete."""

import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from nmt.errors import DataError
from nmt.files import synchronize

LOCK = "lock"
SCRATCH = "scratch"  # inside the folder that is being built; removed before it takes its place


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Yields an empty folder that takes the place of `folder` when the block ends without an error.

    On an error, Ctrl-C or a kill, `folder` is what it was before. What was left behind by a killed process is cleared away.

    Raises:
        DataError: the folder cannot be written.
    """
    folder = folder.resolve()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        recover(folder)
        building = folder.parent / f".{folder.name}.building-{secrets.token_hex(4)}"
        building.mkdir()
    except OSError as error:
        raise DataError(f"{folder}: cannot be written ({error.strerror or error})") from None
    lock = FileLock(building / LOCK)
    try:
        with lock:
            (building / SCRATCH).mkdir()
            yield building
            shutil.rmtree(building / SCRATCH)
        (building / LOCK).unlink(missing_ok=True)
        for path in [*building.iterdir(), building]:
            synchronize(path)
        _replace(folder, building)
    except OSError as error:
        raise DataError(f"{folder}: cannot be written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(building, ignore_errors=True)


def recover(folder: Path) -> None:
    """Clear away what killed processes left beside `folder`, and put back what one of them had moved aside."""
    folder = folder.resolve()
    for aside in _siblings(folder, "replaced"):
        if folder.exists():
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.rename(folder)
    for building in _siblings(folder, "building"):
        if _abandoned(building):
            shutil.rmtree(building, ignore_errors=True)


def _siblings(folder: Path, purpose: str) -> list[Path]:
    start = f".{folder.name}.{purpose}-"
    if not folder.parent.is_dir():
        return []
    return [path for path in folder.parent.iterdir() if path.name.startswith(start) and path.is_dir()]


def _abandoned(building: Path) -> bool:
    """Whether the process that was building is gone: the system frees its lock then, however it ended."""
    if not (building / LOCK).exists():
        # Another process may be about to take the lock.
        return time.time() - building.stat().st_mtime > 60
    try:
        with FileLock(building / LOCK, blocking=False):
            return True
    except Timeout:
        return False


def _replace(folder: Path, complete: Path) -> None:
    aside = folder.parent / f".{folder.name}.replaced-{secrets.token_hex(4)}"
    if folder.exists():
        folder.rename(aside)
    try:
        complete.rename(folder)
    except BaseException:
        if aside.exists():
            aside.rename(folder)
        raise
    synchronize(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)
