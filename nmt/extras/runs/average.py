"""`nmt runs average`: the mean of the weights of a run's kept checkpoints. Translation uses it if
it is better on the dev set.
"""

from pathlib import Path
from typing import Annotated

import torch
import typer

from nmt.commands.options import DeviceOption, RunArgument
from nmt.config.parts import PointerName
from nmt.device import set_up_device
from nmt.run.folder import find_run, load_run_config, lock_run
from nmt.training.choice import average_kept


def command(
    folder: RunArgument = None,
    kept: Annotated[
        PointerName, typer.Option("--kept", help="Average the best or the last kept checkpoints.")
    ] = "best",
    device: DeviceOption = "auto",
) -> None:
    """The command line."""
    print(run(folder, kept=kept, device=set_up_device(device)))


def run(folder: Path | None = None, *, kept: PointerName = "best", device: torch.device) -> str:
    """Average the best or the last checkpoints of a run (default: the newest one); returns what to
    print.

    Args:
        device: translates the dev set.

    Raises:
        CheckpointError: there is no run, it keeps fewer than two checkpoints, or a checkpoint
            cannot be read or written.
        TrainingError: a training is running in the run.
        DataError: the prepared data of the run is missing, or is not what the run was trained on.
    """
    folder = find_run(folder)
    with lock_run(folder):
        return average_kept(folder, load_run_config(folder), kept, device)
