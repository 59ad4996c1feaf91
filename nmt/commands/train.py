"""`nmt train`: trains a model on prepared data, and leaves a run folder."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.commands.options import ConfigOption, DeviceOption, QuietOption, SetOption
from nmt.config.load import load_config
from nmt.config.parts import DeviceName
from nmt.config.schema import Config
from nmt.errors import ConfigError, TrainingError

if TYPE_CHECKING:  # `nmt train --help` needs no torch
    from nmt.training.loop import Record, Training
    from nmt.training.record import Listener

NOTICE = "stopping and saving after this step; press Ctrl-C again to stop at once without saving"


def command(
    config: ConfigOption,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Run folder to write. Default: runs/NAME.", metavar="RUN"
        ),
    ] = None,
    set_: SetOption = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue from the last checkpoint, or start if there is none."
        ),
    ] = False,
    device: DeviceOption = "auto",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the model's sizes, and the estimated time and memory.",
        ),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    checked_config = load_config(config, set_ or ())
    if dry_run:
        from nmt.training.dry_run import describe

        print(describe(checked_config, output, device))
    else:
        run(checked_config, output, resume=resume, device=device, quiet=quiet)


def run(
    config: Config,
    folder: Path | None = None,
    *,
    resume: bool = False,
    device: DeviceName = "auto",
    quiet: bool = False,
    listen: "Listener | None" = None,
) -> Path:
    """Train into `folder` (default `runs/<name>`), and return it; with `resume`, continue from its
    last checkpoint, or start if it has none.

    Args:
        listen: gets the events of the training, in the first process.

    Raises:
        ConfigError: the folder is a file, or contains a run and `resume` is off, or the run to
            resume has another configuration.
        DataError: the data is not prepared, or was prepared with another configuration.
        CheckpointError: the run to start from or to resume cannot be read.
        TrainingError: interrupted (after saving a checkpoint), too many losses were not finite, or
            another process failed.
    """
    import torch

    from nmt.device import keep_freed_memory, set_up_device
    from nmt.run.folder import lock_run
    from nmt.training.console import Console
    from nmt.training.distributed import init_distributed, local_gpu
    from nmt.training.loop import Record
    from nmt.training.record import RunRecord
    from nmt.training.start import start_training

    torch_device = local_gpu(set_up_device(device))
    keep_freed_memory()
    folder = folder or config.run_folder
    if folder.is_file():
        raise ConfigError(f"{folder}: is a file; name a folder with -o")
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    with (
        init_distributed(torch_device, timedelta(minutes=config.training.timeout_minutes)) as world,
        Console(config, quiet=quiet or not world.is_first) as console,
        as_training_error(folder),
        lock_run(folder) if world.is_first else nullcontext(),
    ):
        listeners = (console,) if listen is None else (console, listen)
        training = start_training(config, folder, torch_device, world, resume=resume)
        _train(
            training, RunRecord(training, folder, listeners) if world.is_first else Record(), folder
        )
    return folder


def _train(training: "Training", record: "Record", folder: Path) -> None:
    """Train to the end, and choose the checkpoint to use. Raises: TrainingError if interrupted."""
    from nmt.run.folder import find_checkpoint
    from nmt.run.graphs import make_graphs
    from nmt.training.loop import fit
    from nmt.training.validation import choose

    progress = training.progress
    if progress.finished is None:
        with stop_on_signal() as stop:
            record.begin()
            progress = fit(training, record, stop)
    if progress.finished is not None:
        choice = None
        if training.world.is_first:
            choice = choose(folder, training.config, training.device, progress.step)
            precision = training.config.decoding.cpu_precision
            make_graphs(folder, find_checkpoint(folder), precision)
        record.end(progress, choice)
    elif not training.world.broadcast(record.is_stopped):
        raise TrainingError(
            f"interrupted; step {progress.step} is saved in {folder}; repeat the command with "
            "--resume to continue"
        )


@contextmanager
def as_training_error(folder: Path) -> Iterator[None]:
    """Raises: TrainingError in place of an error of the system, such as a full disk."""
    try:
        yield
    except OSError as error:
        raise TrainingError(
            f"{error.filename or folder}: {error.strerror or error}; earlier checkpoints are "
            "intact; when it is corrected, repeat the command with --resume to continue"
        ) from None


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Inside the block, Ctrl-C, SIGTERM and SIGHUP only make the yielded function return True; a
    second Ctrl-C interrupts at once.

    The system sends SIGHUP when the terminal or the connection is closed. A program started with
    `nohup` ignores it; this function does not change that. Python allows signal handlers in the
    main thread only; in another thread the function always returns False.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    stop_requested = False

    def handle(number: int, _: object) -> None:
        nonlocal stop_requested
        if stop_requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop_requested = True
        with suppress(OSError):  # the terminal may be closed
            # Python's streams have locks, which the code that the signal interrupts may hold.
            os.write(2, f"\n{NOTICE}\n".encode())

    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    previous = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield lambda: stop_requested
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
