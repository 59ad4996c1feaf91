"""Input and output of `nmt translate`: sentences from arguments, a file, a pipe or a keyboard;
lines to stdout or to a file.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, TextIO

from nmt.errors import DataError, NmtError
from nmt.files import explain_write_errors, replacing, stream_lines
from nmt.report.style import PICTURE_FORMATS

PAGE_SUFFIX = ".html"


@dataclass(frozen=True)
class InputTexts:
    """The sentences to translate.

    Attributes:
        batches: lists of sentences, in order.
        name: of the file or stream, for messages. unit: "line" or "sentence", for messages.
        is_keyboard: whether someone types the sentences and waits for each translation.
    """

    batches: Iterable[Sequence[str]]
    name: str
    unit: str
    is_keyboard: bool = False


def open_input(sentences: Sequence[str], file: Path | None) -> InputTexts:
    """The given sentences, the lines of `file`, or those of stdin (`-`, or neither sentences nor
    file).

    Raises:
        DataError: the file cannot be read, stdin is closed, or a sentence is not UTF-8.
    """
    if sentences:
        for number, sentence in enumerate(sentences, 1):
            if not sentence.isprintable() and any(
                "\ud800" <= character <= "\udfff" for character in sentence
            ):
                raise DataError(f"sentence {number}: not UTF-8")
        return InputTexts([sentences], "command line", "sentence")
    if file is None or str(file) == "-":
        if sys.stdin is None:
            raise DataError("stdin is closed; give sentences or --file")
        stream: Any = sys.stdin.buffer
        return InputTexts(
            _read_lines(stream, "stdin"), "stdin", "line", is_keyboard=stream.isatty()
        )
    try:
        return InputTexts(_read_lines(file.open("rb"), str(file)), str(file), "line")
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None


def _read_lines(stream: BufferedReader, name: str) -> Iterator[list[str]]:
    try:
        with stream:
            yield from stream_lines(stream, name)
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror})") from None


def print_keyboard_hint(inputs: InputTexts) -> None:
    """Tell someone at a keyboard what to do."""
    if inputs.is_keyboard:
        end = "Ctrl-Z and Enter end" if os.name == "nt" else "Ctrl-D ends"
        print(f"nmt: type a sentence, Enter translates it; {end}", file=sys.stderr)


def check_output_files(output: Path | None, attention: Path | None) -> None:
    """Check, before any work, that these files can be written.

    Raises:
        DataError: a folder is missing, or `output` is a folder.
        NmtError: `attention` has another suffix than those of pictures and pages.
    """
    if output is not None and output.is_dir():
        raise DataError(f"{output}: is a folder; name a file")
    if output is not None and not output.parent.is_dir():
        raise DataError(f"{output.parent}: no such folder")
    if attention is not None and attention.suffix.lower() not in (PAGE_SUFFIX, *PICTURE_FORMATS):
        raise NmtError(
            f"{attention}: cannot draw attention in this format; use "
            f"{', '.join(PICTURE_FORMATS)} "
            f"or {PAGE_SUFFIX}"
        )
    if attention is not None and not attention.parent.is_dir():
        raise DataError(f"{attention}: the folder {attention.parent} does not exist")


def write_output(lines: Iterable[str], path: Path | None = None) -> None:
    """Write each line to stdout or to a file as soon as it is available.

    An existing file is replaced when all lines are written. Until then they are in `PATH.partial`,
    where they stay after an error.

    Raises:
        DataError: the file cannot be written, or an error ended the lines.
    """
    if path is None:
        _write(lines, sys.stdout)
        return
    if path.exists() and not path.is_file():  # a device or a pipe, which cannot be replaced
        with explain_write_errors(path), path.open("w", encoding="utf-8", newline="\n") as file:
            _write(lines, file)
        return
    partial = path.resolve().with_name(f"{path.resolve().name}.partial")
    with (
        _mention_partial_file(partial),
        explain_write_errors(partial),
        replacing(path, partial),
        partial.open("w", encoding="utf-8", newline="\n") as file,
    ):
        _write(lines, file)


def _write(lines: Iterable[str], stream: TextIO) -> None:
    for line in lines:
        stream.write(f"{line}\n")
        stream.flush()


@contextmanager
def _mention_partial_file(partial: Path) -> Iterator[None]:
    """Add to an error that the lines before it are in `partial`, if there are any."""
    try:
        yield
    except (NmtError, KeyboardInterrupt) as error:
        if not partial.is_file() or not partial.stat().st_size:
            raise
        remark = f"finished lines are in {partial}"
        if isinstance(error, NmtError):
            raise DataError(f"{error}; {remark}") from None
        print(f"nmt: {remark}", file=sys.stderr)
        raise
