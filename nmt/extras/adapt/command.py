"""`nmt adapt`: its options."""

from pathlib import Path
from typing import Annotated

import typer

from nmt.commands.options import DeviceOption, QuietOption, SetOption
from nmt.errors import ConfigError


def command(
    run: Annotated[Path, typer.Argument(help="Run to adapt.", metavar="RUN")],
    memory: Annotated[
        list[Path],
        typer.Option(
            "--with",
            help="Your pairs: a table, TMX, JSON, Parquet, PO or XLIFF (also .gz, .zip), or "
            "several: a pattern, a folder, or given again; or two files with a sentence per line.",
            metavar="FILE",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Run folder to write. Default: runs/RUN-FILE.", metavar="RUN"
        ),
    ] = None,
    general: Annotated[
        Path | None,
        typer.Option(
            "--general",
            help="Other pairs, of which the run must not forget how to translate them: a file, or "
            "prepared data. Default: the data that the run was trained on.",
            metavar="FILE",
        ),
    ] = None,
    mix: Annotated[
        float | None,
        typer.Option(
            "--mix",
            help="General pairs as a share of the training. Default: 0.9 for up to 5,000 pairs of "
            "yours, else 0.8.",
            metavar="SHARE",
        ),
    ] = None,
    max_loss: Annotated[
        float,
        typer.Option(
            "--max-loss",
            min=0,
            help="How much BLEU the run may lose on general pairs.",
            metavar="BLEU",
        ),
    ] = 1.0,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            min=0.01,
            help="Minutes of training, in place of 2,400 updates at most; then comes the choice.",
            metavar="N",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, help="CPU threads. Default: all cores.", metavar="N"),
    ] = None,
    set_: SetOption = None,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
) -> None:
    """Repeat the command to continue after an interruption.

    Raises:
        ConfigError: an option is wrong, or the run folder to write exists.
        NmtError: the run or the data cannot be used, or nothing is gained within `max_loss`.
    """
    if mix is not None and not 0 < mix < 1:
        raise ConfigError(f"--mix {mix:g}: must be above 0 and below 1, for example 0.8")
    from nmt.extras.adapt.adaptation import adapt

    overrides = [] if threads is None else [f"training.threads={threads}"]
    if minutes is not None:
        overrides += ["training.max_steps=null", f"training.max_minutes={minutes:g}"]
    overrides += set_ or []
    adapt(run, memory, output, general, mix, max_loss, overrides, device, quiet=quiet)
