"""A prepared folder: ids as memory maps, dev and test also as text, and the manifest that tells how it was made.

For each split (train, dev, test) and side (src, tgt) there are `<split>.<side>.npy`, the ids of all sentences one after the other
(int32), and `<split>.<side>.offsets.npy`, where each begins and the last ends (int64).
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nmt.config.load import config_from_dict, differences
from nmt.config.schema import Config
from nmt.errors import ConfigError, DataError

SPLITS = ("train", "dev", "test")
MANIFEST = "manifest.json"
FORMAT = "nmt prepared data"
FORMAT_VERSION = 1
SMALL = 4096  # bytes

Ids = npt.NDArray[np.int32]


class Sequences:
    """The sentences of one side, read from disk as they are asked for."""

    def __init__(self, ids: Ids, offsets: npt.NDArray[np.int64]) -> None:
        self._ids = ids
        self._offsets = offsets
        self.lengths: Ids = np.diff(offsets).astype(np.int32)

    @classmethod
    def load(cls, stem: Path) -> Self:
        """`stem` is the path up to and with the side, without `.npy`. Raises: DataError if a file is missing or damaged."""
        path = stem.with_name(f"{stem.name}.npy")
        ids = _load_array(path, np.dtype(np.int32))
        offsets = _load_array(stem.with_name(f"{stem.name}.offsets.npy"), np.dtype(np.int64))
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(ids) or np.any(np.diff(offsets) < 0):
            raise DataError(f"{path}: damaged, its offsets do not fit its {len(ids)} ids; prepare it again with --overwrite")
        return cls(ids, offsets)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Ids:
        """The ids of a sentence, without start and end marks. Raises: IndexError."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        start, end = self._offsets[index % len(self)], self._offsets[index % len(self) + 1]
        return self._ids[start:end]


class Corpus:
    """The sentence pairs of one split."""

    def __init__(self, src: Sequences, tgt: Sequences) -> None:
        self.src = src
        self.tgt = tgt

    @classmethod
    def load(cls, folder: Path, split: str) -> Self:
        """Raises: DataError if a file is missing or damaged, or the sides differ in length."""
        src, tgt = (Sequences.load(folder / f"{split}.{side}") for side in ("src", "tgt"))
        if len(src) != len(tgt):
            raise DataError(f"{folder}: damaged, {split} has {len(src)} source and {len(tgt)} target sentences")
        return cls(src, tgt)

    def __len__(self) -> int:
        return len(self.src)


class SequencesWriter:
    """Writes ids block by block into `<stem>.npy`, whose number must be known beforehand, and then the offsets."""

    def __init__(self, stem: Path, total: int) -> None:
        self._stem = stem
        self._total = total
        self._lengths: list[Ids] = []
        self._file = stem.with_name(f"{stem.name}.npy").open("wb")
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype("<i4")), "fortran_order": False, "shape": (total,)}
        np.lib.format.write_array_header_1_0(self._file, header)

    def write(self, ids: Ids, lengths: Ids) -> None:
        """Append sentences of `lengths` whose ids follow each other in `ids`."""
        self._file.write(ids.astype("<i4").tobytes())
        self._lengths.append(lengths)

    def close(self) -> None:
        self._file.close()
        offsets = np.concatenate([np.zeros(1, np.int64), *self._lengths]).cumsum(dtype=np.int64)
        assert offsets[-1] == self._total
        np.save(self._stem.with_name(f"{self._stem.name}.offsets.npy"), offsets, allow_pickle=False)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """UTF-8, each line ended by a line feed on every system."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def read_lines(folder: Path, split: str, side: str) -> list[str]:
    """The sentences of dev or test as text, neither tokenized nor lower-cased. Raises: DataError if they are missing or damaged."""
    path = folder / f"{split}.{side}.txt"
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    *lines, rest = text.split("\n")
    if rest:
        raise DataError(f"{path}, line {len(lines) + 1}: the file breaks off here")
    return lines


def load_manifest(folder: Path) -> dict[str, Any]:
    """Raises: DataError if `folder` holds no prepared data, or some that this version cannot read."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes().decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{folder}: no prepared data here; run `nmt prepare -c ...` first") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: damaged ({error}); run `nmt prepare -c ... --overwrite`") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(f"{path}: not written by `nmt prepare`; run `nmt prepare -c ...` with another folder")
    if manifest.get("format_version") != FORMAT_VERSION:
        version = manifest.get("format_version")
        raise DataError(f"{path}: format {version}, but this nmt reads {FORMAT_VERSION}; run `nmt prepare -c ... --overwrite`")
    return manifest


def config_differences(manifest: dict[str, Any], config: Config) -> Iterator[str]:
    """Where prepared data was made with another configuration than `config`, in words.

    What leaves the outcome as it is does not count; files are known by their SHA-256, not by their names.
    """
    try:
        old = config_from_dict({"name": config.name, **manifest["config"]})
    except (ConfigError, KeyError, TypeError):
        yield "the configuration is of another version"
        return
    for key, (there, here) in differences(old, config).items():
        if key.startswith(("data.", "tokenizer.", "vocabulary.")) and not is_location_key(key):
            yield f"{key} is {json.dumps(there, ensure_ascii=False)} there and {json.dumps(here, ensure_ascii=False)} here"


def is_location_key(key: str) -> bool:
    """Whether a key of the configuration only says where data is, and by whom it is read: the data is known by its content."""
    section, *parts = key.split(".")
    return section == "data" and (parts[-1] in ("prepared", "workers", "path", "url", "sha256") or "files" in parts)


def _load_array(path: Path, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    try:
        # An array without elements cannot be mapped, so small files are read.
        small = path.stat().st_size < SMALL
        array: npt.NDArray[Any] = np.load(path, mmap_mode=None if small else "r", allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; run `nmt prepare -c ...` first") from None
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: damaged ({error}); prepare it again with --overwrite") from None
    if array.ndim != 1 or array.dtype != dtype:
        raise DataError(f"{path}: damaged, holds {array.dtype} of {array.ndim} dimensions, expected {dtype} of 1")
    return array
