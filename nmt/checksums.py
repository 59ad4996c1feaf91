"""The SHA-256 of the files in a folder, recorded beside them: a changed or damaged file is noticed
when it is read.
"""

import hashlib
import warnings
from collections.abc import Mapping
from pathlib import Path

from nmt.errors import DataError, NmtWarning, pass_on_lack_of_memory
from nmt.files import explain_read_errors, read_json, sha256_of, write_json, write_text

CHECKSUMS_FILE = "checksums.json"


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
        return {
            str(name): [*map(str, digests)] for name, digests in read_json(path)["sha256"].items()
        }
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
        text = (
            f"{path}: edited or damaged since nmt wrote it; if you edited it, delete its entry "
            f"in {CHECKSUMS_FILE} beside it"
        )
        warnings.warn(text, NmtWarning, stacklevel=2)
