"""`nmt runs calibrate`: fits the confidence of a run to the dev set."""

from nmt.commands.options import RunArgument
from nmt.report.table import Table
from nmt.run.folder import find_run, load_run_config, lock_run
from nmt.training.calibrate import BINS, GOOD_CHRF, PARTS, calibrate


def command(folder: RunArgument = None) -> None:
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
