"""`nmt bundle`: one file with all that translating needs of a run."""

from pathlib import Path
from typing import Annotated

import typer

from nmt.commands.options import RunArgument
from nmt.extras.share.bundle import SUFFIX, write_bundle
from nmt.run.load import build_translator, find_run_and_checkpoint


def command(
    folder: RunArgument = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write. Default: RUN.nmt.", metavar="FILE"),
    ] = None,
) -> None:
    """The command line."""
    print(run(folder, output))


def run(folder: Path | None = None, output: Path | None = None) -> str:
    """Bundle the best checkpoint of a run (default: the newest one), or the given checkpoint.

    Args:
        output: the file; default: RUN.nmt beside the run.

    Returns:
        Lines to print.

    Raises:
        CheckpointError: there is no run, it has no readable checkpoint, or the file cannot be
            written.
        ConfigError, DataError: another part of the run is missing or damaged.
    """
    run_folder, checkpoint = find_run_and_checkpoint(folder)
    build_translator(
        [(run_folder, checkpoint)], device="cpu"
    )  # a bundle that cannot translate is not written
    path = output or run_folder.resolve().with_name(f"{run_folder.resolve().name}{SUFFIX}")
    write_bundle(run_folder, checkpoint, path)
    size = path.stat().st_size / 1e6
    return (
        f"{path}: {run_folder}, {checkpoint.name}, {size:.1f} MB\nnext: nmt translate --run "
        f'{path} "..."'
    )
