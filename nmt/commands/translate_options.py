"""The options of `nmt translate`, and which of them go together. Without torch, so that
`nmt --help` answers at once.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from nmt.commands.options import (
    BeamOption,
    DecodingOption,
    DeviceOption,
    JsonOption,
    decoding_overrides,
)


@dataclass(frozen=True)
class TranslateOptions:
    """What to translate, with which runs, and what to print: a field for each option of the command
    line.
    """

    sentences: Annotated[
        list[str] | None, typer.Argument(help="Sentences, each in quotes.", metavar="SENTENCE")
    ] = None
    run: Annotated[
        list[Path] | None,
        typer.Option(
            "--run",
            help=(
                "Run folder or bundle; several translate together as an ensemble. Default: the "
                "newest in runs/."
            ),
            metavar="RUN",
        ),
    ] = None
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            help=(
                "File with one sentence per line; - is stdin. A pattern in quotes, such as "
                "'parts/*.gz', names several."
            ),
            metavar="FILE",
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Write to this file instead of stdout; for several files, into this folder.",
            metavar="FILE",
        ),
    ] = None
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            help="Of the files, only this share: 3/16 is the third of 16, for array jobs.",
            metavar="N/COUNT",
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
            help=(
                "Print the word alignment instead of the text: source-target pairs such as 0-0 1-2."
            ),
        ),
    ] = False
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            min=0,
            max=1,
            metavar="WEIGHT",
            help=(
                "With --align or --json: all pairs with at least this attention, not only the "
                "best for each target word."
            ),
        ),
    ] = None
    attention: Annotated[
        Path | None,
        typer.Option(
            "--attention",
            help="Draw the attention of one sentence (.png, .svg, .pdf) or of all (.html).",
            metavar="FILE",
        ),
    ] = None
    score: Annotated[
        bool,
        typer.Option(
            "--score",
            help=(
                "Score given translations (each line: source, tab, translation): "
                "log-probability, tokens, perplexity."
            ),
        ),
    ] = False
    as_json: JsonOption = False
    device: DeviceOption = "auto"

    @property
    def overrides(self) -> list[str]:
        """`decoding.key=value` each."""
        return decoding_overrides(self.set_, self.beam)

    @property
    def has_parts(self) -> bool:
        """Whether the output is a folder, with a file for each input file."""
        is_pattern = (
            self.file is not None
            and not self.file.exists()
            and any(character in "*?[" for character in str(self.file))
        )
        is_file = self.file is not None and str(self.file) != "-"
        return (
            is_pattern
            or self.shard is not None
            or (is_file and self.output is not None and self.output.is_dir())
        )

    @property
    def shard_range(self) -> tuple[int, int]:
        """Number, from 1, and count of the shards. Raises: typer.BadParameter."""
        if self.shard is None:
            return 1, 1
        number, count = (
            map(int, match.groups())
            if (match := re.fullmatch(r"(\d+)/(\d+)", self.shard))
            else (0, 0)
        )
        if not 1 <= number <= count:
            raise typer.BadParameter(
                f"--shard {self.shard}: write number/count, with a number from 1 to count, "
                "such "
                "as 3/16"
            )
        return number, count

    def check(self) -> None:
        """Raises: typer.BadParameter if options do not go together."""
        if self.sentences and self.file is not None:
            raise typer.BadParameter(
                "give sentences or --file, not both; put quotes around a pattern such as "
                "'parts/*.gz'"
            )
        if self.has_parts and (self.file is None or self.output is None):
            raise typer.BadParameter("several files and --shard need --file and -o FOLDER")
        if self.has_parts and self.attention is not None:
            raise typer.BadParameter(
                "--attention draws the sentences of one file; write to a file with -o, or to stdout"
            )
        _ = self.shard_range
        searches = self.n_best > 1 or self.prefix is not None or self.attention is not None
        if self.score and (searches or self.align or self.threshold is not None):
            raise typer.BadParameter(
                "--score does not search; remove --n-best, --prefix, --align, --threshold and "
                "--attention"
            )
        if self.threshold is not None and not (self.align or self.as_json):
            raise typer.BadParameter("--threshold needs --align or --json")
        if self.align and self.n_best > 1:
            raise typer.BadParameter("--align prints one alignment per sentence; remove --n-best")
        if self.align and self.as_json:
            raise typer.BadParameter("--json contains the alignment already; remove --align")
