"""`nmt translate-files`: a corpus in parts, each translated into a file, whole or not at all.

`FOLDER/.nmt/` records what was translated: `settings.json` the model and the settings,
`parts/<part>.json` the input of a part. Calls may run at the same time, on any machines that share
the folder.
"""

import glob
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.commands.answers import InputTexts, Shown
from nmt.commands.options import (
    BeamOption,
    DecodingOption,
    DeviceOption,
    GlossaryOption,
    JsonOption,
    KeepOption,
    MemoryOption,
    NoProtectOption,
    NoSplitOption,
    RunsOption,
)
from nmt.commands.translate import memory_overrides, output_lines, text_settings
from nmt.config.load import decoding_overrides
from nmt.config.parts import format_of, refuse_unread
from nmt.errors import DataError
from nmt.files import (
    explain_read_errors,
    explain_write_errors,
    read_json,
    replacing,
    sha256_of,
    write_json,
)
from nmt.lines import BATCH_BYTES, BATCH_LINES, read_text_lines
from nmt.run.folder import further_files, load_run_config
from nmt.run.graphs import weights_digest
from nmt.run.load import opened
from nmt.texts.glossary import Glossary
from nmt.texts.load import load_text_translator
from nmt.texts.translator import TextTranslator

SETTINGS_FILE, RECORDS = Path(".nmt", "settings.json"), Path(".nmt", "parts")
PACKED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zip")


def command(
    file: Annotated[
        Path,
        typer.Option(
            "--file",
            help="The files: a pattern in quotes, such as 'parts/*.gz', or one of them.",
            metavar="PATTERN",
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Write into this folder.", metavar="FOLDER")
    ],
    run: RunsOption = None,
    shard: Annotated[
        str,
        typer.Option(
            "--shard",
            help="Of the files, only this share: 3/16 is the third of 16, for array jobs.",
            metavar="N/COUNT",
        ),
    ] = "1/1",
    memory: MemoryOption = None,
    glossary: GlossaryOption = None,
    beam: BeamOption = None,
    set_: DecodingOption = None,
    no_split: NoSplitOption = False,
    no_protect: NoProtectOption = False,
    keep: KeepOption = None,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
) -> None:
    """Translate the parts that are not translated yet; bad ones do not stop the others.

    Raises:
        CheckpointError, ConfigError: as `load_text_translator`.
        DataError: there are no parts; the folder holds translations by another model or with other
            settings, or cannot be written; or, at the end, some parts could not be translated.
    """
    settings = text_settings(no_split=no_split, no_protect=no_protect, keep=keep)
    overrides = [*memory_overrides(memory), *decoding_overrides(set_, beam)]
    parts = find_parts(file, output, shard)
    with ExitStack() as stack:
        members = [stack.enter_context(opened(path)) for path in run or (None,)]
        options = {
            "json": as_json,
            "memory": [*map(_described, memory or ())],
            "glossary": _described(glossary),
            "no_split": no_split,
            "no_protect": no_protect,
            "keep": str(keep),
        }
        _check_settings(output, members, options, overrides)
        missing = [(written, path) for written, path in parts if not _is_translated(path, written)]
        if len(missing) < len(parts):
            _print(f"{len(parts) - len(missing)} of {len(parts)} parts are already translated")
        if not missing:
            return
        translator = load_text_translator(
            members,
            settings,
            None if glossary is None else Glossary.read(glossary),
            device=device,
            overrides=overrides,
        )
    failed = []
    for written, path in missing:
        with explain_write_errors(written, "; other parts are intact"):
            try:
                _translate_part(path, written, translator, Shown(as_json=as_json))
            except DataError as error:
                failed.append(path.name)
                _print(str(error))
    if failed:
        raise DataError(
            f"{len(failed)} of {len(parts)} parts could not be translated: "
            f"{', '.join(failed)}; repair them, then repeat"
        )


def find_parts(pattern: Path, folder: Path, shard: str) -> list[tuple[Path, Path]]:
    """Each translation to write with its part of the corpus, in the order of their names.

    Args:
        shard: which of them: "3/16".

    Raises:
        typer.BadParameter: the shard is none.
        DataError: no file matches, one is a document, or the translations of two parts would have
            the same name, or the name of a part.
    """
    match = re.fullmatch(r"(\d+)/(\d+)", shard)
    number, count = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= count:
        raise typer.BadParameter(
            f"--shard {shard}: write number/count, with a number from 1 to count, such as 3/16"
        )
    paths = sorted(path for path in map(Path, glob.glob(str(pattern))) if path.is_file())
    if pattern.is_file():  # its name may have characters of patterns
        paths = [pattern]
    if not paths:
        raise DataError(f"{pattern}: no such files")
    if folder.is_file():
        raise DataError(f"{folder}: is a file; the translations of several files need a folder")
    parts: dict[Path, Path] = {}
    for path in paths:
        output = folder / (path.stem if path.suffix.lower() in PACKED_SUFFIXES else path.name)
        refuse_unread(str(path.with_name(output.name)))
        if format_of(output.name) not in (None, "txt"):
            raise DataError(
                f"{path}: is a document; `nmt translate --file` keeps its format, this command "
                "translates plain lines"
            )
        if output in parts:
            raise DataError(
                f"{path}: would have the same translation as {parts[output]}, {output}; rename "
                "one of them"
            )
        if output.resolve() == path.resolve():
            raise DataError(f"{folder}: holds the parts themselves; choose another folder with -o")
        parts[output] = path
    return [*parts.items()][number - 1 :: count]


def _check_settings(
    folder: Path,
    members: Sequence[tuple[Path, Path]],
    options: Mapping[str, Any],
    overrides: Sequence[str],
) -> None:
    """Record in a new folder all that the translations depend on but the input.

    Raises:
        DataError: the settings of an old folder differ.
    """
    decoding = load_run_config(members[0][0], overrides).decoding.model_dump(mode="json")
    digests = list[str]()
    for run, checkpoint in members:
        further = (run / name for name in further_files())
        digests += [
            weights_digest(checkpoint),
            *(sha256_of(path) for path in further if path.exists()),
        ]
    settings = {  # flat, so that differences have names
        "model": [digest[:12] for digest in digests],
        **options,
        **{f"decoding.{key}": decoding[key] for key in decoding},
    }
    path = folder / SETTINGS_FILE
    with explain_write_errors(path):
        (folder / RECORDS).mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_json(path, settings, indent=2)
    try:
        recorded = read_json(path)
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


def _described(path: Path | None) -> str:
    """The file of an option, and what it holds."""
    return f"{path} {sha256_of(path)[:12]}" if path is not None and path.is_file() else str(path)


def _record_of(output: Path) -> Path:
    return output.parent / RECORDS / f"{output.name}.json"


def _is_translated(path: Path, output: Path) -> bool:
    """Whether the record says so, and neither the input nor the translation has changed since."""
    try:
        record, status = read_json(_record_of(output)), path.stat()
        is_same = (status.st_size, status.st_mtime_ns) == (record["size"], record["mtime"])
        if not is_same and sha256_of(path) != record["sha256"]:
            return False
        return bool(output.stat().st_size == record["output_size"])
    except (OSError, ValueError, KeyError):  # killed before the record was written, or damaged
        return False


def _translate_part(path: Path, output: Path, translator: TextTranslator, shown: Shown) -> None:
    """Translate a part, then record it. Raises: DataError if it cannot be read or translated."""
    start_time = time.perf_counter()
    n_lines = 0
    with explain_read_errors(path):
        status = path.stat()
        digest = sha256_of(path)
    name = str(path)
    inputs = InputTexts(_batches(read_text_lines(path)), name, "line")
    with (
        replacing(output) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for line in output_lines(translator, inputs, shown):
            file.write(f"{line}\n")
            n_lines += 1
    write_json(
        _record_of(output),
        {
            "input": name,
            "size": status.st_size,
            "mtime": status.st_mtime_ns,
            "sha256": digest,
            "output_size": output.stat().st_size,
        },
    )
    _print(f"{output}: {n_lines:,} lines in {time.perf_counter() - start_time:.1f} s")


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    """As `nmt.lines.stream_lines` makes them: the memory of attention grows with a batch."""
    batch = list[str]()
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) == BATCH_LINES or size > BATCH_BYTES:
            yield batch
            batch = []
            size = 0
    if batch:
        yield batch


def _print(line: str) -> None:
    print(f"nmt: {line}", file=sys.stderr, flush=True)
