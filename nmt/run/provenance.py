"""Provenance of a score or a run: hashes of model, data and code, and the machine."""

import hashlib
import json
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt import __version__
from nmt.data.manifest import load_manifest
from nmt.errors import NmtWarning
from nmt.files import MAX_JSON_BYTES, sha256_of, write_recorded
from nmt.run.folder import CONFIG_FILE, PROVENANCE_FILE, further_files
from nmt.run.graphs import weights_digest

if TYPE_CHECKING:
    import torch

# The results depend on their versions.
LIBRARIES = ("torch", "onnxruntime", "numpy", "sacrebleu", "spacy", "sentencepiece")
# Of what is read of an entry; someone may have edited the file.
TYPES = {
    **dict.fromkeys(("version", "torch", "device", "cpu"), str),
    **dict.fromkeys(("step", "threads", "processes"), int),
}


def of_code() -> dict[str, Any]:
    """The version of nmt, the SHA-256 of its source, and the versions of the libraries."""
    package = Path(__file__).parent.parent
    names = sorted(path.relative_to(package).as_posix() for path in package.rglob("*.py"))
    hashes = "".join(f"{sha256_of(package / name)}  {name}\n" for name in names)
    return {
        "version": __version__,
        "sha256": hashlib.sha256(hashes.encode()).hexdigest(),
        "libraries": {name: _version(name) for name in LIBRARIES},
    }


def _version(library: str) -> str | None:
    """None if it is not installed: to translate, a run does not need all of them."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def record_training(run: Path, step: int, device: "torch.device", processes: int) -> None:
    """Write into the run what computes its weights from `step` on: code, versions, device.

    A resumed training adds an entry only if something has changed.
    """
    import torch

    environment = {
        **of_code(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "cpu": torch.backends.cpu.get_cpu_capability(),  # such as AVX2: each has its own kernels
        "threads": torch.get_num_threads(),
        "processes": processes,
    }
    earlier = [session for session in read_training(run) if session["step"] < step]
    if not earlier or {**earlier[-1], "step": step} != {"step": step, **environment}:
        write_recorded(
            run / PROVENANCE_FILE,
            json.dumps([*earlier, {"step": step, **environment}], indent=2) + "\n",
        )


def read_training(run: Path) -> list[dict[str, Any]]:
    """What `record_training` wrote, in the order of the steps; empty, with a warning, if it is
    damaged.
    """
    path = run / PROVENANCE_FILE
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        if path.stat().st_size <= MAX_JSON_BYTES:
            sessions = [dict(session) for session in json.loads(path.read_bytes())]
            values = [{**session, **session["libraries"]} for session in sessions]
            if all(isinstance(one[key], kind) for one in values for key, kind in TYPES.items()):
                return sessions
    if path.exists():
        warnings.warn(f"{path}: damaged, and left out", NmtWarning, stacklevel=2)
    return []


def of_members(members: Sequence[tuple[Path, Path]]) -> dict[str, Any]:
    """Hashes of each (run, checkpoint): weights, configuration, training data.

    Raises:
        DataError: a run's manifest is missing or damaged.
    """
    models: list[dict[str, Any]] = [
        {
            "model": {
                "checkpoint": checkpoint.name,
                "sha256": weights_digest(checkpoint),
                "config_sha256": sha256_of(run / CONFIG_FILE),
            },
            "data": {"content": load_manifest(run)["content"]},
        }
        for run, checkpoint in members
    ]
    first_run, _ = members[0]  # its files of extras are used
    files = {f"{Path(name).stem}_sha256": first_run / name for name in further_files()}
    if len(members) > 1:
        named = [{"run": str(run), **each} for (run, _), each in zip(members, models, strict=True)]
        models = [{"members": named}]
    hashes = {key: sha256_of(path) if path.exists() else None for key, path in files.items()}
    return {**models[0], **hashes, "code": of_code()}


def of_lines(lines: Sequence[str]) -> str:
    """SHA-256 of lines as in a file: the file itself may be a pipe, which can be read only once."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
