"""Repositories on the Hugging Face hub. Its library finds the address (HF_ENDPOINT) and the access
token by itself.
"""

import errno
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from nmt import __version__
from nmt.errors import NmtError

LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ENOMEM)
MAX_REASON = 300  # characters of a message of the library


@dataclass(frozen=True)
class Snapshot:
    """A repository at one commit. sizes: bytes of each file."""

    repository: str
    commit: str
    sizes: dict[str, int]
    private: bool


def check_name(repository: str) -> None:
    """Raises: NmtError if this cannot be the name of a repository, or if the library of the hub is
    not installed.
    """
    with _explained(repository):
        from huggingface_hub.utils import validate_repo_id

        validate_repo_id(repository)


def create(repository: str, *, private: bool) -> Snapshot:
    """Create the repository if it does not exist. Raises: NmtError if the user may not."""
    with _explained(repository):
        _api().create_repo(repository, private=private or None, exist_ok=True)
    return find(repository)


def find(repository: str, revision: str | None = None) -> Snapshot:
    """The repository at a branch, tag or commit (default: main). Raises: NmtError if there is none,
    or no access.
    """
    with _explained(repository, revision):
        info = _api().model_info(repository, revision=revision, files_metadata=True)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
        return Snapshot(repository, str(info.sha), sizes, bool(info.private))


def commit(
    snapshot: Snapshot, files: Mapping[str, Path], deleted: Iterator[str], message: str
) -> str:
    """Add or replace files, and delete others, in one commit. Returns its address.

    Raises:
        NmtError: the user may not, or another commit came between.
    """
    with _explained(snapshot.repository):
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        operations = [
            *(CommitOperationAdd(name, path) for name, path in files.items()),
            *(CommitOperationDelete(name, is_folder=False) for name in deleted),
        ]
        result = _api().create_commit(
            snapshot.repository, operations, commit_message=message, parent_commit=snapshot.commit
        )
        return str(result.commit_url)


def download(snapshot: Snapshot, name: str, folder: Path) -> Path:
    """Download a file into `folder`, under its name. Raises: NmtError if that fails, also after
    some repetitions.
    """
    with _explained(snapshot.repository, snapshot.commit):
        return Path(
            _api().hf_hub_download(
                snapshot.repository, name, revision=snapshot.commit, local_dir=folder
            )
        )


def _api() -> Any:
    from huggingface_hub import HfApi
    from huggingface_hub.utils import disable_progress_bars

    if not sys.stderr.isatty():
        disable_progress_bars()
    return HfApi(library_name="nmt", library_version=__version__)


@contextmanager
def _explained(repository: str, revision: str | None = None) -> Iterator[None]:
    """Raises: NmtError in place of the errors of the library."""
    try:
        from huggingface_hub.errors import HfHubHTTPError
    except ModuleNotFoundError as error:
        raise NmtError(
            f"the hub needs the package {error.name}; install it with `pip install 'nmt[hub]'`"
        ) from None
    http_error = cast(
        "type[Exception]", HfHubHTTPError.__mro__[1]
    )  # of httpx or of httpx2: versions of the library differ
    try:
        yield
    except (http_error, OSError, ValueError, LookupError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            raise  # not an error of the network
        raise _explain(error, repository, revision) from None


def _explain(error: BaseException, repository: str, revision: str | None) -> NmtError:
    """What is wrong, and what to do."""
    from huggingface_hub import errors

    explained = {
        errors.HFValidationError: NmtError(
            f"{repository}: not the name of a repository; name one as USER/NAME, with letters, "
            "digits, - _ ."
        ),
        errors.GatedRepoError: NmtError(
            f"{repository}: its owner must admit you; ask for access on its page, and {LOG_IN}"
        ),
        errors.RepositoryNotFoundError: NmtError(
            f"{repository}: no such repository, or no access to it; check the name, or {LOG_IN}"
        ),
        errors.RevisionNotFoundError: NmtError(
            f"{repository}: has no revision {revision}; name a branch, a tag or a commit after @"
        ),
        errors.OfflineModeIsEnabled: NmtError(
            f"{repository}: cannot be reached, because HF_HUB_OFFLINE is set; unset it"
        ),
    }
    for kind, explanation in explained.items():
        if isinstance(error, kind):
            return explanation
    reason = _reason(error)
    if not isinstance(error, errors.HfHubHTTPError):
        return NmtError(
            f"{repository}: the transfer failed ({reason}); check the network and "
            "HF_ENDPOINT, or "
            "try again later"
        )
    if error.response.status_code in (401, 403):
        return NmtError(f"{repository}: the hub refuses this access ({reason}); {LOG_IN}")
    if error.response.status_code == 412:
        return NmtError(f"{repository}: somebody else has changed it meanwhile; push again")
    return NmtError(f"{repository}: the hub reports an error ({reason}); try again later")


def _reason(error: BaseException) -> str:
    """What the hub says; or else the message of the error and of its cause. One short line."""
    cause = str(error.__cause__ or "")
    text = getattr(error, "server_message", None) or (
        str(error) if cause in str(error) else f"{error}: {cause}"
    )
    return " ".join(text.split())[:MAX_REASON]
