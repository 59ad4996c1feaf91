"""What follows a training: `nmt runs average`, the mean weights of its kept checkpoints, and
`nmt runs calibrate`, the confidence in its translations.
"""

from typing import Annotated

import typer

from nmt.commands.options import RunArgument
from nmt.config.parts import PointerName
from nmt.device import set_up_device
from nmt.files import sha256_of
from nmt.report.table import Table
from nmt.run.checkpoint import MODEL_FILE
from nmt.run.folder import find_checkpoint, find_run, load_run_config, lock_run
from nmt.run.graphs import make_graphs
from nmt.training.calibrate import BINS, GOOD_CHRF, PARTS, calibrate, calibrate_after_training
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
