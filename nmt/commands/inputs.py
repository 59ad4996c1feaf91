"""What `nmt translate` reads: sentences, lines or a document; and the options that say it."""

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import typer

from nmt.commands.options import Shown
from nmt.config.parts import DOCUMENT_FORMATS, FORMATS, format_of
from nmt.errors import DataError, FormatError, NmtWarning
from nmt.files import explain_read_errors
from nmt.lines import stream_lines
from nmt.plugins import import_object

MAX_BYTES = 1 << 27  # of a document, which is read as a whole
LINES = "lines"
# Suffixes of formats that have markup, and that nmt does not read.
OTHERS = {".arb", ".ini", ".resx", ".rst", ".strings", ".tex", ".toml", ".ts", ".yaml", ".yml"}


@dataclass(frozen=True)
class InputTexts:
    """What to translate.

    Attributes:
        batches: lists of texts, in order.
        name: of the file or stream, for messages. unit: "line" or "sentence", for messages.
        is_keyboard: whether someone types the sentences and waits for each translation.
        numbers: of the lines of all texts, where they are not 1, 2, 3 ...
    """

    batches: Iterable[Sequence[Any]]
    name: str
    unit: str
    is_keyboard: bool = False
    numbers: Sequence[int] | None = None


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
        lines = _read_lines(stream, "stdin")
        return InputTexts(lines, "stdin", "line", is_keyboard=stream.isatty())
    try:
        return InputTexts(_read_lines(file.open("rb"), str(file)), str(file), "line")
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None


def _read_lines(stream: BufferedReader, name: str) -> Iterator[list[str]]:
    with explain_read_errors(Path(name)), stream:
        yield from stream_lines(stream, name)


def open_document(file: Path | None, name: str | None, *, is_named: bool, fill: str) -> Any:
    """The document of a file. None: the file is read line by line, such as plain text that cannot
    be read as a whole, whose lines are translated up to the fault.

    Args:
        name: of the format; None for lines. is_named: whether the user named it.

    Raises:
        DataError: the file cannot be read, or has another format.
    """
    if name is None:
        if not is_named and file is not None and file.suffix.lower() in OTHERS:
            text = f"{file}: nmt does not read this format; its markup is translated as text"
            warnings.warn(f"{text}; --format names another one", NmtWarning, stacklevel=2)
        return None
    try:
        place, data = _read(file)
        open_file = import_object(FORMATS[name].trait("opens"))
        return open_file(data, place, name, fill_all=fill == "all")
    except FormatError as error:
        raise DataError(f"{error}; --format {LINES} translates it line by line") from None
    except DataError:
        if name == "txt" and not is_named:
            return None
        raise


def _read(file: Path | None) -> tuple[str, bytes]:
    """The name of a file and its content. Raises: DataError."""
    if file is None or str(file) == "-":
        if sys.stdin is None:
            raise DataError("stdin is closed; give --file")
        file, data = Path("stdin"), sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        with explain_read_errors(file), file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DataError(f"{file}: larger than {MAX_BYTES:,} bytes; divide it")
    return str(file), data


def document_format(file: Path | None, name: str | None, shown: Shown) -> str | None:
    """The format of a document; None for lines. Plain text is both.

    Raises:
        typer.BadParameter: there is no format of this name.
    """
    if name not in (None, LINES, *DOCUMENT_FORMATS):
        known = ", ".join([*DOCUMENT_FORMATS, LINES])
        raise typer.BadParameter(f"--format {name}: unknown; known are {known}")
    if name is not None:
        return None if name == LINES else name
    found = None if file is None else format_of(file.name)
    return None if found == "txt" and shown.options else found


def check_document(name: str | None, shown: Shown, fill: str, output: Path | None) -> None:
    """Raises: typer.BadParameter if options do not go together with the format of a document."""
    if fill == "all" and (name is None or not FORMATS[name].trait("targets")):
        raise typer.BadParameter("--fill is for files with both languages (po, xliff)")
    if name is not None and shown.options:
        given = shown.options[0]
        raise typer.BadParameter(
            f"{given} needs lines of text, and this file is {name}; remove {given}, or add "
            f"--format {LINES}"
        )
    if name == "docx" and output is None and sys.stdout and sys.stdout.isatty():
        raise typer.BadParameter("docx is no text for a terminal; write into a file with -o")
