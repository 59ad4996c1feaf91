"""Options that several commands share, and how a command takes its options as one dataclass."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from nmt.config.parts import DeviceName

if TYPE_CHECKING:
    from nmt.decoding.translator import Translator

NO_SEARCH = (
    "--score does not search; remove --n-best, --prefix, --align, --threshold and --attention"
)

ConfigOption = Annotated[
    Path, typer.Option("--config", "-c", help="The configuration: a YAML file.", metavar="FILE")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Change a key of the configuration, for example training.epochs=3; may be repeated.",
        metavar="KEY=VALUE",
    ),
]
DecodingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Change a key of decoding, for example decoding.length_penalty=0.8; may be repeated.",
        metavar="KEY=VALUE",
    ),
]
BeamOption = Annotated[
    int | None,
    typer.Option(
        "--beam", min=1, help="Beam size; 1: greedy search. Default: decoding.beam.", metavar="N"
    ),
]
DeviceOption = Annotated[
    DeviceName,
    typer.Option(
        "--device", help="Where to compute; auto: the first available of cuda, mps and cpu."
    ),
]
RunArgument = Annotated[
    Path | None, typer.Argument(help="Run folder. Default: the newest in runs/.", metavar="RUN")
]
RunOrBundleArgument = Annotated[
    Path | None,
    typer.Argument(help="Run folder or bundle. Default: the newest in runs/.", metavar="RUN"),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", help="Prepared data folder, if it has moved since training.", metavar="DIR"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")]

CommandT = TypeVar("CommandT", bound=Callable[..., None])


def decoding_overrides(set_: Sequence[str] | None, beam: int | None) -> list[str]:
    """The overrides `decoding.key=value` of --set and --beam together."""
    return [*(set_ or ()), *([] if beam is None else [f"decoding.beam={beam}"])]


def options_from(*dataclasses: type) -> Callable[[CommandT], CommandT]:
    """Decorate a command of many options, which takes them as keyword arguments: each field of the
    dataclasses is an option.

    Typer reads the options of a command from its signature, so the command gets the parameters of
    the dataclasses.
    """
    parameters = [each for part in dataclasses for each in signature(part).parameters.values()]

    def decorate(command: CommandT) -> CommandT:
        vars(command)["__signature__"] = Signature(parameters)
        return command

    return decorate


def instances(dataclasses: Sequence[type], values: Mapping[str, Any]) -> list[Any]:
    """One of each dataclass, from the options that the command got."""
    return [part(**{own.name: values[own.name] for own in fields(part)}) for part in dataclasses]


def to_json(value: Any) -> str:
    """JSON for people and programs: indented, in UTF-8."""
    return json.dumps(value, indent=2, ensure_ascii=False)


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


class Extension:
    """What an extra adds to the translation of texts: a dataclass, whose fields are options."""

    @property
    def overrides(self) -> Sequence[str]:
        """`decoding.key=value` each; those of the user count more."""
        return ()

    def check(self, options: OutputOptions) -> None:
        """Raises: typer.BadParameter if options do not go together."""

    def open(self, options: OutputOptions) -> Document | None:
        """The document that the options name; None: texts are lines. Raises: DataError."""
        return None

    def wrap(self, translator: "Translator") -> "Translator":
        """What translates in place of `translator`. Raises: DataError."""
        return translator
