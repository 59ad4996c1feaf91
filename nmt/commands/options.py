"""The types of options that several commands share."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from nmt.config.parts import DeviceName

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
RunsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--run",
        help="Run folder or bundle; several translate together as an ensemble. Default: the newest "
        "in runs/.",
        metavar="RUN",
    ),
]
MemoryOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--memory",
        help="Translate as the pairs of this file: TMX, table, PO, ...; also a pattern, a folder, "
        "or given again (as for nmt init).",
        metavar="FILE",
    ),
]
GlossaryOption = Annotated[
    Path | None,
    typer.Option(
        "--glossary",
        help="Translate terms as this file says: in each line a term, a tab, its translation.",
        metavar="FILE",
    ),
]
NoSplitOption = Annotated[
    bool,
    typer.Option(
        "--no-split", help="Translate each line as one sentence, and ALL CAPITALS as they are."
    ),
]
NoProtectOption = Annotated[
    bool,
    typer.Option(
        "--no-protect", help="Leave placeholders, tags, addresses and numbers to the model."
    ),
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        help="Keep what this regular expression finds, too; may be repeated.",
        metavar="REGEX",
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


def to_json(value: Any) -> str:
    """JSON for people and programs: indented, in UTF-8."""
    return json.dumps(value, indent=2, ensure_ascii=False)


# Of `nmt evaluate` and `nmt analyze`.
RunsArgument = Annotated[
    list[Path] | None,
    typer.Argument(help="Run folder or bundle. Default: the newest in runs/.", metavar="RUN"),
]
SplitOption = Annotated[
    Literal["dev", "test"],
    typer.Option("--split", help="Which split of the prepared data to score."),
]
SourcesOption = Annotated[
    Path | None,
    typer.Option(
        "--sources",
        help="Score the run on this file and --references instead of a split.",
        metavar="FILE",
    ),
]
HypothesesOption = Annotated[
    Path | None,
    typer.Option(
        "--hypotheses", help="Score this file of translations instead of a run.", metavar="FILE"
    ),
]
ReferencesOption = Annotated[
    list[Path] | None,
    typer.Option("--references", help="Reference translations; one or more files.", metavar="FILE"),
]
