"""`nmt train`: trains a model on prepared data, and leaves a run folder."""

import warnings
from collections.abc import Generator, Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel

from nmt.commands.options import ConfigOption, DeviceOption, QuietOption, SetOption
from nmt.config.load import differences, load
from nmt.config.parts import DeviceName
from nmt.config.schema import Config
from nmt.config.yaml_text import dump
from nmt.data.corpus import Corpus, load_training_corpus
from nmt.data.manifest import is_location_key
from nmt.device import choose_precision, set_up_device
from nmt.errors import ConfigError, NmtWarning, TrainingError
from nmt.extras.runs import average
from nmt.model.seq2seq import Seq2Seq
from nmt.run import provenance
from nmt.run.checkpoint import load_training
from nmt.run.folder import (
    JOURNAL_FILE,
    build_model,
    check_prepared,
    check_same_data,
    create_run,
    holds_run,
    holds_weights_only,
    load_run_config,
    lock_run,
    open_checkpoints,
    write_run_config,
)
from nmt.run.journal import Journal
from nmt.run.progress import Progress
from nmt.training.choice import choose_checkpoint
from nmt.training.console import Console
from nmt.training.distributed import World, init_distributed, is_first_process, local_gpu
from nmt.training.events import BeginEvent, EndEvent, Event, MessageEvent
from nmt.training.interrupt import stop_on_signal
from nmt.training.loop import Hooks, fit
from nmt.training.optimization import averaging_function, build_optimizer
from nmt.training.record import Recorder, draw_curves
from nmt.training.start import InitialWeights

# Keys that may change when a training is resumed: none of them affects an update, unless the
# learning rate follows the limits.
LIMIT_KEYS = ("training.epochs", "training.max_steps", "training.max_minutes")
RESUMABLE_KEYS = (
    "training.patience",
    "training.log_every",
    "training.threads",
    "training.checkpoint_minutes",
    "training.timeout_minutes",
    "training.keep_best",
    "training.keep_last",
    "training.average",
    "training.final_pairs",
    "training.max_skipped",
    "decoding.",
)


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
            help="Print the configuration, the model's sizes, and the estimated time and memory.",
        ),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """The command line."""
    checked_config = load(config, set_ or ())
    if dry_run:
        from nmt.training import dry_run as command_dry_run

        print(f"{dump(checked_config)}\n{command_dry_run.describe(checked_config, output, device)}")
    else:
        run(checked_config, output, resume=resume, device=device, quiet=quiet)


def run(
    config: Config,
    folder: Path | None = None,
    *,
    resume: bool = False,
    device: DeviceName = "auto",
    quiet: bool = False,
) -> Progress:
    """Train into `folder` (default `runs/<name>`), and print the events on stderr; see `events`,
    which raises the same errors.
    """
    progress = Progress()
    with (
        Console(config, quiet=quiet or not is_first_process()) as console,
        closing(events(config, folder, resume=resume, device=device)) as training,
    ):
        for event in training:
            console(event)
            if isinstance(event, EndEvent):
                progress = event.progress
    return progress


def events(
    config: Config,
    folder: Path | None = None,
    *,
    resume: bool = False,
    device: DeviceName = "auto",
) -> Generator[Event, None, None]:
    """Train into `folder` (default `runs/<name>`); with `resume`, continue from its last
    checkpoint, or start if it has none.

    Yields:
        the events of the training. Processes other than the first only yield the end. Closing the
        generator ends the training after the last update, and saves it.

    Raises:
        ConfigError: the folder is a file, or contains a run and `resume` is off, or the run to
            resume has another configuration.
        DataError: the data is not prepared, or was prepared with another configuration; or word
            vectors are unusable.
        CheckpointError: the run to start from or to resume cannot be read.
        TrainingError: interrupted (after saving a checkpoint), too many losses were not finite, or
            another process failed.
    """
    torch_device = local_gpu(set_up_device(device))
    folder = folder or config.run_folder
    if folder.is_file():
        raise ConfigError(f"{folder}: is a file; name a folder with -o")
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    with (
        init_distributed(torch_device, timedelta(minutes=config.training.timeout_minutes)) as world,
        closing(_train(config, folder, torch_device, world, resume=resume)) as training,
    ):
        try:
            for event in training:
                if world.is_first or isinstance(event, EndEvent):
                    yield event
        except OSError as error:
            reason = f"{error.filename or folder}: {error.strerror or error}"
            raise TrainingError(
                f"{reason}; earlier checkpoints are intact; when it is corrected, repeat the "
                "command with --resume to continue"
            ) from None


def _train(
    config: Config,
    folder: Path,
    device: torch.device,
    world: World,
    *,
    resume: bool,
) -> Generator[Event, None, None]:
    """The training of one process. Only the first process reads and writes the run folder."""
    check_prepared(config)
    config = _settle_precision(config, folder, device, world)
    corpus = load_training_corpus(config)
    _check_batch_size(config, corpus)
    with lock_run(folder) if world.is_first else nullcontext():
        if world.is_first and holds_run(folder) and not resume:
            raise ConfigError(
                f"{folder}: contains a run already; continue it with --resume, or train "
                "elsewhere "
                "with -o"
            )
        checkpoint, initial_weights = (
            _open_folder(folder, config) if world.is_first else (None, None)
        )
        model, optimizer, averaged = _build(config, device)
        progress = Progress()
        if (checkpoint := world.broadcast(checkpoint)) is not None:
            progress = load_training(checkpoint, model, optimizer, averaged)
            if progress.reason_to_finish(config.training):
                yield from _complete(config, folder, device, world, progress)
                yield EndEvent(folder, progress)
                return
            progress = replace(progress, finished=None)

        n_parameters = sum(parameter.numel() for parameter in model.parameters())
        place = str(device), config.training.precision, torch.get_num_threads(), world.size
        yield BeginEvent(folder, n_parameters, len(corpus), *place, progress.step)
        if initial_weights is not None:
            yield from map(
                MessageEvent, initial_weights.apply(model, Journal(folder / JOURNAL_FILE))
            )
        if world.is_first:
            provenance.record_training(folder, progress.step, device, world.size)
        world.copy_weights(model)

        with stop_on_signal() as stop:
            recorder = (
                Recorder(folder, config, progress, model, optimizer, averaged)
                if world.is_first
                else None
            )
            hooks = Hooks(stop=stop) if recorder is None else recorder.hooks(stop)
            with recorder or nullcontext():
                steps = fit(
                    model,
                    optimizer,
                    corpus,
                    config,
                    progress,
                    hooks,
                    averaged=averaged,
                    world=world,
                )
                progress = yield from _fit(steps, recorder)
        if recorder is not None:
            yield from recorder.take_events()
        yield from _choose_best(config, folder, device, world, progress)

    if progress.finished is None:
        raise TrainingError(
            f"interrupted; step {progress.step} is saved in {folder}; repeat the command with "
            "--resume to continue"
        )
    yield EndEvent(folder, progress)


def _fit(
    steps: Generator[None, None, Progress], recorder: Recorder | None
) -> Generator[Event, None, Progress]:
    """Make the steps, and yield the recorder's events after each. Closing it closes the steps,
    which saves.
    """
    with closing(steps):
        while True:
            try:
                next(steps)
            except StopIteration as end:
                progress: Progress = end.value
                return progress
            if recorder is not None:
                yield from recorder.take_events()


def _check_batch_size(config: Config, corpus: Corpus) -> None:
    """Warn if a batch can hold the whole training data."""
    batch = config.training.batch
    available = len(corpus) if batch.unit == "sentences" else corpus.tgt.n_tokens
    if batch.size > available:
        text = (
            f"training.batch.size: {batch.size:,} {batch.unit}, but the training data has "
            f"{available:,}; an epoch is one update"
        )
        warnings.warn(text, NmtWarning, stacklevel=2)


def _choose_best(
    config: Config, folder: Path, device: torch.device, world: World, progress: Progress
) -> Iterator[Event]:
    """After a finished training: average the kept checkpoints if the configuration says so, and
    choose among all.

    The journal says whether that is done already.
    """
    training = config.training
    if not world.is_first or progress.finished is None:
        return
    last_event = "choice" if training.final_pairs and training.metric != "loss" else "average"
    events = Journal(folder / JOURNAL_FILE).read()
    if any(event.get("event") == last_event and event["step"] >= progress.step for event in events):
        return
    if (
        training.average != "none"
        and len(open_checkpoints(folder, config).kept(training.average)) > 1
    ):
        line: str | None = average.average_kept(folder, training.average, device)
    else:
        line = choose_checkpoint(folder, config, device)
    if line is not None:
        yield MessageEvent(line)


def _settle_precision(config: Config, folder: Path, device: torch.device, world: World) -> Config:
    """Replace `training.precision: auto` by the precision of the run to resume, or else by the
    faster one of the device.

    Raises:
        ConfigError: bfloat16 is slow here.
    """
    precision = config.training.precision
    if precision == "auto" and world.is_first:
        precision = (
            load_run_config(folder).training.precision
            if holds_run(folder)
            else choose_precision(precision, device)
        )
    precision = choose_precision(world.broadcast(precision), device)
    return config.model_copy(
        update={"training": config.training.model_copy(update={"precision": precision})}
    )


def _complete(
    config: Config, folder: Path, device: torch.device, world: World, progress: Progress
) -> Iterator[Event]:
    """What a kill after the last step may have left undone: the curves, and the choice among the
    checkpoints.
    """
    if world.is_first and (problem := draw_curves(folder, config)) is not None:
        yield MessageEvent(problem, is_warning=True)
    yield from _choose_best(config, folder, device, world, progress)


def _open_folder(folder: Path, config: Config) -> tuple[Path | None, InitialWeights | None]:
    """Make the run folder, or check that its training can be resumed. All checks come before the
    first change.

    Returns:
        the checkpoint to resume from, or the initial weights where there is no checkpoint.
    """
    initial_weights: InitialWeights | None
    if not holds_run(folder):
        initial_weights = InitialWeights.load(config)
        create_run(folder, config, config.prepared_folder)
        return None, initial_weights
    if holds_weights_only(folder):
        start = f"--set training.start_from={folder} -o ..."
        raise ConfigError(
            f"{folder}: is a copy without the state of training, which cannot resume; start "
            "from "
            f"it with `{start}`"
        )
    resumable = (
        RESUMABLE_KEYS
        if config.training.learning_rate.lasts_for_training
        else (*RESUMABLE_KEYS, *LIMIT_KEYS)
    )
    changes = {
        key: values
        for key, values in differences(load_run_config(folder), config).items()
        if not key.startswith(resumable) and not is_location_key(key)
    }
    if changes:
        listing = "\n  ".join(f"{key}: was {old}, is {new}" for key, (old, new) in changes.items())
        raise ConfigError(
            f"{folder}: cannot resume, the configuration differs; train elsewhere with -o, or "
            f"change it back\n  {listing}"
        )
    check_same_data(folder, config.prepared_folder)
    checkpoints = open_checkpoints(folder, config)
    checkpoint = checkpoints.find("last")
    initial_weights = None if checkpoint else InitialWeights.load(config)
    write_run_config(folder, config)
    checkpoints.delete_unreferenced()
    return checkpoint, initial_weights


def _build(config: Config, device: torch.device) -> tuple[Seq2Seq, Optimizer, AveragedModel | None]:
    """The model with weights drawn from the seed, its optimizer, and its moving average if the
    configuration has one.
    """
    torch.manual_seed(config.seed)
    model, averaged = build_model(config.prepared_folder, config).to(device), None
    if config.training.moving_average:
        averaged = AveragedModel(model, multi_avg_fn=averaging_function(config.training))
    return model, build_optimizer(model, config.training), averaged
