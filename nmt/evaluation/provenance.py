"""Where a score comes from: hashes of the model, of the data it was trained on, and of the code that ran."""

import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.data.corpus import load_manifest
from nmt.run.checkpoint import MODEL_FILE
from nmt.run.folder import CONFIG_FILE, LEXICON_FILE

LIBRARIES = ("torch", "numpy", "sacrebleu", "spacy", "sentencepiece")  # on which the numbers depend


def of_code() -> dict[str, Any]:
    """The version of nmt, the SHA-256 of its source as it is installed, and the libraries that the numbers depend on."""
    return {"version": __version__, "sha256": _source_digest(), "libraries": {name: version(name) for name in LIBRARIES}}


def of_members(members: Sequence[tuple[Path, Path]]) -> dict[str, Any]:
    """Of a run and its checkpoint, or of several that translate together: weights, configuration, and the data trained on.

    Raises:
        DataError: a run's manifest is missing or damaged.
    """
    models = [_of_model(*member) for member in members]
    run, _ = members[0]  # which decodes: of an ensemble it is the first
    return {
        **(
            models[0]
            if len(models) == 1
            else {"members": [{"run": str(of), **one} for (of, _), one in zip(members, models, strict=True)]}
        ),
        "lexicon_sha256": digest(lexicon) if (lexicon := run / LEXICON_FILE).exists() else None,
        "code": of_code(),
    }


def of_lines(lines: Sequence[str]) -> str:
    """SHA-256 of lines as a file would hold them: a pipe can be read but once."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _of_model(run: Path, checkpoint: Path) -> dict[str, Any]:
    return {
        "model": {
            "checkpoint": checkpoint.name,
            "sha256": digest(checkpoint / MODEL_FILE),
            "config_sha256": digest(run / CONFIG_FILE),
        },
        "data": {"content": load_manifest(run)["content"]},
    }


def _source_digest() -> str:
    package = Path(__file__).parent.parent
    names = sorted(path.relative_to(package).as_posix() for path in package.rglob("*.py"))
    return hashlib.sha256("".join(f"{digest(package / name)}  {name}\n" for name in names).encode()).hexdigest()
