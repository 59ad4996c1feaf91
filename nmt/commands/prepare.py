"""`nmt prepare`: sentence pairs to splits, vocabularies and ids, in a folder with a manifest."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.bars import is_watched
from nmt.commands.options import ConfigOption, JsonOption, QuietOption, SetOption, to_json
from nmt.config.load import load
from nmt.config.schema import Config, SourceConfig
from nmt.data.download import fetch
from nmt.data.formats import find_files
from nmt.data.manifest import (
    MANIFEST,
    Input,
    check_files,
    config_differences,
    input_differences,
    is_prepared_file,
    load_manifest,
    write_manifest,
)
from nmt.data.pipeline import Job, run_pipeline
from nmt.data.workers import peak_memory, start_workers, worker_count
from nmt.errors import DataError
from nmt.evaluation.scores import score
from nmt.files import (
    explain_read_errors,
    explain_write_errors,
    recover_folder,
    replacing_folder,
    sha256_of,
)
from nmt.text.tokenizers import SIDES


def command(
    config: ConfigOption,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Folder to write. Default: data/prepared/NAME.", metavar="DIR"
        ),
    ] = None,
    set_: SetOption = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace other data in the folder, once the new data is complete."
        ),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """The command line."""
    manifest = run(
        load(config, set_ or ()), output, overwrite=overwrite, progress=False if quiet else None
    )
    if as_json or not quiet:
        print(to_json(manifest) if as_json else summary(manifest))


def run(
    config: Config,
    folder: Path | None = None,
    *,
    overwrite: bool = False,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Prepare the data of `config` and return the manifest.

    Args:
        folder: where to; default `config.prepared_folder`.
        overwrite: replace other prepared data there.
        progress: show progress bars on stderr; default: if stderr is a terminal.

    Returns:
        The manifest with two more keys: `folder`, and `already_prepared`, true if the folder
        already held this preparation.

    Raises:
        DataError: the input or the folder cannot be used; `folder` is unchanged.
    """
    start_time = time.perf_counter()
    folder = folder or config.prepared_folder
    with suppress(OSError):
        recover_folder(folder)
    existing = existing_manifest(folder, overwrite)
    if existing is not None:
        augmented = ["its training data is augmented"] if "augmentation" in existing else []
        _refuse_differences(folder, [*augmented, *config_differences(existing, config)])
    files = _find_files(config)
    inputs = _read_inputs(config, files)
    if existing is not None:
        _refuse_differences(folder, input_differences(existing, inputs))
        check_files(folder, existing)
        return {**existing, "folder": str(folder), "already_prepared": True}
    n_workers = worker_count(config.data.workers)
    show_bars = is_watched() if progress is None else progress
    with explain_write_errors(folder), replacing_folder(folder) as building:
        with start_workers(n_workers) as workers:
            figures = run_pipeline(Job(config, files, building, workers, show_bars, _ceiling))
        seconds = round(time.perf_counter() - start_time, 2)
        costs = {"seconds": seconds, "peak_memory": peak_memory(n_workers)}
        manifest = write_manifest(building, config, inputs, {**figures.to_dict(), **costs})
    return {**manifest, "folder": str(folder), "already_prepared": False}


def _ceiling(outputs: list[str], references: list[str]) -> dict[str, Any]:
    """BLEU of references that a tokenizer has split and joined again."""
    (cased,) = score(outputs, [references], ["BLEU"])
    (caseless,) = score(outputs, [references], ["BLEU"], lowercase=True)
    return {
        "score": round(cased.value, 2),
        "signature": cased.signature,
        "score_without_case": round(caseless.value, 2),
    }


def existing_manifest(folder: Path, overwrite: bool) -> dict[str, Any] | None:
    """The manifest of the prepared data in `folder`; None if the folder is missing, empty or to be
    overwritten.

    Raises:
        DataError: `folder` is a file, or holds files that are not prepared data.
    """
    if not folder.exists():
        return None
    if not folder.is_dir():
        raise DataError(f"{folder}: is a file; name another folder with -o")
    names = {path.name for path in folder.iterdir()}
    if not names:
        return None
    if MANIFEST not in names:
        raise DataError(
            f"{folder}: is not empty and holds no prepared data; nothing was changed, name "
            "another folder with -o"
        )
    if not overwrite:
        return load_manifest(folder)
    if other_files := sorted(name for name in names if not is_prepared_file(name)):
        raise DataError(
            f"{folder}: also holds {', '.join(other_files[:5])}, not written by `nmt prepare`; "
            "move these files away to --overwrite"
        )
    return None


def _refuse_differences(folder: Path, differences: list[str]) -> None:
    if differences:
        reason = "; ".join(differences)
        raise DataError(
            f"{folder}: contains other prepared data ({reason}); --overwrite replaces it, -o "
            "names another folder"
        )


def _find_files(config: Config) -> dict[str, dict[str, list[Path]]]:
    """The files of each source, downloaded if necessary: by its key, then by language (format
    lines), or all under "".

    Raises:
        DataError: a download failed, or no file matches a pattern.
    """
    data = config.data
    sources = {**data.training_sources, "dev": data.dev, "test": data.test}
    return {
        key: {language: find_files(path) for language, path in source.files.items()}
        if source.files is not None
        else {
            "": find_files(
                source.path or fetch(source.url or "", is_hashed=source.sha256 is not None)
            )
        }
        for key, source in sources.items()
        if source is not None
    }


def _read_inputs(config: Config, files: Mapping[str, Mapping[str, Sequence[Path]]]) -> list[Input]:
    """All input files. Raises: DataError if one is missing, or does not have the configured
    SHA-256.
    """
    inputs: list[Input] = []
    sources = {**config.data.training_sources, "dev": config.data.dev, "test": config.data.test}
    for key, by_language in files.items():
        source = sources[key]
        for language, paths in by_language.items():
            role = f"{key}.{language}" if language else key
            roles = (
                [role]
                if len(paths) == 1
                else [f"{role} {number}" for number in range(1, len(paths) + 1)]
            )
            inputs += [_read_input(key, *each) for each in zip(roles, paths, strict=True)]
            if source is not None and source.sha256:
                _check_hash(source, role, inputs[-len(paths) :])
    return inputs


def _read_input(key: str, role: str, path: Path) -> Input:
    if not path.exists():
        raise DataError(
            f"{path}: no such file; check the path under data.{key} (relative paths start in "
            "the "
            "current folder)"
        )
    with explain_read_errors(path):
        return Input(role, path, path.stat().st_size, sha256_of(path))


def _check_hash(source: SourceConfig, role: str, files: Sequence[Input]) -> None:
    if len(files) > 1:
        raise DataError(
            f"data.{role}.sha256: one hash cannot check {len(files)} files; remove sha256, or "
            "name one file"
        )
    file = files[0]
    if source.sha256 and file.sha256 != source.sha256.lower():
        remedy = "" if source.path else "; delete it to download it again"
        raise DataError(
            f"{file.path}: its SHA-256 is {file.sha256}, but the configuration expects "
            f"{source.sha256}{remedy}"
        )


def summary(manifest: dict[str, Any]) -> str:
    """The manifest as a short table for the screen."""
    counts = manifest["counts"]
    rows = [
        ("pairs read", f"{counts['read']:,}"),
        ("dropped", _counts_by_name(counts["dropped"], counts["unreadable_lines"])),
        ("kept", f"{counts['kept']:,}"),
        *_source_rows(counts),
        ("repaired sentences", _counts_by_name(counts["repaired"], {})),
        ("", ""),
        ("", "".join(f"{name:>12}" for name in manifest["splits"])),
        *_split_rows(manifest["splits"]),
        ("shared sentences", _format_overlap(manifest["overlap"])),
    ]
    if manifest["naive_leak"] is not None:
        rows.append(
            (
                "a random split",
                (
                    f"would leak a training sentence into {manifest['naive_leak']:.1%} of the test "
                    "pairs"
                ),
            )
        )
    for side, language in zip(
        SIDES, manifest["config"]["data"]["direction"].split("-"), strict=True
    ):
        figures, tokenizer = manifest["vocabulary"][side], manifest["tokenizers"][side]
        coverage = f"{figures['coverage']:.2%} of the dev tokens are known"
        rows.append((f"vocabulary {language}", f"{figures['size']:,}, {coverage}; {tokenizer}"))
    ceiling = manifest["ceiling"]
    caseless = (
        f" ({ceiling['score_without_case']:.2f} without case)"
        if manifest["config"]["tokenizer"]["lowercase"]
        else ""
    )
    rows.append(
        (
            "best possible BLEU",
            (
                f"{ceiling['score']:.2f}{caseless} on dev: references split and joined again; "
                f"{ceiling['signature']}"
            ),
        )
    )
    memory = (
        ""
        if manifest["peak_memory"] is None
        else f", peak memory {manifest['peak_memory'] / 1e6:,.0f} MB"
    )
    rows.append(("took", f"{manifest['seconds']:.1f} s{memory}"))
    if "folder" in manifest:
        rows.append(
            (
                "already prepared" if manifest.get("already_prepared") else "written to",
                manifest["folder"],
            )
        )
    return "\n".join(f"{label:<20}{text}".rstrip() for label, text in rows)


def _source_rows(counts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    n_training = max(1, sum(source["training"] for source in counts.get("sources", {}).values()))
    for name, source in counts.get("sources", {}).items():
        times = source["training"] / max(1, source["train_pairs"])
        copies = (
            ""
            if source["training"] == source["train_pairs"]
            else f", each {times:.3g} times on average"
        )
        share = (
            f"{source['training']:,} training pairs ({source['training'] / n_training:.1%}{copies})"
        )
        held_out = f"{source['dev']:,} in dev, {source['test']:,} in test"
        yield f"  {name}", f"{source['read']:,} read, {source['kept']:,} kept; {share}, {held_out}"


def _counts_by_name(numbers: dict[str, int], lines: dict[str, list[int]]) -> str:
    parts = [
        f"{count:,} {name}{_line_numbers(lines.get(name, []), count)}"
        for name, count in numbers.items()
        if count
    ]
    return f"{sum(numbers.values()):,}" + (f": {', '.join(parts)}" if parts else "")


def _line_numbers(lines: list[int], count: int) -> str:
    return (
        f" (line {', '.join(map(str, lines))}{' ...' if count > len(lines) else ''})"
        if lines
        else ""
    )


def _split_rows(splits: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "pairs", "".join(f"{split['pairs']:>12,}" for split in splits.values())
    for side, name in zip(SIDES, ("source", "target"), strict=True):
        yield (
            f"{name} tokens",
            "".join(f"{split[side]['tokens']:>12,}" for split in splits.values()),
        )
        yield (
            "  mean, longest",
            "".join(
                f"{split[side]['mean']:>7.1f},{split[side]['longest']:>4}"
                for split in splits.values()
            ),
        )


def _format_overlap(overlap: dict[str, dict[str, int]]) -> str:
    total = sum(sum(counts.values()) for counts in overlap.values())
    parts = [
        f"{name} {counts['src']} source, {counts['tgt']} target" for name, counts in overlap.items()
    ]
    return f"{total} between the splits" + (f": {'; '.join(parts)}" if total else "")
