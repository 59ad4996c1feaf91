"""Write files and folders whole or not at all; JSON with a checksum; SHA-256 beside files.

A file or folder is first written beside its path under a temporary name, then renamed. So whenever
a process is killed, the path holds either the old content or the new. The SHA-256 of the files in a
folder are recorded beside them: a changed or damaged file is noticed when it is read.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nmt.errors import DataError, NmtWarning, in_one_line, pass_on_lack_of_memory

ABANDONED_SECONDS = 60  # a temporary file without a change for so long is of a killed process
LOCK_FILE = "lock"  # held in a temporary folder by its process
FOLDERS_CAN_BE_OPENED = os.name != "nt"
CHECKSUMS_FILE = "checksums.json"

MAX_JSON_BYTES = 1 << 24  # nmt writes a few thousand
MAX_TEXT_BYTES = 1 << 28  # of a text file of a run, such as its vocabulary


@contextmanager
def replacing(path: Path, temporary: Path | None = None) -> Iterator[Path]:
    """Yields a temporary path to write, which replaces `path` at the end without an error.

    Args:
        temporary: the path to write; after an error the file stays, unless it is empty. By default
            the path is unique, and the file is deleted after an error.

    Raises:
        OSError: `path` cannot be written.
    """
    path = path.resolve()
    if temporary is None:  # delete what killed processes left behind
        abandoned = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]+\.tmp")
        for sibling in [*path.parent.glob(".*.tmp")]:
            if abandoned.fullmatch(sibling.name) and _age(sibling) > ABANDONED_SECONDS:
                _delete(sibling)
    working_path = temporary or path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with naming(path):
            yield working_path
            synchronize(working_path)
            os.replace(working_path, path)
            synchronize(path.parent)
    finally:
        if temporary is None or (working_path.is_file() and not working_path.stat().st_size):
            _delete(working_path)


def write_text(path: Path, text: str) -> None:
    """Replace `path` by a UTF-8 text, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yields a temporary folder to fill, which becomes `folder` at the end without an error.

    Raises:
        OSError: `folder` exists, or cannot be written.
    """
    with replacing(folder) as temporary:
        temporary.mkdir()
        yield temporary
        _synchronize_all(temporary)


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Yields a temporary folder to fill, which replaces `folder` at the end without an error.

    The block may take hours: a lock shows other processes that the temporary folder is in use.

    Raises:
        OSError: `folder` cannot be written.
    """
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    recover_folder(folder)
    building = folder.parent / f".{folder.name}.building-{secrets.token_hex(4)}"
    try:
        building.mkdir()
        with FileLock(building / LOCK_FILE):
            yield building
        (building / LOCK_FILE).unlink(missing_ok=True)
        _synchronize_all(building)
        with delaying_interrupts():
            if folder.exists():
                folder.rename(folder.parent / f".{folder.name}.replaced-{secrets.token_hex(4)}")
            building.rename(folder)
            synchronize(folder.parent)
    finally:
        _delete(building)
        recover_folder(folder)


def recover_folder(folder: Path) -> None:
    """Delete what killed processes left beside `folder`; move an old folder back if it is gone."""
    folder = folder.resolve()
    for path in [*folder.parent.glob(".*")]:
        is_replaced = path.name.startswith(f".{folder.name}.replaced-")
        if is_replaced and not folder.exists():
            path.rename(folder)
        elif is_replaced or (
            path.name.startswith(f".{folder.name}.building-") and not _is_being_built(path)
        ):
            _delete(path)


@contextmanager
def delaying_interrupts() -> Iterator[None]:
    """Ctrl-C waits until the block ends."""
    if threading.current_thread() is not threading.main_thread():  # which alone is interrupted
        yield
        return
    arrived: list[int] = []
    earlier = signal.signal(signal.SIGINT, lambda number, _: arrived.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, earlier)
        if arrived:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError that names no file, or the two of a copy, name the one that is written."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and (error.filename is None or error.filename2 is not None):
            error.filename, error.filename2 = str(path), None
        raise


def synchronize(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    is_folder = path.is_dir()
    if is_folder and not FOLDERS_CAN_BE_OPENED:
        return
    # Windows can only synchronize a file that is open for writing; other systems only open folders
    # for reading.
    descriptor = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, value: Mapping[str, Any], *, indent: int | None = None) -> None:
    """Replace `path` by a JSON object with a checksum of itself, whole or not at all."""
    text = json.dumps({**value, "checksum": _checksum(value)}, ensure_ascii=False, indent=indent)
    write_text(path, f"{text}\n" if indent else text)


def read_json(path: Path, *, verify: bool = True) -> dict[str, Any]:
    """A JSON object, without its checksum. Files of older versions have none.

    Args:
        verify: compare the content with the checksum.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged: no JSON object, or not the one of its checksum.
    """
    if path.stat().st_size > MAX_JSON_BYTES:
        raise ValueError(f"larger than {MAX_JSON_BYTES:,} bytes")
    try:
        value = json.loads(path.read_bytes().decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    checksum = value.pop("checksum", None)
    if verify and checksum is not None and checksum != _checksum(value):
        raise ValueError("its content does not fit its checksum")
    return value


def _checksum(value: Mapping[str, Any]) -> str:
    plain = json.loads(json.dumps(value))  # as it will be read: lists for tuples, text for keys
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


@contextmanager
def explain_read_errors(path: Path, advice: str = "") -> Iterator[None]:
    """Raises: DataError in place of the OSErrors of reading `path`."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file{advice}") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, not a file") from None
    except OSError as error:
        pass_on_lack_of_memory(error)
        reason = in_one_line(error.strerror or error)
        raise DataError(f"{path}: cannot be read ({reason}){advice}") from None


@contextmanager
def explain_write_errors(path: Path, advice: str = "") -> Iterator[None]:
    """Raises: DataError in place of the OSErrors of writing `path`, except for a broken pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error}){advice}") from None


def record_checksums(folder: Path, digests: Mapping[str, str]) -> None:
    """Record the SHA-256 of files in `folder` that are about to be written.

    The present content of a file stays valid as well, because a crash may come before it is
    replaced.
    """
    recorded = read_checksums(folder)
    added = {
        name: [digest, *(old for old in recorded.get(name, ())[:1] if old != digest)]
        for name, digest in digests.items()
    }
    write_json(folder / CHECKSUMS_FILE, {"sha256": {**recorded, **added}}, indent=2)


def write_recorded(path: Path, text: str) -> None:
    """Replace `path` by a UTF-8 text, and record its checksum."""
    record_checksums(path.parent, {path.name: hashlib.sha256(text.encode()).hexdigest()})
    write_text(path, text)


def read_checksums(folder: Path) -> dict[str, list[str]]:
    """The valid SHA-256 of files in `folder`, by name; empty if none are recorded, as in folders of
    older versions.

    Raises:
        DataError: the record is damaged.
    """
    path = folder / CHECKSUMS_FILE
    try:
        recorded = read_json(path)["sha256"]
        return {str(name): [*map(str, digests)] for name, digests in recorded.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        pass_on_lack_of_memory(error)
        raise DataError(
            f"{path}: damaged ({error}); restore it, or delete it to use the folder without checks"
        ) from None


def is_intact(path: Path) -> bool:
    """Whether the content of a file is what nmt wrote; True if its checksum is not recorded.

    Raises:
        DataError: the record of checksums is damaged.
        OSError: the file cannot be read.
    """
    digests = read_checksums(path.parent).get(path.name)
    return digests is None or sha256_of(path) in digests


def check_content(path: Path, advice: str) -> None:
    """Raises: DataError if `is_intact` is False, with `advice` on what to do."""
    with explain_read_errors(path, f"; {advice}"):
        if not is_intact(path):
            raise DataError(
                f"{path}: damaged, its content has changed since nmt wrote it; {advice}"
            )


def warn_if_changed(path: Path) -> None:
    """Warn if `is_intact` is False for a file that users may edit."""
    if not is_intact(path):
        warnings.warn(
            f"{path}: edited or damaged since nmt wrote it; if you edited it, delete its entry "
            f"in {CHECKSUMS_FILE} beside it",
            NmtWarning,
            stacklevel=2,
        )


def is_as_written(path: Path) -> bool:
    """Whether nmt wrote a file and nobody has changed it. Raises: DataError if it cannot be
    read.
    """
    with explain_read_errors(path):
        return sha256_of(path) in read_checksums(path.parent).get(path.name, [])


def _delete(path: Path) -> None:
    """Delete a file, or a folder as far as possible; Ctrl-C waits for the end."""
    with delaying_interrupts():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    """Seconds since the last change; 0 if another process has just deleted it."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _is_being_built(building: Path) -> bool:
    """Whether a process holds the lock of the folder; the system frees that of a killed one."""
    if not (building / LOCK_FILE).exists():  # the process may be about to take it
        return _age(building) <= ABANDONED_SECONDS
    try:
        with FileLock(building / LOCK_FILE, blocking=False):
            return False
    except Timeout:
        return True


def _synchronize_all(folder: Path) -> None:
    for path in [*folder.iterdir(), folder]:
        synchronize(path)
