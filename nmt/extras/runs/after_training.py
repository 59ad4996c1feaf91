"""What follows a training: `nmt runs average`, the mean weights of its kept checkpoints;
`nmt runs calibrate`, the confidence in its translations; and `nmt runs reproduce`, the same
training again, to compare the weights.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from nmt.commands import train as command_train
from nmt.commands.options import RunArgument
from nmt.config.load import load_config
from nmt.config.parts import DeviceName, PointerName
from nmt.config.schema import Config
from nmt.device import pick_device, set_up_device
from nmt.errors import CheckpointError, ConfigError, NmtError, TrainingError
from nmt.extras.runs.inspect import is_training
from nmt.files import sha256_of
from nmt.report.table import Table
from nmt.run.checkpoint import MODEL_FILE, RAW_MODEL_FILE, read_progress
from nmt.run.folder import (
    CONFIG_FILE,
    check_same_data,
    find_checkpoint,
    find_run,
    holds_weights_only,
    load_run_config,
    lock_run,
    open_checkpoints,
)
from nmt.run.graphs import make_graphs
from nmt.run.provenance import read_training
from nmt.run.weights import read_tensors
from nmt.training.calibrate import BINS, GOOD_CHRF, PARTS, calibrate, calibrate_after_training
from nmt.training.optimization import lasts_for_training
from nmt.training.validation import average_kept


def average_command(
    folder: RunArgument = None,
    kept: Annotated[
        PointerName, typer.Option("--kept", help="Average the best or the last kept checkpoints.")
    ] = "best",
) -> None:
    """Average the best or the last checkpoints of a run (default: the newest one). If others are
    used from now on, the confidence is fitted to them.

    Raises:
        CheckpointError: there is no run, it keeps fewer than two checkpoints, or a checkpoint
            cannot be read or written.
        TrainingError: a training is running in the run.
        DataError: the prepared data of the run is missing, or is not what the run was trained on.
    """
    run = find_run(folder)
    with lock_run(run):
        weights = sha256_of(find_checkpoint(run) / MODEL_FILE)
        config = load_run_config(run)
        print(average_kept(run, config, kept, set_up_device("auto")))
        checkpoint = find_checkpoint(run)
        if weights != sha256_of(checkpoint / MODEL_FILE):
            make_graphs(run, checkpoint, config.decoding.cpu_precision)
            calibrate_after_training(run, config.prepared_folder, "auto")


def calibrate_command(folder: RunArgument = None) -> None:
    """Fit the confidence of a run (default: the newest one), and print how well it fits.

    Raises:
        CheckpointError: there is no run, or it cannot be read.
        DataError: the prepared data is missing, is not that of the run, or has too few dev pairs.
        TrainingError: a training is running in the run.
    """
    run = find_run(folder)
    with lock_run(run):
        record = calibrate(run, load_run_config(run).prepared_folder)
    column = f"chrF >= {GOOD_CHRF}"
    table = Table(
        "curve",
        f"{run}, {record['checkpoint']}, dev split, beam {record['beam']}",
        ("confidence", "sentences", column),
        [(f"{low:.1f}-{low + 1 / BINS:.1f}", n, good) for low, n, _, good in record["curve"]],
        f"the confidence in each sentence is from a fit to {PARTS - 1}/{PARTS} of the others",
        formats={column: ".1%"},
    )
    print(table.to_text())
    print(
        f"{record['sentences']:,} sentences, {record['good']:.1%} with {column}; "
        f"calibration error (ECE) {record['ece']:.3f}, AUC {record['auc']:.3f}"
    )


def reproduce_command(folder: RunArgument = None) -> None:
    """Train a finished run again, into RUN-reproduced, on the kind of device that trained it, and
    compare. Called again, it continues.

    Raises:
        CheckpointError: there is no run, its training is not finished, or a part of it is missing.
        ConfigError: the run cannot be repeated exactly, or RUN-reproduced holds another run.
        DataError: the data is missing, or is not that of the run.
        TrainingError: interrupted.
        NmtError: the weights differ.
    """
    folder = find_run(folder)
    output = folder.resolve().with_name(f"{folder.resolve().name}-reproduced")
    config, sessions = load_run_config(folder), read_training(folder)
    config = load_config(config, _overrides(config, folder, sessions))
    check_same_data(folder, config.prepared_folder)
    try:
        command_train.run(config, output, resume=True, device=_device(folder, sessions))
    except TrainingError as error:
        raise TrainingError(
            str(error).replace("the command with --resume", "the command")
        ) from None
    digests = []
    for run in (folder, output):
        checkpoint = open_checkpoints(run, config).find("last")
        assert checkpoint is not None  # both trainings are finished
        digests.append(
            {
                name: _digest(checkpoint / name)
                for name in (MODEL_FILE, RAW_MODEL_FILE)
                if (checkpoint / name).is_file()
            }
        )
        for name, digest in digests[-1].items():
            print(f"{name}  {digest}  {run}")
    if digests[0] != digests[1]:
        raise NmtError(f"{output}: the weights differ from those of {folder}")
    print("equal: the weights of both trainings are the same bit for bit")


def _digest(path: Path) -> str:
    """SHA-256 of the tensors in a file, in the order of their names: equal for equal weights."""
    digest = sha256()
    for name, tensor in sorted(read_tensors(path).items()):
        digest.update(f"{name} {tensor.dtype} {[*tensor.shape]}\n".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _device(folder: Path, sessions: Sequence[Mapping[str, Any]]) -> DeviceName:
    """The kind of device that trained the run. Raises: ConfigError if there is none here."""
    if not sessions:
        return "auto"
    recorded = sessions[0]["device"]  # of a GPU of CUDA, its own name
    name: DeviceName = recorded if recorded in ("cpu", "mps") else "cuda"
    try:
        pick_device(name)
    except ConfigError:
        raise ConfigError(
            f"{folder}: {recorded} trained it, and another device rounds differently; repeat the "
            f"command where nmt finds {name}"
        ) from None
    return name


def _overrides(config: Config, folder: Path, sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the configuration of the second training must say in place of clock and machine.

    Args:
        sessions: see `read_training`.

    Raises:
        CheckpointError: the training is not finished.
        ConfigError: the learning rate follows the clock, or several processes trained the run.
    """
    if is_training(folder):
        raise CheckpointError(f"{folder}: a training is running in it; wait until it is finished")
    if holds_weights_only(folder):
        raise CheckpointError(
            f"{folder}: is a copy without the records of training; name the run that it was made "
            "from"
        )
    last = open_checkpoints(folder, config).find("last")
    progress = None if last is None else read_progress(last)
    if progress is None or not progress.finished:
        raise CheckpointError(
            f"{folder}: its training is not finished; "
            f"`nmt train -c {folder / CONFIG_FILE} -o {folder} --resume` continues it"
        )
    training = config.training
    overrides = list[str]()
    if training.max_minutes is not None:
        if lasts_for_training(training.learning_rate):
            raise ConfigError(
                f"{folder}: its learning rate follows training.max_minutes, so it cannot be "
                "trained again exactly; train with max_steps"
            )
        overrides += ["training.max_minutes=null", f"training.max_steps={progress.step}"]
    if any(session["processes"] > 1 for session in sessions):
        raise ConfigError(
            f"{folder}: several processes trained it, and one, which this command uses, rounds "
            "differently"
        )
    if sessions and config.training.threads is None:
        overrides.append(f"training.threads={sessions[0]['threads']}")
    return overrides
