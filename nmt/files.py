"""Write files whole or not at all, read UTF-8 lines, hash files.

A file or folder is first written beside its path under a temporary name, then renamed. So whenever
a process is killed, the path holds either the old content or the new.
"""

import hashlib
import json
import os
import re
import secrets
import select
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nmt.errors import DataError, NmtWarning, pass_on_lack_of_memory

ABANDONED_SECONDS = (
    60  # a temporary file without a change for this long belongs to a killed process
)
LOCK_FILE = "lock"  # held in a temporary folder by its process
FOLDERS_CAN_BE_OPENED = os.name != "nt"

MAX_JSON_BYTES = 1 << 24  # nmt writes a few thousand
MAX_TEXT_BYTES = 1 << 28  # of a text file of a run, such as its vocabulary

# Limits of `stream_lines`.
BLOCK_BYTES = 1 << 16  # read at once
BATCH_LINES, BATCH_BYTES = (
    2048,
    1 << 18,
)  # a batch ends at about this size: the memory of attention grows with it
MAX_LINE_BYTES = 1 << 20
PIPE_WAIT = 0.02  # seconds for a pipe to fill again


@contextmanager
def replacing(path: Path, temporary: Path | None = None) -> Iterator[Path]:
    """Yields a temporary path to write, which replaces `path` when the block ends without an error.
    Links are followed.

    Args:
        temporary: the path to write; after an error the file stays, unless it is empty. By default
            the path is unique, and the file is deleted after an error.

    Raises:
        OSError: `path` cannot be written.
    """
    path = path.resolve()
    if temporary is None:
        _delete_abandoned(path)
    working_path = temporary or _temporary_sibling(path)
    try:
        with naming(path):
            yield working_path
            synchronize(working_path)
            os.replace(working_path, path)
            synchronize(path.parent)
    finally:
        if temporary is None or (working_path.is_file() and not working_path.stat().st_size):
            working_path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace `path` by a UTF-8 text, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a UTF-8 file line by line; each line ends with a line feed on every system."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yields a temporary folder to fill, which becomes `folder` when the block ends without an
    error.

    Raises:
        OSError: `folder` exists, or cannot be written.
    """
    _delete_abandoned(folder)
    temporary = _temporary_sibling(folder)
    try:
        temporary.mkdir()
        with naming(folder):
            yield temporary
            _synchronize_all(temporary)
            os.replace(temporary, folder)
            synchronize(folder.parent)
    finally:
        _delete(temporary)


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Yields a temporary folder to fill, which replaces `folder` when the block ends without an
    error.

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
            _swap(building, folder)
    finally:
        _delete(building)


def _swap(new: Path, folder: Path) -> None:
    """Put the folder `new` in the place of `folder`, which may exist, and delete the old one."""
    old = folder.parent / f".{folder.name}.replaced-{secrets.token_hex(4)}"
    if folder.exists():
        folder.rename(old)
    try:
        new.rename(folder)
    except BaseException:
        if old.exists():
            old.rename(folder)
        raise
    try:
        synchronize(folder.parent)
        _delete(old)
    finally:
        if old.exists():
            warnings.warn(
                f"{old}: the data that was replaced could not be deleted; delete this folder",
                NmtWarning,
                stacklevel=5,
            )


def recover_folder(folder: Path) -> None:
    """Delete what killed processes left beside `folder`; restore the old folder if one of them had
    moved it aside.
    """
    folder = folder.resolve()
    siblings = (
        [path for path in folder.parent.iterdir() if path.is_dir()]
        if folder.parent.is_dir()
        else []
    )
    for path in siblings:
        if path.name.startswith(f".{folder.name}.replaced-"):
            if folder.exists():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.rename(folder)
        elif path.name.startswith(f".{folder.name}.building-") and not _is_being_built(path):
            shutil.rmtree(path, ignore_errors=True)


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
    """Let an OSError that names no file, or the two of a copy, name the one that is being written:
    `path`.
    """
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


def read_lines(
    path: Path,
    *,
    advice: str = "",
    needs_final_line_feed: bool = False,
    max_bytes: int | None = None,
) -> list[str]:
    """The lines of a whole UTF-8 file, without line ends (\\n or \\r\\n) and byte order mark; none
    if it is empty.

    Args:
        advice: what to do about an error, for its message.
        needs_final_line_feed: refuse a file whose last line has no end: it was cut off.
        max_bytes: refuse a larger file before it is read.

    Raises:
        DataError: the file is missing, too large, cannot be read, is not UTF-8 (the line is named),
            or is cut off.
    """
    advice = advice and f"; {advice}"
    with explain_read_errors(path, advice):
        if max_bytes is not None and path.stat().st_size > max_bytes:
            raise DataError(f"{path}: larger than {max_bytes:,} bytes{advice}")
        content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line, byte = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        raise DataError(
            f"{path}, line {line}: not UTF-8 ({error.reason} at byte {byte}){advice}"
        ) from None
    *lines, rest = text.split("\n")
    if rest and needs_final_line_feed:
        raise DataError(f"{path}, line {len(lines) + 1}: the file is cut off here{advice}")
    return [*lines, rest] if rest else lines


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
        raise DataError(
            f"{path}: cannot be read ({' '.join(str(error.strerror or error).split())}){advice}"
        ) from None


@contextmanager
def explain_write_errors(path: Path, advice: str = "") -> Iterator[None]:
    """Raises: DataError in place of the OSErrors of writing `path`, except for a broken pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error}){advice}") from None


def stream_lines(stream: BufferedReader, name: str) -> Iterator[list[str]]:
    """UTF-8 lines of a file, a pipe or a keyboard, in batches of all lines that have arrived: no
    line waits for a later one.

    Args:
        name: of the stream, for messages.

    Raises:
        DataError: a line is not UTF-8, or too long; the message names it. All lines before it have
            been yielded.
    """
    rest, n_lines, ended = b"", 0, False
    while not ended:
        lines: list[bytes] = []
        n_bytes = 0
        while (
            not ended
            and len(lines) < BATCH_LINES
            and n_bytes < BATCH_BYTES
            and (not lines or _is_ready(stream))
        ):
            block = stream.read1(BLOCK_BYTES)
            ended = not block
            *complete, rest = (rest + block).split(b"\n")
            lines += complete
            n_bytes += len(block)
            if len(rest) > MAX_LINE_BYTES:
                break
        lines += [rest] if ended and rest else []
        yield from _decode(lines, name, n_lines + 1)
        n_lines += len(lines)
        if len(rest) > MAX_LINE_BYTES:
            raise DataError(
                f"{name}, line {n_lines + 1}: longer than {MAX_LINE_BYTES:,} bytes; put each "
                "sentence on its own line"
            )


def decode_batches(lines: Iterable[bytes], name: str) -> Iterator[list[str]]:
    """Undecoded lines as texts, in batches as those of `stream_lines`. Raises: DataError as
    there.
    """
    n_lines, n_bytes, batch = 0, 0, list[bytes]()
    for line in lines:
        batch.append(line)
        n_bytes += len(line)
        if len(batch) == BATCH_LINES or n_bytes > BATCH_BYTES:
            yield from _decode(batch, name, n_lines + 1)
            n_lines, n_bytes, batch = n_lines + len(batch), 0, []
    yield from _decode(batch, name, n_lines + 1)


def _decode(lines: Sequence[bytes], name: str, first: int) -> Iterator[list[str]]:
    """Yields the texts before the first bad line in one list, if there are any; `first` is the
    number of the first line.
    """
    texts: list[str] = []
    problem = None
    for number, line in enumerate(lines, first):
        try:
            texts.append(line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r"))
        except UnicodeDecodeError as error:
            problem = DataError(
                f"{name}, line {number}: not UTF-8 ({error.reason} at byte {error.start + 1})"
            )
            break
    if texts:
        yield texts
    if problem is not None:
        raise problem


def _is_ready(stream: BufferedReader) -> bool:
    """Whether a read would not block. Where the system cannot say, whether the stream is not a
    keyboard.
    """
    try:
        return bool(select.select([stream], [], [], PIPE_WAIT)[0])
    except (
        OSError,
        ValueError,
    ):  # select on Windows knows only sockets; a stream in memory has no descriptor
        return not stream.isatty()


def _delete(folder: Path) -> None:
    """Delete a folder as far as possible; Ctrl-C waits for the end."""
    with delaying_interrupts():
        shutil.rmtree(folder, ignore_errors=True)


def _temporary_sibling(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def _delete_abandoned(path: Path) -> None:
    """Delete the temporary siblings of `path` that killed processes left behind."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]+\.tmp")
    siblings = [*path.parent.iterdir()] if path.parent.is_dir() else []
    for sibling in siblings:
        if not name.fullmatch(sibling.name) or _age(sibling) <= ABANDONED_SECONDS:
            continue
        if sibling.is_dir():
            shutil.rmtree(sibling, ignore_errors=True)
        else:
            sibling.unlink(missing_ok=True)


def _age(path: Path) -> float:
    """Seconds since the last change; 0 if another process has just deleted it."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _is_being_built(building: Path) -> bool:
    """Whether a process holds the lock of the folder. The system frees the lock even if the process
    is killed.
    """
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
