"""A bundle: one file with all that translating needs of a run. It is a zip archive of a small run folder; no pickle."""

import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt import __version__
from nmt.data.manifest import MANIFEST
from nmt.errors import CheckpointError, NmtError
from nmt.files import CHECKSUMS_FILE, replacing
from nmt.run.checkpoint import MODEL_FILE, step_of
from nmt.run.folder import CONFIG_FILE, LEXICON_FILE

SUFFIX = ".nmt"
INFO_FILE, FORMAT, FORMAT_VERSION = "bundle.json", "nmt bundle", 1
RUN_FILES = (CONFIG_FILE, MANIFEST, CHECKSUMS_FILE, "*.vocab.txt", "*.spm.model", LEXICON_FILE)
CHECKPOINT_FILES = (MODEL_FILE, CHECKSUMS_FILE)
SAFE_NAME = re.compile(r"(checkpoints/)?([\w-]+/)?\w[\w.-]*")
DATE = (1980, 1, 1, 0, 0, 0)  # of all members, so that the same run gives the same bytes


def write_bundle(run: Path, checkpoint: Path, path: Path) -> None:
    """Write the bundle of a run with one of its checkpoints; an old file is replaced only when the new one is complete.

    Raises:
        CheckpointError: `path` is a folder, or cannot be written.
    """
    if path.is_dir():
        raise CheckpointError(f"{path}: is a folder; name a file with -o")
    info = {"format": FORMAT, "format_version": FORMAT_VERSION, "nmt_version": __version__, "checkpoint": checkpoint.name}
    pointer = {"checkpoint": checkpoint.name, "step": step_of(checkpoint.name)}
    members = {INFO_FILE: _to_bytes(info), "checkpoints/best.json": _to_bytes(pointer)}
    try:
        for pattern in RUN_FILES:
            members |= {file.name: file.read_bytes() for file in sorted(run.glob(pattern))}
        for name in CHECKPOINT_FILES:
            if (checkpoint / name).exists():
                members[f"checkpoints/{checkpoint.name}/{name}"] = (checkpoint / name).read_bytes()
        with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for name, content in members.items():
                member = zipfile.ZipInfo(name, DATE)
                # Weights are almost random bits: compressing them would cost time and save little.
                member.compress_type = zipfile.ZIP_STORED if name.endswith(MODEL_FILE) else zipfile.ZIP_DEFLATED
                member.external_attr = 0o644 << 16
                archive.writestr(member, content)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be written ({error.strerror or error})") from None


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Yields a bundle as a run folder, which is deleted when the block ends. Errors inside name the bundle in place of the folder.

    Raises:
        CheckpointError: the file is no bundle, is damaged, or was made by a newer version of nmt.
    """
    with TemporaryDirectory(prefix="nmt-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            with zipfile.ZipFile(path) as archive:
                _check_format(path, archive)
                archive.extractall(folder)
        except zipfile.BadZipFile as error:
            remedy = "name the folder of a run, or a file that `nmt bundle` wrote"
            raise CheckpointError(f"{path}: no bundle, or damaged ({error}); {remedy}") from None
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read ({error.strerror or error})") from None
        try:
            yield folder
        except NmtError as error:
            raise type(error)(str(error).replace(str(folder), str(path))) from None


def _check_format(path: Path, archive: zipfile.ZipFile) -> None:
    try:
        info = json.loads(archive.read(INFO_FILE))
        is_bundle = info["format"] == FORMAT and all(SAFE_NAME.fullmatch(name) for name in archive.namelist())
        version = int(info["format_version"])
    except (KeyError, ValueError, TypeError):
        is_bundle, version = False, 0
    if not is_bundle:
        raise CheckpointError(f"{path}: no bundle; name the folder of a run, or a file that `nmt bundle` wrote")
    if version > FORMAT_VERSION:
        raise CheckpointError(f"{path}: made by a newer nmt (format {version}, this version reads {FORMAT_VERSION}); update nmt")


def _to_bytes(value: object) -> bytes:
    return json.dumps(value, indent=2).encode()
