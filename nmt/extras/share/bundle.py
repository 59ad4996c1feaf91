"""`nmt share bundle`: one file with all that translating needs of a run.

It is a zip archive of a small run folder; no pickle.
"""

import json
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, get_args

import typer

from nmt import __version__
from nmt.commands.options import RunArgument
from nmt.config.schema import Precision
from nmt.data.manifest import MANIFEST
from nmt.errors import CheckpointError, NmtError
from nmt.files import CHECKSUMS_FILE, explain_write_errors, replacing
from nmt.run.checkpoint import CHECKPOINT_NAME, MODEL_FILE, step_of
from nmt.run.folder import (
    CONFIG_FILE,
    EVALUATION_FOLDER,
    HISTORY_FILE,
    PROVENANCE_FILE,
    load_run_config,
    refuse_newer_format,
)
from nmt.run.graphs import GRAPH_NAMES, graphs_folder
from nmt.run.load import build_translator, find_run_and_checkpoint
from nmt.text.tokenizers import SIDES

INFO_FILE, FORMAT_VERSION = "bundle.json", 1

# What translating needs of a run, where it comes from, and its scores so far. A run may lack some
# of them.
RUN_FILES = (
    CONFIG_FILE,
    MANIFEST,
    CHECKSUMS_FILE,
    *(f"{side}.{ending}" for side in SIDES for ending in ("vocab.txt", "spm.model")),
    "confidence.json",
    PROVENANCE_FILE,
    f"{EVALUATION_FOLDER}/{HISTORY_FILE}",
    "README.md",  # what the owner says of it
)
NEIGHBORS_FILE = "neighbors.tsv"  # see `uses_neighbors`
KEYS_FILE = "neighbors.safetensors"  # made of it, where it is stored
LEXICON_FILE = "lexicon.tsv"  # bundles of nmt 0.2 may have it; nothing reads it
BEST_FILE = "checkpoints/best.json"
# With which it translates on a CPU.
GRAPH_FILES = tuple(
    f"{graphs_folder(Path(), precision)}/{name}"
    for precision in get_args(Precision)
    for name in GRAPH_NAMES
)
CHECKPOINT_FILES = (MODEL_FILE, CHECKSUMS_FILE, *GRAPH_FILES)
CHECKPOINT_FILE = re.compile(
    rf"checkpoints/{CHECKPOINT_NAME.pattern}/({'|'.join(map(re.escape, CHECKPOINT_FILES))})"
)

# A bundle from a stranger may unpack to this many times its size. Weights are not compressed; text
# compresses about four times.
MAX_EXPANSION = 20
# zipfile reports some kinds of damage by errors of other types than its own.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    LookupError,
    NotImplementedError,
    RecursionError,
    ValueError,
)
REMEDY = "name the folder of a run, or a file that `nmt share bundle` wrote"


def command(
    folder: RunArgument = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write. Default: RUN.nmt.", metavar="FILE"),
    ] = None,
) -> None:
    """Bundle the best checkpoint of a run (default: the newest one), or the given checkpoint."""
    run, checkpoint = find_run_and_checkpoint(folder)
    # A bundle that cannot translate is not written.
    build_translator([(run, checkpoint)], device="cpu")
    path = output or run.resolve().with_name(f"{run.resolve().name}.nmt")
    write_bundle(run, checkpoint, path)
    end = f"; with the sentences of {NEIGHBORS_FILE}" if uses_neighbors(run) else ""
    print(f"{path}: {run}, {checkpoint.name}, {path.stat().st_size / 1e6:.1f} MB{end}")


def write_bundle(run: Path, checkpoint: Path, path: Path) -> None:
    """Write the bundle of a run with one of its checkpoints, whole or not at all.

    Raises:
        CheckpointError: `path` is a folder. DataError: it cannot be written.
    """
    if path.is_dir():
        raise CheckpointError(f"{path}: is a folder; name a file with -o")
    info = {
        "format": "nmt bundle",
        "format_version": FORMAT_VERSION,
        "nmt_version": __version__,
        "checkpoint": checkpoint.name,
    }
    members = {
        INFO_FILE: json.dumps(info, indent=2).encode(),
        BEST_FILE: json.dumps(pointer_to(checkpoint.name), indent=2).encode(),
    }
    neighbors = [*run.glob(NEIGHBORS_FILE), *run.glob(KEYS_FILE)] if uses_neighbors(run) else []
    files = {file.relative_to(run).as_posix(): file for file in (*run_files(run), *neighbors)}
    files |= {
        f"checkpoints/{checkpoint.name}/{name}": checkpoint / name for name in CHECKPOINT_FILES
    }
    with explain_write_errors(path):
        members |= {name: file.read_bytes() for name, file in files.items() if file.exists()}
        with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for name, content in members.items():
                # Without a date, so that the same run gives the same bytes.
                member = zipfile.ZipInfo(name)
                if not name.endswith((".safetensors", ".onnx")):  # weights are almost random bits
                    member.compress_type = zipfile.ZIP_DEFLATED
                member.external_attr = 0o644 << 16
                archive.writestr(member, content)


def pointer_to(checkpoint: str) -> dict[str, Any]:
    """The content of `best.json` where there is only one checkpoint."""
    return {"checkpoint": checkpoint, "step": step_of(checkpoint)}


def uses_neighbors(run: Path) -> bool:
    """Whether the configuration of the run needs `neighbors.tsv`, which has sentences of the data;
    no other copy gets the file.
    """
    return bool(load_run_config(run).decoding.model_dump().get("neighbors", {}).get("pairs"))


def run_files(run: Path) -> list[Path]:
    """The files of a run that a copy gets, besides the weights."""
    return [path for path in (run / name for name in RUN_FILES) if path.exists()]


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Yields a bundle as a run folder until the block ends. Errors inside name the bundle.

    The file may come from a stranger: it writes only into the folder, and not much more than its
    own size.

    Raises:
        CheckpointError: the file is no bundle, is damaged, or was made by a newer version of nmt.
    """
    with TemporaryDirectory(prefix="nmt-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            with zipfile.ZipFile(path) as archive:
                _check_members(archive, path.stat().st_size)
                _check_info(path, json.loads(archive.read(INFO_FILE)))
                for member in archive.infolist():
                    archive.extract(member, folder)  # which raises if its checksum is wrong
                    if (folder / member.filename).stat().st_size != member.file_size:
                        raise zipfile.BadZipFile(
                            f"{member.filename} has another size than it declares"
                        )
        except DAMAGE as error:
            raise CheckpointError(f"{path}: no bundle, or damaged ({error}); {REMEDY}") from None
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read ({error.strerror or error})") from None
        try:
            yield folder
        except NmtError as error:
            raise type(error)(str(error).replace(str(folder), str(path))) from None


def _check_info(path: Path, info: Any) -> None:
    """Raises: CheckpointError: no bundle, or of a newer version of nmt."""
    if not isinstance(info, dict):
        raise CheckpointError(f"{path}: {INFO_FILE} is no JSON object; {REMEDY}")
    version = info.get("format_version")
    refuse_newer_format(path, version, FORMAT_VERSION)
    if version != FORMAT_VERSION or not CHECKPOINT_NAME.fullmatch(str(info.get("checkpoint"))):
        raise CheckpointError(f"{path}: no bundle; {REMEDY}")


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse what `write_bundle` does not write, and more bytes than fit an archive of this size.

    Raises:
        BadZipFile: as above.
    """
    known = INFO_FILE, BEST_FILE, NEIGHBORS_FILE, KEYS_FILE, LEXICON_FILE, *RUN_FILES
    names = archive.namelist()
    for member in archive.infolist():
        name = member.filename
        is_known = name in known or CHECKPOINT_FILE.fullmatch(name)
        if not is_known or names.count(name) > 1:
            raise zipfile.BadZipFile(f"{name!r} has no place in it")
        if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
            raise zipfile.BadZipFile(f"{name} is a link, not a file")
        is_encrypted, methods = member.flag_bits & 1, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if is_encrypted or member.compress_type not in methods:
            raise zipfile.BadZipFile(f"{name} is encrypted, or compressed in another way")
    total = sum(member.file_size for member in archive.infolist())
    if total > MAX_EXPANSION * size:
        raise zipfile.BadZipFile(
            f"it would unpack to {total / 1e6:,.1f} MB, more than {MAX_EXPANSION} times its size"
        )
