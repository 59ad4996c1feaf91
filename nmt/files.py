"""Files that are replaced whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path, temporary: Path | None = None) -> Iterator[Path]:
    """A temporary sibling to write, which takes the place of `path` when the block ends without an error.

    Interrupted at any byte, `path` is what it was. A link is followed, not replaced.

    Args:
        temporary: that sibling, which stays after an error if there is anything in it; otherwise one that is deleted.

    Raises:
        OSError: as writing does.
    """
    path = path.resolve()
    written = temporary or path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield written
        synchronize(written)
        os.replace(written, path)
        synchronize(path.parent)
    finally:
        if temporary is None or (written.is_file() and not written.stat().st_size):
            written.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace `path` by a UTF-8 text, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def synchronize(path: Path) -> None:
    """Return when a file, or the entries of a folder, are on disk."""
    if os.name == "nt" and path.is_dir():  # Windows cannot open a folder
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
