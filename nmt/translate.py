"""`nmt translate`: sentences in, translations out, one line for each line."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from nmt.config import DeviceName
from nmt.decoding.translation import Translation
from nmt.errors import ConfigError, DataError
from nmt.files import replacing
from nmt.report import heatmap
from nmt.report.picture import check_path
from nmt.runs import find, load_translator

CHUNK = 2048  # lines of a file that are sorted and translated together


def run(
    lines: Iterable[str],
    folder: Path | None = None,
    *,
    device: DeviceName = "auto",
    beam: int | None = None,
    chunk: int = CHUNK,
) -> Iterator[Translation]:
    """Translate lines with a run (default: the one trained last), in order, `chunk` lines at a time.

    Raises:
        CheckpointError: there is no run, or it cannot be read.
    """
    translator = load_translator(find(folder), device=device, beam=beam)
    remaining = iter(lines)
    while texts := list(islice(remaining, chunk)):
        yield from translator.translate(texts)


def read_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """UTF-8 lines without their ends.

    Raises:
        DataError: a line is not UTF-8; it is named.
    """
    for number, line in enumerate(stream, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{name}, line {number}: not UTF-8 ({error.reason} at byte {error.start + 1})") from None
        yield text.rstrip("\r\n")


def read_file(path: Path) -> Iterator[str]:
    """The lines of a file, which is closed after the last.

    Raises:
        DataError: it cannot be read, or a line is not UTF-8.
    """
    try:
        with path.open("rb") as stream:
            yield from read_lines(stream, str(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def write(translations: Iterable[Translation], stream: TextIO, *, as_json: bool = False) -> None:
    """One line each, written as soon as it is known."""
    for translation in translations:
        stream.write((json.dumps(to_dict(translation), ensure_ascii=False) if as_json else translation.text) + "\n")
        stream.flush()


def write_file(translations: Iterable[Translation], path: Path, *, as_json: bool = False) -> None:
    """As `write`; what `path` held before stays until all is written.

    Raises:
        DataError: it cannot be written.
    """
    if path.is_dir() or not path.parent.is_dir():
        raise DataError(f"{path}: is a folder; name a file" if path.is_dir() else f"{path.parent}: no such folder")
    try:
        if path.exists() and not path.is_file():  # a device or a pipe is written to, not replaced
            with path.open("w", encoding="utf-8", newline="\n") as file:
                write(translations, file, as_json=as_json)
            return
        with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            write(translations, file, as_json=as_json)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error})") from None


def to_dict(translation: Translation) -> dict[str, Any]:
    """Plain values, as JSON knows them."""
    return {
        "source": translation.source,
        "text": translation.text,
        "src_tokens": list(translation.src_tokens),
        "tokens": list(translation.tokens),
        "score": translation.score,
        "log_prob": translation.log_prob,
        "complete": translation.complete,
    }


def draw_attention(translations: Iterable[Translation], picture: Path) -> Iterator[Translation]:
    """Pass translations on, and draw the attention of the only one that is not empty into `picture`.

    Raises:
        ConfigError: there is more than one sentence, or none.
    """
    check_path(picture)
    translation, *others = [*islice(translations, 2)] or [Translation("")]
    if others or translation.attention is None:
        raise ConfigError(f"--attention {picture}: draws one sentence; give exactly one")
    if not translation.attention.any():
        raise ConfigError("--attention: this model looks at nothing (model.attention.score: none)")
    source, output = translation.attended
    heatmap.draw(source, output, translation.attention, picture)
    yield translation


def source_lines(sentences: Sequence[str], file: Path | None) -> tuple[Iterable[str], int]:
    """What to translate, and in what chunks: the sentences given, the lines of `file`, or of stdin (`-`, or when nothing is given).

    Raises:
        ConfigError: both are given.
    """
    if sentences and file is not None:
        raise ConfigError("give sentences or --file, not both")
    if sentences:
        return sentences, CHUNK
    if file is None or str(file) == "-":
        if sys.stdin is None:
            raise DataError("stdin is closed; give sentences or --file")
        # Someone at a keyboard waits for each line; a pipe is faster in sorted chunks.
        return read_lines(sys.stdin.buffer, "stdin"), 1 if sys.stdin.isatty() else CHUNK
    return read_file(file), CHUNK
