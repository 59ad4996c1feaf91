"""`nmt runs average`: the mean weights of kept checkpoints, used if better on the dev set."""

from typing import Annotated

import typer

from nmt.commands.options import DeviceOption, RunArgument
from nmt.config.parts import PointerName
from nmt.device import set_up_device
from nmt.run.folder import find_run, load_run_config, lock_run
from nmt.training.validation import average_kept


def command(
    folder: RunArgument = None,
    kept: Annotated[
        PointerName, typer.Option("--kept", help="Average the best or the last kept checkpoints.")
    ] = "best",
    device: DeviceOption = "auto",
) -> None:
    """Average the best or the last checkpoints of a run (default: the newest one).

    Raises:
        CheckpointError: there is no run, it keeps fewer than two checkpoints, or a checkpoint
            cannot be read or written.
        TrainingError: a training is running in the run.
        DataError: the prepared data of the run is missing, or is not what the run was trained on.
    """
    run = find_run(folder)
    with lock_run(run):
        print(average_kept(run, load_run_config(run), kept, set_up_device(device)))
