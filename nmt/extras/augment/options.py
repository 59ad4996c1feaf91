"""The options of `nmt augment`, and which of them go together. Without torch, so that `nmt --help`
answers at once.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from nmt.commands.options import (
    BeamOption,
    DecodingOption,
    DeviceOption,
    JsonOption,
    QuietOption,
    decoding_overrides,
)

# The origins of training pairs.
ORIGINAL, FORWARD, BACKWARD = "original", "forward", "backward"
SELF_TRAINING, BACK_TRANSLATION = "self-training", "back-translation"
ORIGINS = (ORIGINAL, FORWARD, BACKWARD, SELF_TRAINING, BACK_TRANSLATION)

RunsOption = list[Path] | None


@dataclass(frozen=True)
class AugmentOptions:
    """What to translate with which runs, and how to put the pairs together: a field for each option
    of the command line.
    """

    prepared: Annotated[
        Path, typer.Argument(help="Prepared folder with the original pairs.", metavar="PREPARED")
    ]
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Prepared folder to write.", metavar="DIR")
    ]
    forward: Annotated[
        RunsOption,
        typer.Option(
            "--forward",
            help="Run that translates the training sources; may be repeated.",
            metavar="RUN",
        ),
    ] = None
    backward: Annotated[
        RunsOption,
        typer.Option(
            "--backward",
            help=(
                "Run of the opposite direction that translates the training targets; may be "
                "repeated."
            ),
            metavar="RUN",
        ),
    ] = None
    teacher: Annotated[
        RunsOption,
        typer.Option(
            "--teacher",
            help=(
                "Store this run's word probabilities, for training.distillation; may be "
                "repeated: then the mean of all."
            ),
            metavar="RUN",
        ),
    ] = None
    ensemble: Annotated[
        bool,
        typer.Option(
            "--ensemble",
            help="All runs of a direction translate together, instead of one after the other.",
        ),
    ] = False
    src_text: Annotated[
        Path | None,
        typer.Option(
            "--src-text",
            help="Also translate this file with the forward runs (self-training).",
            metavar="FILE",
        ),
    ] = None
    tgt_text: Annotated[
        Path | None,
        typer.Option(
            "--tgt-text",
            help="Also translate this file with the backward runs (back-translation).",
            metavar="FILE",
        ),
    ] = None
    repeat: Annotated[
        list[str] | None,
        typer.Option(
            "--repeat",
            help=(
                f"Use the pairs of an origin ({', '.join(ORIGINS)}) N times; 0: leave them out. "
                "May be repeated."
            ),
            metavar="ORIGIN=N",
        ),
    ] = None
    tag: Annotated[
        str | None,
        typer.Option(
            "--tag",
            help=(
                "Put this source token before each source that a backward run translated from "
                "--tgt-text."
            ),
            metavar="TOKEN",
        ),
    ] = None
    translations: Annotated[
        Path | None,
        typer.Option(
            "--translations",
            help=(
                "Folder that keeps the translations for later calls, also for the opposite "
                "direction. Default: DIR-translations."
            ),
            metavar="FOLDER",
        ),
    ] = None
    beam: BeamOption = None
    set_: DecodingOption = None
    device: DeviceOption = "auto"
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace other data in the folder, once the new data is complete."
        ),
    ] = False
    as_json: JsonOption = False
    quiet: QuietOption = False

    @property
    def overrides(self) -> list[str]:
        """`decoding.key=value` each."""
        return decoding_overrides(self.set_, self.beam)

    @property
    def counts(self) -> dict[str, int]:
        """How many times to use the pairs of each origin. Raises: typer.BadParameter."""
        counts = dict.fromkeys(ORIGINS, 1)
        for text in self.repeat or ():
            origin, _, number = text.partition("=")
            if origin not in counts or not number.isdecimal():
                raise typer.BadParameter(
                    f"--repeat {text}: write ORIGIN=N with one of {', '.join(ORIGINS)}"
                )
            counts[origin] = int(number)
        return counts

    def check(self) -> None:
        """Raises: typer.BadParameter if options do not go together."""
        if not self.forward and not self.backward and not self.teacher:
            raise typer.BadParameter(
                "there is nothing to add; give --forward, --backward or --teacher"
            )
        if (
            self.teacher
            and not (self.forward or self.backward)
            and (self.overrides or self.ensemble)
        ):
            raise typer.BadParameter(
                "--beam, --set and --ensemble are for translations; add --forward or --backward"
            )
        if self.src_text is not None and not self.forward:
            raise typer.BadParameter("--src-text needs --forward: a run that translates it")
        if self.tgt_text is not None and not self.backward:
            raise typer.BadParameter("--tgt-text needs --backward: a run that translates it")
        if self.tag is not None and self.tgt_text is None:
            raise typer.BadParameter(
                "--tag marks the translations of --tgt-text; add it or remove --tag"
            )
        if not any(self.counts.values()):
            raise typer.BadParameter("--repeat leaves out all pairs")
