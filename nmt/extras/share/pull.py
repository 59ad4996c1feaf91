"""`nmt pull`: makes a run folder of a repository that `nmt push` wrote."""

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from nmt.data.manifest import MANIFEST
from nmt.errors import CheckpointError, DataError, NmtError
from nmt.extras.share import hub
from nmt.extras.share.bundle import BEST_FILE, INFO_FILE, RUN_FILES, check_info, pointer_to
from nmt.extras.share.hub import Snapshot
from nmt.files import (
    CHECKSUMS_FILE,
    MAX_TEXT_BYTES,
    explain_write_errors,
    read_json,
    record_checksums,
    replacing_folder,
    sha256_of,
    synchronize,
    write_json,
)
from nmt.run.checkpoint import MODEL_FILE
from nmt.run.folder import CARD_FILE, CONFIG_FILE, RUNS_FOLDER
from nmt.run.load import build_translator

NEEDED = (CONFIG_FILE, MANIFEST, "src.vocab.txt", "tgt.vocab.txt", MODEL_FILE)
POSSIBLE = {*RUN_FILES, MODEL_FILE} - {CHECKSUMS_FILE, CARD_FILE}


def command(
    repository: Annotated[
        str,
        typer.Argument(
            help="Repository on the hub; also a branch, tag or commit of it.",
            metavar="USER/NAME[@REVISION]",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to write. Default: runs/NAME.", metavar="DIR"),
    ] = None,
) -> None:
    """The command line."""
    print(run(repository, output))


def run(repository: str, output: Path | None = None) -> str:
    """Download a model and check it. Nothing is left of a download that fails. Returns lines for
    the user.

    Args:
        repository: USER/NAME, or USER/NAME@REVISION: a branch, tag or commit.
        output: the run folder to write; default: runs/NAME.

    Raises:
        CheckpointError: the repository holds no model of nmt, or a damaged one.
        DataError: `output` holds something, or the disk is too small.
        NmtError: the hub cannot be reached or refuses.
    """
    name, _, revision = repository.partition("@")
    hub.check_name(name)
    output = output or RUNS_FOLDER / name.rpartition("/")[2]
    _check_free(output)
    snapshot = hub.find(name, revision or None)
    if INFO_FILE not in snapshot.sizes:
        raise CheckpointError(
            f"{name}: holds no model of nmt ({INFO_FILE} is missing); `nmt push` publishes such "
            "models"
        )
    with explain_write_errors(output), replacing_folder(output) as folder:
        try:
            checkpoint = _download(snapshot, folder)
            build_translator([(folder, folder / "checkpoints" / checkpoint)], device="cpu")
        except NmtError as error:
            raise type(error)(str(error).replace(str(folder), name)) from None
        _check_free(output)
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file()) / 1e6
    return (
        f"{output}: {name} at {snapshot.commit[:12]}, {checkpoint}, {size:.1f} MB\nnext: nmt "
        f'translate --run {output} "..."'
    )


def _check_free(output: Path) -> None:
    """Raises: DataError if there is something at `output` already."""
    if output.is_file() or (output.is_dir() and any(output.iterdir())):
        raise DataError(f"{output}: exists; choose another folder with -o, or delete it")


def _download(snapshot: Snapshot, folder: Path) -> str:
    """Fill a run folder, and return the name of its checkpoint. All names of files are fixed: none
    comes from the repository.
    """
    checkpoint, digests = _read_info(snapshot, folder)
    _check_sizes(snapshot, digests, folder)
    for name, digest in digests.items():
        if sha256_of(hub.download(snapshot, name, folder)) != digest:
            raise CheckpointError(
                f"{snapshot.repository}: {name} is damaged, its content is not what was pushed; "
                "pull again"
            )
    if snapshot.sizes.get(CARD_FILE):
        hub.download(snapshot, CARD_FILE, folder)
    shutil.rmtree(folder / ".cache", ignore_errors=True)  # notes of the library
    weights = folder / "checkpoints" / checkpoint
    weights.mkdir(parents=True)
    (folder / MODEL_FILE).rename(weights / MODEL_FILE)
    record_checksums(weights, {MODEL_FILE: digests[MODEL_FILE]})
    files = ("src.vocab.txt", "tgt.vocab.txt", "src.spm.model", "tgt.spm.model", CONFIG_FILE)
    record_checksums(folder, {name: digests[name] for name in files if name in digests})
    write_json(folder / BEST_FILE, pointer_to(checkpoint))
    source = {"repository": snapshot.repository, "revision": snapshot.commit}
    write_json(folder / INFO_FILE, {**read_json(folder / INFO_FILE), **source}, indent=2)
    for path in folder.rglob("*"):
        synchronize(path)
    return checkpoint


def _read_info(snapshot: Snapshot, folder: Path) -> tuple[str, dict[str, str]]:
    """The checkpoint's name, and the SHA-256 of each file.

    Raises:
        CheckpointError: `bundle.json` is damaged, or names other files than a model has.
    """
    _check_sizes(snapshot, [INFO_FILE], folder)
    try:
        info = read_json(hub.download(snapshot, INFO_FILE, folder))
        digests = {str(name): str(digest) for name, digest in info["sha256"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            f"{snapshot.repository}: its {INFO_FILE} is damaged ({error}); ask its owner to push "
            "again"
        ) from None
    checkpoint = check_info(snapshot.repository, info)
    for name in digests:
        if name not in POSSIBLE:
            raise CheckpointError(
                f"{snapshot.repository}: refused, its {INFO_FILE} names {name!r}, which no model "
                "of nmt has"
            )
    if missing := [name for name in NEEDED if name not in digests]:
        raise CheckpointError(
            f"{snapshot.repository}: incomplete, {missing[0]} is missing; ask its owner to push "
            "again"
        )
    return checkpoint, digests


def _check_sizes(snapshot: Snapshot, names: Collection[str], folder: Path) -> None:
    """Raises: CheckpointError if a file is missing or too large, DataError if the disk is too small
    for all.
    """
    for name in names:
        if name not in snapshot.sizes:
            raise CheckpointError(
                f"{snapshot.repository}: incomplete, {name} is missing; ask its owner to push again"
            )
        if name != MODEL_FILE and snapshot.sizes[name] > MAX_TEXT_BYTES:
            size, limit = snapshot.sizes[name] / 1e6, MAX_TEXT_BYTES / 1e6
            raise CheckpointError(
                f"{snapshot.repository}: refused, {name} has {size:,.0f} MB; at most {limit:,.0f} "
                "make sense"
            )
    total, free = sum(snapshot.sizes[name] for name in names), shutil.disk_usage(folder).free
    if total > free:
        raise DataError(
            f"{snapshot.repository}: has {total / 1e6:,.0f} MB, but the disk only "
            f"{free / 1e6:,.0f}; choose another with -o"
        )
