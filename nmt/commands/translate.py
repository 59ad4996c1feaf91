"""`nmt translate`: translates sentences, one output line per input line; or scores given
translations.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from nmt.commands.options import (
    BeamOption,
    DecodingOption,
    DeviceOption,
    JsonOption,
    decoding_overrides,
    instances,
    options_from,
)
from nmt.errors import NmtError
from nmt.lines import open_output
from nmt.plugins import extras, import_object

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator

NO_SEARCH = (
    "--score does not search; remove --n-best, --prefix, --align, --threshold and --attention"
)


@dataclass(frozen=True)
class OutputOptions:
    """With which runs to translate a file, and what to print."""

    run: Annotated[
        list[Path] | None,
        typer.Option(
            "--run",
            help="Run folder or bundle; several translate together as an ensemble. Default: the "
            "newest in runs/.",
            metavar="RUN",
        ),
    ] = None
    file: Annotated[
        Path | None,
        typer.Option("--file", help="File with one sentence per line; - is stdin.", metavar="FILE"),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Write to this file instead of stdout.", metavar="FILE"
        ),
    ] = None
    beam: BeamOption = None
    set_: DecodingOption = None
    n_best: Annotated[
        int,
        typer.Option(
            "--n-best",
            min=1,
            max=10_000,
            help="Print the N best translations: number ||| text ||| score.",
            metavar="N",
        ),
    ] = 1
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", help="Begin each translation with this text.", metavar="TEXT"),
    ] = None
    align: Annotated[
        bool,
        typer.Option(
            "--align",
            help="Print the word alignment instead of the text: source-target pairs such as "
            "0-0 1-2.",
        ),
    ] = False
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            min=0,
            max=1,
            metavar="WEIGHT",
            help="With --align or --json: all pairs with at least this attention, not only the "
            "best for each target word.",
        ),
    ] = None
    score: Annotated[
        bool,
        typer.Option(
            "--score",
            help="Score given translations (each line: source, tab, translation): "
            "log-probability, tokens, perplexity.",
        ),
    ] = False
    as_json: JsonOption = False
    device: DeviceOption = "auto"

    @property
    def overrides(self) -> list[str]:
        """`decoding.key=value` each."""
        return decoding_overrides(self.set_, self.beam)

    def check(self) -> None:
        """Raises: typer.BadParameter if options do not go together."""
        searches = self.n_best > 1 or self.prefix is not None or self.align
        if self.score and (searches or self.threshold is not None):
            raise typer.BadParameter(NO_SEARCH)
        if self.threshold is not None and not (self.align or self.as_json):
            raise typer.BadParameter("--threshold needs --align or --json")
        if self.align and self.n_best > 1:
            raise typer.BadParameter("--align prints one alignment per sentence; remove --n-best")
        if self.align and self.as_json:
            raise typer.BadParameter("--json contains the alignment already; remove --align")


OptionsT = TypeVar("OptionsT", bound=OutputOptions)


@dataclass(frozen=True)
class TranslateOptions(OutputOptions):
    """What to translate, and also to draw."""

    sentences: Annotated[
        list[str] | None, typer.Argument(help="Sentences, each in quotes.", metavar="SENTENCE")
    ] = None
    attention: Annotated[
        Path | None,
        typer.Option(
            "--attention",
            help="Draw the attention of one sentence (.png, .svg, .pdf) or of all (.html).",
            metavar="FILE",
        ),
    ] = None

    def check(self) -> None:
        if self.score and self.attention is not None:
            raise typer.BadParameter(NO_SEARCH)
        if self.sentences and self.file is not None:
            raise typer.BadParameter("give sentences or --file, not both")
        super().check()


class Document(Protocol):
    """A file that is not read line by line."""

    def translated(self, translator: "Translator") -> Iterator[bytes]:
        """The file with translated texts, in pieces."""


class Extension(Protocol):
    """What an extra adds to the translation of texts: a dataclass, whose fields are options."""

    def check(self, options: OutputOptions) -> None:
        """Raises: typer.BadParameter if options do not go together."""

    def open(self, options: OutputOptions) -> Document | None:
        """The document that the options name, if they name one. Raises: DataError."""

    def wrap(self, translator: "Translator") -> "Translator":
        """What translates in place of `translator`. Raises: DataError."""


EXTENSIONS: list[type[Extension]] = [
    import_object(extra.translate) for extra in extras().values() if extra.translate is not None
]


def checked(
    dataclass: type[OptionsT], values: Mapping[str, Any]
) -> tuple[OptionsT, Sequence[Extension]]:
    """The options of a command, and those that extras add. Raises: typer.BadParameter."""
    options, *extensions = instances([dataclass, *EXTENSIONS], values)
    options.check()
    for extension in extensions:
        extension.check(options)
    return options, extensions


def wrapped(translator: "Translator", extensions: Sequence[Extension]) -> "Translator":
    """The translator with what extras add."""
    return reduce(lambda inner, extension: extension.wrap(inner), extensions, translator)


@options_from(TranslateOptions, *EXTENSIONS)
def command(**values: Any) -> None:
    from nmt.commands.translate_lines import check_output_files, open_input, output_lines
    from nmt.run.load import load_translator

    options, extensions = checked(TranslateOptions, values)
    if sys.stdout is None and options.output is None:
        raise NmtError("stdout is closed; write into a file with -o")
    # All input and output is checked before the first sentence is translated.
    document = next(filter(None, (each.open(options) for each in extensions)), None)
    inputs = None if document is not None else open_input(options.sentences or [], options.file)
    check_output_files(options.output, options.attention)
    translator = load_translator(
        options.run or None,
        device=options.device,
        overrides=options.overrides,
        n_best=options.n_best,
    )
    if options.prefix is not None:
        translator.prefix_ids([options.prefix])
    translator = wrapped(translator, extensions)
    if document is not None:
        with open_output(options.output) as stream:
            for piece in document.translated(translator):
                stream.buffer.write(piece)
                stream.buffer.flush()
        return
    assert inputs is not None
    lines = output_lines(translator, inputs, options, options.attention)
    if inputs.is_keyboard:
        end = "Ctrl-Z and Enter end" if os.name == "nt" else "Ctrl-D ends"
        print(f"nmt: type a sentence, Enter translates it; {end}", file=sys.stderr)
    with open_output(options.output) as stream:
        for line in lines:
            stream.write(f"{line}\n")
            stream.flush()
