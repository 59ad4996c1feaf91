"""The options of `nmt translate` for documents."""

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.commands.options import Document, Extension, OutputOptions, TranslateOptions
from nmt.errors import DataError, NmtWarning
from nmt.extras.documents.document import FORMATS, FormatError, format_of, open_document
from nmt.files import explain_read_errors

MAX_BYTES = 1 << 27  # of a document, which is read as a whole
LINES = "lines"
# Suffixes of formats that have markup, and that nmt does not read.
OTHERS = {".arb", ".ini", ".resx", ".rst", ".strings", ".tex", ".toml", ".ts", ".yaml", ".yml"}


@dataclass(frozen=True)
class DocumentOptions(Extension):
    """Which document to translate: a field for each option."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"Format of the file: {', '.join(FORMATS)}; or {LINES}: one sentence per line. "
            "Default: as its suffix says.",
            metavar="NAME",
        ),
    ] = None
    fill: Annotated[
        Literal["empty", "all"],
        typer.Option(
            "--fill",
            help="In files with both languages (po, xliff): which translations to write.",
        ),
    ] = "empty"

    def check(self, options: OutputOptions) -> None:
        """Raises: typer.BadParameter if options do not go together."""
        if self.format not in (None, LINES, *FORMATS):
            known = ", ".join([*FORMATS, LINES])
            raise typer.BadParameter(f"--format {self.format}: unknown; known are {known}")
        if not isinstance(options, TranslateOptions):
            if self.format in FORMATS or self.fill == "all":
                raise typer.BadParameter("translate-files reads lines; use nmt translate")
            return
        if options.sentences and self.format is not None:
            raise typer.BadParameter("--format is for files; remove it, or give --file")
        name = self._document(options)
        if self.fill == "all" and (name is None or not FORMATS[name].trait("targets")):
            raise typer.BadParameter("--fill is for files with both languages (po, xliff)")
        given = _options_of_lines(options)
        if name is not None and given:
            raise typer.BadParameter(
                f"{given} needs lines of text, and this file is {name}; remove {given}, or add "
                f"--format {LINES}"
            )
        if name == "docx" and options.output is None and sys.stdout and sys.stdout.isatty():
            raise typer.BadParameter("docx is no text for a terminal; write into a file with -o")

    def _document(self, options: OutputOptions) -> str | None:
        """The format of the document; None for lines. Plain text is both."""
        if self.format is not None:
            return None if self.format == LINES else self.format
        name = None if options.file is None else format_of(options.file.name)
        return None if name == "txt" and _options_of_lines(options) else name

    def open(self, options: OutputOptions) -> Document | None:
        """The document, if the file is one by its suffix or by --format. Plain text that cannot be
        read as a whole is none: its lines are translated up to the fault.
        """
        name, path = self._document(options), options.file
        if name is None:
            if self.format is None and path is not None and path.suffix.lower() in OTHERS:
                text = f"{path}: nmt does not read this format; its markup is translated as text"
                warnings.warn(f"{text}; --format names another one", NmtWarning, stacklevel=2)
            return None
        try:
            file, data = _read(path)
            return open_document(data, file, name, fill_all=self.fill == "all")
        except FormatError as error:
            raise DataError(f"{error}; --format {LINES} translates it line by line") from None
        except DataError:
            if self.format is None and name == "txt":
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


def _options_of_lines(options: OutputOptions) -> str:
    """The first given option that needs a line for each sentence; "" if none does."""
    given = {
        "--json": options.as_json,
        "--n-best": options.n_best > 1,
        "--align": options.align,
        "--prefix": options.prefix is not None,
        "--score": options.score,
        "--attention": getattr(options, "attention", None) is not None,
    }
    return next((name for name, is_given in given.items() if is_given), "")
