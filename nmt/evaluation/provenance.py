"""Where a score comes from: hashes of the model, of the data it was trained on, and of the code that ran."""

import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.runs import LEXICON
from nmt.text.corpus import load_manifest
from nmt.training.checkpoint import MODEL

LIBRARIES = ("torch", "numpy", "sacrebleu", "spacy", "sentencepiece")  # on which the numbers depend


def of_code() -> dict[str, Any]:
    """The version of nmt, the SHA-256 of its source as it is installed, and the libraries that the numbers depend on."""
    return {"version": __version__, "sha256": _source_digest(), "libraries": {name: version(name) for name in LIBRARIES}}


def of_run(run: Path, checkpoint: Path) -> dict[str, Any]:
    """Its weights, its configuration, and the data that it was trained on.

    Raises:
        DataError: the run's manifest is missing or damaged.
    """
    return {
        "model": {
            "checkpoint": checkpoint.name,
            "sha256": digest(checkpoint / MODEL),
            "config_sha256": digest(run / "config.yaml"),
        },
        "lexicon_sha256": digest(lexicon) if (lexicon := run / LEXICON).exists() else None,
        "data": {"content": load_manifest(run)["content"]},
        "code": of_code(),
    }


def of_lines(lines: Sequence[str]) -> str:
    """SHA-256 of lines as a file would hold them: a pipe can be read but once."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _source_digest() -> str:
    package = Path(__file__).parent.parent
    names = sorted(path.relative_to(package).as_posix() for path in package.rglob("*.py"))
    return hashlib.sha256("".join(f"{digest(package / name)}  {name}\n" for name in names).encode()).hexdigest()
