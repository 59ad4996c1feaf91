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
from nmt.errors import CheckpointError
from nmt.run.checkpoint import is_average, mean_weights
from nmt.run.folder import (
    JOURNAL_FILE,
    build_model,
    check_same_data,
    find_run,
    load_run_config,
    lock_run,
    open_checkpoints,
)
from nmt.run.journal import Journal
from nmt.training.choice import choose_checkpoint
from nmt.training.validation import VALIDATION_METRICS, Validator


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
        return average_kept(folder, kept, device)


def average_kept(folder: Path, kept: PointerName, device: torch.device) -> str:
    """As `run`, in a run that the caller has locked."""
    config = load_run_config(folder)
    checkpoints = open_checkpoints(folder, config)
    members = [
        checkpoint for checkpoint in checkpoints.kept(kept) if not is_average(checkpoint.checkpoint)
    ]
    if len(members) < 2:
        number = "one checkpoint is" if members else "no checkpoint is"
        raise CheckpointError(
            f"{folder}: {number} kept as {kept}; train with training.keep_{kept} of 2 or more to "
            "average"
        )
    check_same_data(folder, config.prepared_folder)
    model = build_model(folder, config)
    mean_weights([checkpoints.folder / member.checkpoint for member in members], model)
    result = Validator(model.to(device).eval(), config, folder).validate()
    step, member_steps = checkpoints.kept("last")[0].step, sorted(member.step for member in members)
    is_best = checkpoints.add_average(
        step, model, VALIDATION_METRICS[config.training.metric](result)
    )
    Journal(folder / JOURNAL_FILE).write("average", step, members=member_steps, **result.figures)
    choice = choose_checkpoint(folder, config, device)
    figures = f"dev loss {result.loss:.3f}  BLEU {result.bleu:.2f}  chrF {result.chrf:.2f}"
    verdict = (
        "the best checkpoint, used from now on"
        if is_best
        else "not better than the best checkpoint, which stays in use"
    )
    line = f"average of steps {', '.join(map(str, member_steps))}  {figures}"
    return f"{line}: {verdict}" if choice is None else f"{line}\n{choice}"
