"""The manifest of a prepared folder: the configuration, the inputs and the figures of the
preparation, and a hash of its result.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from nmt import __version__
from nmt.config.load import config_from_dict, differences
from nmt.config.schema import Config
from nmt.data.corpus import MAX_HASHED_BYTES, PREPARE_AGAIN, SOFT_TARGETS, SPLITS
from nmt.errors import ConfigError, DataError, first_problem, pass_on_lack_of_memory
from nmt.files import (
    CHECKSUMS_FILE,
    check_content,
    read_json,
    record_checksums,
    sha256_of,
    write_json,
)
from nmt.text.tokenizers import SIDES, Side

MANIFEST = "manifest.json"
SUSPICIOUS = "suspicious.tsv"  # for people to read, so it is no part of the content
FORMAT = "nmt prepared data"
FORMAT_VERSION = 1
ORIGINAL = "original"  # the origin of training pairs that no model has made
SECTIONS = ("data", "tokenizer", "vocabulary")  # of the configuration, which the data depends on

# All files that a prepared folder can hold, and shards. `nmt prepare` never replaces a folder that
# holds another one.
PREPARED_FILES = {
    *(MANIFEST, CHECKSUMS_FILE, SUSPICIOUS),
    *(f"{side}.{ending}" for side in SIDES for ending in ("vocab.txt", "spm.model")),
    *(
        f"{split}.{side}.{ending}"
        for split in SPLITS
        for side in SIDES
        for ending in ("npy", "offsets.npy", "txt")
    ),
    *(f"{SOFT_TARGETS}.{ending}" for ending in ("npy", "offsets.npy")),
}
SHARD_FILE = re.compile(
    rf"({'|'.join(SPLITS)})-\d{{4,}}-of-\d{{4,}}\.({'|'.join(SIDES)}|soft-targets)\.(offsets\.)?npy"
)


class Input(BaseModel):
    """A file with sentence pairs. role: the key of the configuration that names it, for example
    "source" or "dev.en".
    """

    role: str
    path: str
    bytes: int
    sha256: str


class _Split(BaseModel):
    pairs: int


class _Vocabulary(BaseModel):
    size: int


class _Part(BaseModel):
    origin: str
    pairs: int
    repeat: int


class _Augmentation(BaseModel):
    parts: list[_Part] = Field(min_length=1)


class _Manifest(BaseModel):  # what is used of one
    inputs: list[Input]
    config: dict[str, Any]
    files: dict[str, int]
    content: str
    nmt_version: str | None = None
    vocabulary: dict[Side, _Vocabulary] = Field(min_length=2)
    tokenizers: dict[Side, str] = Field(min_length=2)
    splits: dict[str, _Split]
    augmentation: _Augmentation | None = None


def is_prepared_file(name: str) -> bool:
    """Whether a prepared folder can hold a file of this name."""
    return name in PREPARED_FILES or SHARD_FILE.fullmatch(name) is not None


def load_manifest(folder: Path) -> dict[str, Any]:
    """The manifest in `folder`. Raises: DataError if there is none that this version can read."""
    path = folder / MANIFEST
    try:
        manifest = read_json(path)
        if manifest.get("format") != FORMAT:
            raise DataError(f"{path}: not written by `nmt prepare`; name another folder")
        version = manifest.get("format_version")
        if version != FORMAT_VERSION:
            raise DataError(
                f"{path}: format {version}, but this nmt reads {FORMAT_VERSION}; {PREPARE_AGAIN}"
            )
        _Manifest.model_validate(manifest, strict=True)
        if others := [name for name in manifest["files"] if not is_prepared_file(name)]:
            raise ValueError(f"{others[0]!r} is no file of prepared data")
        n_pairs = sum(part["pairs"] * part["repeat"] for part in training_parts(manifest))
        if n_pairs != manifest["splits"]["train"]["pairs"]:
            raise ValueError(f"its parts of the training data have {n_pairs} pairs")
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(
            f"{folder}: no prepared data here; run `nmt prepare -c ...` first"
        ) from None
    except (OSError, ValueError, KeyError) as error:
        pass_on_lack_of_memory(error)
        raise DataError(f"{path}: damaged ({first_problem(error)}); {PREPARE_AGAIN}") from None
    return manifest


def most_copies(manifest: Mapping[str, Any]) -> int:
    """How many copies of a training pair there are at most, by the shares of the sources."""
    counts = manifest.get("counts", {}).get("sources", {}).values()
    return max((-(-each["training"] // max(1, each["train_pairs"])) for each in counts), default=1)


def training_parts(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the training pairs are. The parts stand in their order, each `repeat` times.

    Each has an `origin`: "original" pairs come from the inputs, all others from models, unless it
    is "not recorded". `nmt augment` records more of the pairs that it adds.
    """
    train = {"origin": ORIGINAL, "pairs": manifest["splits"]["train"]["pairs"], "repeat": 1}
    augmentation = manifest.get("augmentation") or {"parts": [train]}
    parts = [*augmentation["parts"]]
    # nmt 0.1 called all pairs of an augmented folder original, with the runs of all its parts.
    if parts[0].get("runs"):
        parts[0] = {**parts[0], "origin": "not recorded"}
    return parts


def original_ranges(folder: Path, manifest: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The ranges (first, end) of the original training pairs, each pair once.

    Raises:
        DataError: there are none, or it is not recorded which they are.
    """
    start, ranges = 0, []
    for part in training_parts(manifest):
        if part["origin"] == ORIGINAL and part["repeat"]:
            ranges.append((start, start + part["pairs"]))
        start += part["pairs"] * part["repeat"]
    if not ranges:
        raise DataError(
            f"{folder}: has no pairs that are recorded as original, not as made by `nmt augment`; "
            "use the folder that `nmt prepare` wrote"
        )
    return ranges


def prepared_config(folder: Path, manifest: Mapping[str, Any]) -> Config:
    """The configuration that the data in `folder` was prepared with.

    Raises:
        DataError: another version of nmt prepared it.
    """
    try:
        return config_from_dict({"name": "prepared", **manifest["config"]})
    except ConfigError:
        raise DataError(f"{folder}: prepared by another version of nmt; {PREPARE_AGAIN}") from None


def write_manifest(
    folder: Path, config: Config, inputs: Iterable[Input], figures: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the manifest beside the prepared files in `folder`, and return it."""
    paths = sorted(
        path
        for path in folder.iterdir()
        if is_prepared_file(path.name) and path.name not in (CHECKSUMS_FILE, SUSPICIOUS)
    )
    digests = {path.name: sha256_of(path) for path in paths}
    record_checksums(folder, digests)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "nmt_version": __version__,
        "inputs": [file.model_dump() for file in inputs],
        "config": {key: value for key, value in config.to_dict().items() if key in SECTIONS},
        **figures,
        "files": {path.name: path.stat().st_size for path in paths},
        "content": content_hash(digests),
    }
    write_json(folder / MANIFEST, manifest, indent=2)
    return manifest


def content_hash(digests: Mapping[str, str]) -> str:
    """The SHA-256 of the names and hashes of all prepared files: it identifies training data."""
    listing = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    return hashlib.sha256(listing.encode()).hexdigest()


def config_differences(manifest: Mapping[str, Any], config: Config) -> Iterator[str]:
    """The settings of `config` that differ from those of the prepared data and would change the
    result, in words.

    Input files are compared by content, see `input_differences`; their paths do not count.
    """
    try:
        prepared_with = config_from_dict({"name": config.name, **manifest["config"]})
    except (ConfigError, KeyError, TypeError):
        yield "the configuration is of another version"
        return
    for key, (old, new) in differences(prepared_with, config).items():
        if key.split(".")[0] in SECTIONS and not is_location_key(key):
            yield (
                f"{key} is {json.dumps(old, ensure_ascii=False)} there and "
                f"{json.dumps(new, ensure_ascii=False)} here"
            )


def input_differences(manifest: Mapping[str, Any], inputs: Sequence[Input]) -> list[str]:
    """A sentence about each input that has changed since the preparation."""
    hashes = {file["role"]: file["sha256"] for file in manifest["inputs"]}
    if len(inputs) != len(hashes):
        return [f"it was made from {len(hashes)} input files, now there are {len(inputs)}"]
    return [
        f"{file.path} has changed since" for file in inputs if hashes.get(file.role) != file.sha256
    ]


def is_location_key(key: str) -> bool:
    """Whether a key does not change the result: it says where data is, or how many workers read."""
    section, *parts = key.split(".")
    return section == "data" and (
        parts[-1] in ("prepared", "workers", "path", "url", "sha256") or "files" in parts
    )


def check_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raises: DataError if a prepared file is missing or damaged.

    Only the sizes are checked of files above `MAX_HASHED_BYTES`, and of all files without recorded
    checksums.
    """
    for name, size in manifest["files"].items():
        actual = (folder / name).stat().st_size if (folder / name).exists() else None
        if actual != size:
            state = "is missing" if actual is None else f"has {actual:,} bytes instead of {size:,}"
            raise DataError(f"{folder}: damaged, {name} {state}; --overwrite prepares it again")
        if size <= MAX_HASHED_BYTES:
            check_content(folder / name, "--overwrite prepares it again")
