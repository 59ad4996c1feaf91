"""`nmt prepare`: sentence pairs to splits, vocabularies and ids, in a folder with a manifest."""

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.commands.options import ConfigOption, JsonOption, QuietOption, SetOption, to_json
from nmt.config.load import load_config
from nmt.config.parts import FILTERS, FORMATS
from nmt.config.schema import Config
from nmt.data.download import fetch
from nmt.data.formats import files_in, find_files
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
from nmt.errors import DataError, NmtWarning
from nmt.evaluation.scores import choose_tokenizer, score
from nmt.files import (
    explain_read_errors,
    explain_write_errors,
    recover_folder,
    replacing_folder,
    sha256_of,
)
from nmt.lines import archive_of
from nmt.report.table import counts_by_name
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
    manifest = run(
        load_config(config, set_ or ()),
        output,
        overwrite=overwrite,
        progress=False if quiet else None,
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
    files, inputs = _find_inputs(config)
    if existing is not None:
        _refuse_differences(folder, input_differences(existing, inputs))
        check_files(folder, existing)
        return {**existing, "folder": str(folder), "already_prepared": True}
    if remark := choose_tokenizer(config.data.tgt_language, [])[1]:
        warnings.warn(remark, NmtWarning, stacklevel=2)
    if any(Path(each.path).resolve().is_relative_to(folder.resolve()) for each in inputs):
        raise DataError(f"{folder}: is one of its own sources; name another folder with -o")
    n_workers = worker_count(config.data.workers)
    show_bars = sys.stderr.isatty() if progress is None else progress
    with explain_write_errors(folder), replacing_folder(folder) as building:
        ceiling = partial(_ceiling, config.data.tgt_language)
        with start_workers(n_workers) as workers:
            figures = run_pipeline(Job(config, files, building, workers, show_bars, ceiling))
        figures["seconds"] = round(time.perf_counter() - start_time, 2)
        figures["peak_memory"] = peak_memory(n_workers)
        manifest = write_manifest(building, config, inputs, figures)
    return {**manifest, "folder": str(folder), "already_prepared": False}


def _ceiling(language: str, outputs: list[str], references: list[str]) -> dict[str, Any]:
    """BLEU of references that a tokenizer has split and joined again."""
    (cased,) = score(outputs, [references], ["BLEU"], language=language)
    (caseless,) = score(outputs, [references], ["BLEU"], language=language, lowercase=True)
    return {
        "score": round(cased.value, 2),
        "signature": cased.signature,
        "score_without_case": round(caseless.value, 2),
    }


def existing_manifest(folder: Path, overwrite: bool) -> dict[str, Any] | None:
    """The manifest of the prepared data in `folder`; None if there is none to keep.

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
        raise DataError(
            f"{folder}: contains other prepared data ({'; '.join(differences)}); --overwrite "
            "replaces it, -o names another folder"
        )


def _find_inputs(config: Config) -> tuple[dict[str, dict[str, list[Path]]], list[Input]]:
    """The files of each source, downloaded if necessary, and what the manifest records of them.

    Returns:
        Paths by the key of the source, then by language (format lines), or all under "".

    Raises:
        DataError: a file is missing, or has not the configured SHA-256.
    """
    data = config.data
    files: dict[str, dict[str, list[Path]]] = {}
    inputs: list[Input] = []
    for key, source in {**data.training_sources, "dev": data.dev, "test": data.test}.items():
        if source is None:
            continue
        urls = [source.url] if isinstance(source.url, str) else source.url or []
        is_hashed = source.sha256 is not None
        paths = source.files or {
            "": source.path or [fetch(url, is_hashed=is_hashed) for url in urls]
        }
        inside = FORMATS[source.format].trait("folder") or ""
        files[key] = {
            language: [found / inside for found in find_files(path)]
            for language, path in paths.items()
        }
        if not (source.files or source.member or inside):
            files[key][""] = [file for path in files[key][""] for file in files_in(path)]
        for language, parts in files[key].items():
            found = dict.fromkeys(map(archive_of, parts))
            role = f"{key}.{language}" if language else key
            for number, path in enumerate(found, 1):
                with explain_read_errors(path, f"; check the path under data.{key}"):
                    size, sha256 = path.stat().st_size, sha256_of(path)
                name = role if len(found) == 1 else f"{role} {number}"
                inputs.append(Input(role=name, path=str(path), bytes=size, sha256=sha256))
                if source.sha256 and sha256 != source.sha256.lower():
                    remedy = "" if source.path else "; delete it to download it again"
                    raise DataError(
                        f"{path}: its SHA-256 is {sha256}, but the configuration expects "
                        f"{source.sha256}{remedy}"
                    )
    return files, inputs


def summary(manifest: dict[str, Any]) -> str:
    """The manifest as a short table for the screen."""
    counts = manifest["counts"]
    rows = [
        ("pairs read", f"{counts['read']:,}"),
        *_form_rows(manifest.get("read_as", {})),
        ("dropped", counts_by_name(counts["dropped"], counts["unreadable_lines"])),
        *(
            row
            for name, part in FILTERS.items()
            for row in part.load("summary")(manifest.get(name, {}))
        ),
        ("kept", f"{counts['kept']:,}"),
        *_source_rows(counts),
        ("repaired sentences", counts_by_name(counts["repaired"], {})),
        ("", ""),
        ("", "".join(f"{name:>12}" for name in manifest["splits"])),
        *_split_rows(manifest["splits"]),
    ]
    overlap = manifest["overlap"]
    n_shared = sum(sum(counts.values()) for counts in overlap.values())
    parts = [f"{name} {each['src']} source, {each['tgt']} target" for name, each in overlap.items()]
    listing = f": {'; '.join(parts)}" if n_shared else ""
    rows.append(("shared sentences", f"{n_shared} between the splits{listing}"))
    if manifest["naive_leak"] is not None:
        leak = f"would leak a training sentence into {manifest['naive_leak']:.1%} of the test pairs"
        rows.append(("a random split", leak))
    languages = manifest["config"]["data"]["direction"].split("-")
    for side, language in zip(SIDES, languages, strict=True):
        figures, tokenizer = manifest["vocabulary"][side], manifest["tokenizers"][side]
        coverage = f"{figures['coverage']:.2%} of the dev tokens are known"
        new = f" ({figures['new']:,} new)" if "new" in figures else ""
        rows.append(
            (f"vocabulary {language}", f"{figures['size']:,}{new}, {coverage}; {tokenizer}")
        )
    ceiling = manifest["ceiling"]
    best = f"{ceiling['score']:.2f}"
    if manifest["config"]["tokenizer"]["lowercase"]:
        best += f" ({ceiling['score_without_case']:.2f} without case)"
    best += f" on dev: references split and joined again; {ceiling['signature']}"
    rows.append(("best possible BLEU", best))
    took = f"{manifest['seconds']:.1f} s"
    if manifest["peak_memory"] is not None:
        took += f", peak memory {manifest['peak_memory'] / 1e6:,.0f} MB"
    rows.append(("took", took))
    rows.append(
        ("already prepared" if manifest["already_prepared"] else "written to", manifest["folder"])
    )
    return "\n".join(f"{label:<20}{text}".rstrip() for label, text in rows)


def _source_rows(counts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    sources = counts.get("sources", {})
    n_training = max(1, sum(source["training"] for source in sources.values()))
    for name, source in sources.items():
        n_pairs = source["training"]
        share = f"{n_pairs / n_training:.1%}"
        if n_pairs != source["train_pairs"]:
            share += f", each {n_pairs / max(1, source['train_pairs']):.3g} times on average"
        yield (
            f"  {name}",
            f"{source['read']:,} read, {source['kept']:,} kept; {n_pairs:,} training pairs "
            f"({share}), {source['dev']:,} in dev, {source['test']:,} in test",
        )


def _form_rows(forms: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What the rows of the sources have; by name, where they differ."""
    if len(set(forms.values())) == 1:
        yield "read as", next(iter(forms.values()))
    elif forms:
        yield "read as", "; ".join(f"{name}: {form}" for name, form in forms.items())


def _split_rows(splits: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "pairs", "".join(f"{split['pairs']:>12,}" for split in splits.values())
    for side, name in zip(SIDES, ("source", "target"), strict=True):
        figures = [split[side] for split in splits.values()]
        yield f"{name} tokens", "".join(f"{each['tokens']:>12,}" for each in figures)
        yield (
            "  mean, longest",
            "".join(f"{each['mean']:>7.1f},{each['longest']:>4}" for each in figures),
        )
