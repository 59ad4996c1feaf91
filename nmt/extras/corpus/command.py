"""`nmt translate-files`: each file of a corpus is translated whole or not at all.

`FOLDER/.nmt/` records what was translated: `settings.json` the model and the settings,
`parts/<part>.json` the input of a part. Calls may run at the same time, on any machines that share
the folder.
"""

import glob
import re
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.commands.options import options_from
from nmt.commands.translate import InputTexts, OutputOptions, output_lines
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.files import explain_write_errors, read_json, replacing, sha256_of, write_json
from nmt.lines import decode_batches, read_raw_lines
from nmt.run.checkpoint import MODEL_FILE
from nmt.run.folder import files_of_extras, load_run_config
from nmt.run.load import build_translator, opened

SETTINGS_FILE, RECORDS = Path(".nmt", "settings.json"), Path(".nmt", "parts")
PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zip")


@dataclass(frozen=True)
class Part:
    """A part of the corpus, and where its translation and its record are."""

    path: Path
    output: Path
    record: Path


@dataclass(frozen=True)
class CorpusOptions(OutputOptions):
    """With which runs to translate which files, and what to write."""

    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            help="The files: a pattern in quotes, such as 'parts/*.gz', or one of them.",
            metavar="PATTERN",
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write into this folder.", metavar="FOLDER"),
    ] = None
    shard: Annotated[
        str,
        typer.Option(
            "--shard",
            help="Of the files, only this share: 3/16 is the third of 16, for array jobs.",
            metavar="N/COUNT",
        ),
    ] = "1/1"

    @property
    def shard_range(self) -> tuple[int, int]:
        """Number, from 1, and count of the shards. Raises: typer.BadParameter."""
        match = re.fullmatch(r"(\d+)/(\d+)", self.shard)
        number, count = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= count:
            raise typer.BadParameter(
                f"--shard {self.shard}: write number/count, with a number from 1 to count, such "
                "as 3/16"
            )
        return number, count


@options_from(CorpusOptions)
def command(**values: Any) -> None:
    """Translate the parts that are not translated yet; a bad part does not stop the others.

    Raises:
        CheckpointError, ConfigError: as `load_translator`.
        DataError: there are no parts; the folder holds translations by another model or with other
            settings, or cannot be written; or, at the end, some parts could not be translated.
    """
    options = CorpusOptions(**values)
    options.check()
    if options.file is None or options.output is None:
        raise typer.BadParameter("give --file PATTERN and -o FOLDER")
    parts = find_parts(options.file, options.output, options.shard_range)
    runs: list[Path | None] = [*options.run] if options.run else [None]
    with ExitStack() as stack:
        members = [stack.enter_context(opened(path)) for path in runs]
        _check_settings(options.output, _settings(members, options))
        reasons = {
            part: reason for part in parts if (reason := _reason_to_translate(part)) is not None
        }
        if len(reasons) < len(parts):
            _print(f"{len(parts) - len(reasons)} of {len(parts)} parts are already translated")
        if not reasons:
            return
        translator = build_translator(
            members, device=options.device, overrides=options.overrides, n_best=options.n_best
        )
    if options.prefix is not None:
        translator.prefix_ids([options.prefix])
    failed = []
    for part, reason in reasons.items():
        if reason:
            _print(f"{part.path}: {reason}, so it is translated again")
        with explain_write_errors(part.output, "; other parts are intact"):
            try:
                _translate_part(part, translator, options)
            except DataError as error:
                failed.append(part.path.name)
                _print(str(error))
    if failed:
        raise DataError(
            f"{len(failed)} of {len(parts)} parts could not be translated: "
            f"{', '.join(failed)}; repair them, then repeat"
        )


def find_parts(pattern: Path, folder: Path, shard: tuple[int, int] = (1, 1)) -> list[Part]:
    """The parts of a shard (number, count), in the order of their names.

    Raises:
        DataError: no file matches, or the translations of two parts would have the same name, or
            the name of a part.
    """
    paths = sorted(
        Path(name) for name in glob.glob(str(pattern), recursive=True) if Path(name).is_file()
    )
    if pattern.is_file():  # its name may have characters of patterns
        paths = [pattern]
    if not paths:
        raise DataError(f"{pattern}: no such files")
    if folder.is_file():
        raise DataError(f"{folder}: is a file; the translations of several files need a folder")
    parts: dict[str, Part] = {}
    for path in paths:
        name = path.stem if path.suffix.lower() in PACKED_SUFFIXES else path.name
        if name in parts:
            raise DataError(
                f"{path}: would have the same translation as {parts[name].path}, "
                f"{folder / name}; rename one of them"
            )
        parts[name] = Part(path, folder / name, folder / RECORDS / f"{name}.json")
        if (folder / name).resolve() == path.resolve():
            raise DataError(f"{folder}: holds the parts themselves; choose another folder with -o")
    number, count = shard
    return [*parts.values()][number - 1 :: count]


def _settings(members: Sequence[tuple[Path, Path]], options: CorpusOptions) -> dict[str, Any]:
    """All that the translations depend on but the input, flat: differences have names."""
    decoding = load_run_config(members[0][0], options.overrides).decoding.model_dump(mode="json")
    files = [
        path
        for run, checkpoint in members
        for path in (checkpoint / MODEL_FILE, *(run / name for name in files_of_extras()))
        if path.exists()
    ]
    output = {
        key: getattr(options, key)
        for key in ("n_best", "prefix", "align", "threshold", "score", "as_json")
    }
    return {
        "model": [sha256_of(path)[:12] for path in files],
        **output,
        **{f"decoding.{key}": decoding[key] for key in decoding},
    }


def _check_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Record the settings of a new folder. Raises: DataError if those of an old one differ."""
    path = folder / SETTINGS_FILE
    try:
        if not path.exists():
            (folder / RECORDS).mkdir(parents=True, exist_ok=True)
            write_json(path, settings, indent=2)
            return
        recorded = read_json(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written or read ({error.strerror or error})") from None
    except ValueError:
        raise DataError(f"{path}: damaged; delete {folder} to translate all parts again") from None
    changes = [
        f"{key} was {recorded.get(key)}, is {settings.get(key)}"
        for key in {**settings, **recorded}
        if recorded.get(key) != settings.get(key)
    ]
    if changes:
        raise DataError(
            f"{folder}: holds translations with other settings ({'; '.join(changes)}); choose "
            "another folder with -o"
        )


def _reason_to_translate(part: Part) -> str | None:
    """None if the part is translated already; "" if it never was; else what has changed."""
    if not part.output.exists():
        return ""
    try:
        record = read_json(part.record)
        status = part.path.stat()
        is_same = (status.st_size, status.st_mtime_ns) == (record["size"], record["mtime"])
        if not is_same and sha256_of(part.path) != record["sha256"]:
            return "has changed"
        return (
            None
            if part.output.stat().st_size == record["output_size"]
            else f"its translation {part.output} was changed or cut off"
        )
    except FileNotFoundError:
        return ""  # killed before the record was written
    except (OSError, ValueError, KeyError):
        return f"the record {part.record} cannot be read"


def _translate_part(part: Part, translator: Translator, options: CorpusOptions) -> None:
    """Translate a part, then record it.

    Raises:
        DataError: the part is damaged, or a sentence does not fit into memory. OSError: the
            translation cannot be written.
    """
    start_time, n_lines = time.perf_counter(), 0
    try:
        status, digest = part.path.stat(), sha256_of(part.path)
    except OSError as error:
        raise DataError(f"{part.path}: cannot be read ({error.strerror or error})") from None
    inputs = InputTexts(
        decode_batches(read_raw_lines(part.path), str(part.path)), str(part.path), "line"
    )
    with replacing(part.output) as temporary:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            for line in output_lines(translator, inputs, options):
                file.write(f"{line}\n")
                n_lines += 1
        output_size = temporary.stat().st_size
    values = {
        "input": str(part.path),
        "size": status.st_size,
        "mtime": status.st_mtime_ns,
        "sha256": digest,
    }
    write_json(part.record, {**values, "output_size": output_size})
    _print(f"{part.output}: {n_lines:,} lines in {time.perf_counter() - start_time:.1f} s")


def _print(line: str) -> None:
    print(f"nmt: {line}", file=sys.stderr, flush=True)
