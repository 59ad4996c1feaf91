"""`nmt prepare`: sentence pairs to splits, vocabularies and ids, in a folder that explains itself.

manifest = prepare.run(config.load(Path("configs/tatoeba.yaml")))
print(prepare.summary(manifest))
"""

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.config.schema import Config, SourceConfig
from nmt.data import corpus
from nmt.data.download import fetch
from nmt.data.encoding import SIDES
from nmt.data.pipeline import Job, prepare
from nmt.data.staging import recover, staged
from nmt.data.workers import start_workers, worker_count
from nmt.errors import DataError

# All that ever lies in a prepared folder; a folder with anything else in it is never replaced.
FILES = {
    corpus.MANIFEST,
    *(f"{side}.{ending}" for side in SIDES for ending in ("vocab.txt", "spm.model")),
    *(f"{split}.{side}.{ending}" for split in corpus.SPLITS for side in SIDES for ending in ("npy", "offsets.npy", "txt")),
}


@dataclass(frozen=True)
class Input:
    """A file that pairs are read from; `role` is where the configuration names it."""

    role: str
    path: Path
    bytes: int
    sha256: str


def run(config: Config, folder: Path | None = None, *, overwrite: bool = False, progress: bool | None = None) -> dict[str, Any]:
    """Prepare what `config` describes into `folder` (`config.prepared_folder` if not given), and return the manifest.

    The returned manifest has two keys that the file has not: `folder`, and `already_prepared`, which is true if the folder held the
    same preparation already, so that nothing had to be done. `progress` shows bars on stderr; by default, if that is a terminal.

    Raises:
        DataError: the input or the folder cannot be used; `folder` is what it was before.
    """
    started = time.perf_counter()
    folder = folder or config.prepared_folder
    with suppress(OSError):
        recover(folder)
    existing = _existing(folder, overwrite)
    if existing is not None:
        _refuse_other(folder, list(corpus.config_differences(existing, config)))
    inputs = _locate(config)
    if existing is not None:
        _refuse_other(folder, _input_differences(existing, inputs))
        _check_files(folder, existing)
        return {**existing, "folder": str(folder), "already_prepared": True}
    with staged(folder) as building:
        count = worker_count(config.data.workers)
        with start_workers(count) as workers:
            paths = {item.role: item.path for item in inputs}
            report = prepare(Job(config, paths, building, workers, sys.stderr.isatty() if progress is None else progress))
        cost = {"seconds": round(time.perf_counter() - started, 2), "peak_memory": _peak_memory(count)}
        manifest = _write_manifest(config, inputs, {**report, **cost}, building)
    return {**manifest, "folder": str(folder), "already_prepared": False}


def _write_manifest(config: Config, inputs: list[Input], report: dict[str, Any], folder: Path) -> dict[str, Any]:
    files = sorted(path for path in folder.iterdir() if path.name in FILES)
    manifest: dict[str, Any] = {
        "format": corpus.FORMAT,
        "format_version": corpus.FORMAT_VERSION,
        "nmt_version": __version__,
        "inputs": [{**asdict(item), "path": str(item.path)} for item in inputs],
        "config": {key: value for key, value in config.to_dict().items() if key in ("data", "tokenizer", "vocabulary")},
        **report,
        "files": {path.name: path.stat().st_size for path in files},
        "content": _digest(files),
    }
    text = json.dumps(manifest, ensure_ascii=False, indent=2)
    (folder / corpus.MANIFEST).write_bytes(f"{text}\n".encode())
    return manifest


def _digest(files: Sequence[Path]) -> str:
    """SHA-256 of all that was prepared, by which a run knows the data that it was trained on."""
    digests = []
    for path in files:
        with path.open("rb") as file:
            digests.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _existing(folder: Path, overwrite: bool) -> dict[str, Any] | None:
    """The manifest of what is in `folder` and is to stay; None if it may be written. Raises: DataError if it may not."""
    if not folder.exists():
        return None
    if not folder.is_dir():
        raise DataError(f"{folder}: is a file; name another folder with -o")
    names = {path.name for path in folder.iterdir()}
    if not names:
        return None
    if corpus.MANIFEST not in names:
        raise DataError(f"{folder}: is not empty, and holds no prepared data; it stays as it is, name another folder with -o")
    if not overwrite:
        return corpus.load_manifest(folder)
    if foreign := sorted(names - FILES):
        raise DataError(
            f"{folder}: also holds {', '.join(foreign[:5])}, not written by `nmt prepare`; move that away to --overwrite"
        )
    return None


def _refuse_other(folder: Path, found: list[str]) -> None:
    if found:
        what = "; ".join(found)
        raise DataError(f"{folder}: holds another preparation ({what}); --overwrite replaces it, -o names another folder")


def _input_differences(manifest: dict[str, Any], inputs: list[Input]) -> list[str]:
    there = {item["role"]: item["sha256"] for item in manifest["inputs"]}
    return [f"{item.path} has changed since" for item in inputs if there.get(item.role) != item.sha256]


def _check_files(folder: Path, manifest: dict[str, Any]) -> None:
    for name, size in manifest["files"].items():
        found = (folder / name).stat().st_size if (folder / name).exists() else None
        if found != size:
            state = "is missing" if found is None else f"has {found:,} bytes instead of {size:,}"
            raise DataError(f"{folder}: damaged, {name} {state}; --overwrite makes it anew")


def _locate(config: Config) -> list[Input]:
    """All input files, downloaded if need be. Raises: DataError if one is missing, or is not the one that is asked for."""
    data = config.data
    located: list[Input] = []
    for role, source in {"source": data.source, "dev": data.dev, "test": data.test}.items():
        if source is not None and source.format == "lines":
            files = source.files or {}
            located += [_input(f"{role}.{language}", files[language]) for language in (data.src_language, data.tgt_language)]
        elif source is not None:
            located.append(_checked(source, _input(role, source.path or fetch(source.url or ""))))
    return located


def _input(role: str, path: Path) -> Input:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Input(role, path, path.stat().st_size, digest)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, not a file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None


def _checked(source: SourceConfig, found: Input) -> Input:
    if source.sha256 and found.sha256 != source.sha256.lower():
        again = "" if source.path else "; delete it to download it again"
        raise DataError(f"{found.path}: its SHA-256 is {found.sha256}, but {source.sha256} is asked for{again}")
    return found


def _peak_memory(workers: int) -> int | None:
    """Bytes, at most: the peaks of this process and of the workers added up, though what they share is counted in each."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (own + workers * child) * unit


def summary(manifest: dict[str, Any]) -> str:
    """A short table for the screen."""
    counts = manifest["counts"]
    rows = [
        ("pairs read", f"{counts['read']:,}"),
        ("dropped", _listed(counts["dropped"], counts["unreadable_lines"])),
        ("kept", f"{counts['kept']:,}"),
        ("repaired sentences", _listed(counts["repaired"], {})),
        ("", ""),
        ("", "".join(f"{name:>12}" for name in manifest["splits"])),
        *_split_rows(manifest["splits"]),
        ("shared sentences", _overlap(manifest["overlap"])),
    ]
    if manifest["naive_leak"] is not None:
        rows.append(("a random split", f"would have {manifest['naive_leak']:.1%} of the test pairs with a sentence of train"))
    for side, language in zip(SIDES, manifest["config"]["data"]["direction"].split("-"), strict=True):
        figures, tokenizer = manifest["vocabulary"][side], manifest["tokenizers"][side]
        known = f"{figures['coverage']:.2%} of the tokens of dev known"
        rows.append((f"vocabulary {language}", f"{figures['size']:,}, {known}; {tokenizer}"))
    ceiling = manifest["ceiling"]
    caseless = f" ({ceiling['score_without_case']:.2f} without case)" if manifest["config"]["tokenizer"]["lowercase"] else ""
    rows.append(("ceiling", f"BLEU {ceiling['score']:.2f}{caseless} of join(split(reference)) on dev; {ceiling['signature']}"))
    memory = "" if manifest["peak_memory"] is None else f", at most {manifest['peak_memory'] / 1e6:,.0f} MB"
    rows.append(("took", f"{manifest['seconds']:.1f} s{memory}"))
    if "folder" in manifest:
        rows.append(("already prepared" if manifest.get("already_prepared") else "written to", manifest["folder"]))
    return "\n".join(f"{label:<20}{text}".rstrip() for label, text in rows)


def _listed(numbers: dict[str, int], lines: dict[str, list[int]]) -> str:
    parts = [f"{count:,} {name}{_places(lines.get(name, []), count)}" for name, count in numbers.items() if count]
    return f"{sum(numbers.values()):,}" + (f": {', '.join(parts)}" if parts else "")


def _places(lines: list[int], count: int) -> str:
    return f" (line {', '.join(map(str, lines))}{' ...' if count > len(lines) else ''})" if lines else ""


def _split_rows(splits: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "pairs", "".join(f"{split['pairs']:>12,}" for split in splits.values())
    for side, name in zip(SIDES, ("source", "target"), strict=True):
        yield f"{name} tokens", "".join(f"{split[side]['tokens']:>12,}" for split in splits.values())
        yield "  mean, longest", "".join(f"{split[side]['mean']:>7.1f},{split[side]['longest']:>4}" for split in splits.values())


def _overlap(overlap: dict[str, dict[str, int]]) -> str:
    total = sum(sum(both.values()) for both in overlap.values())
    parts = [f"{name} {both['src']} source, {both['tgt']} target" for name, both in overlap.items()]
    return f"{total} between the splits" + (f": {'; '.join(parts)}" if total else "")
