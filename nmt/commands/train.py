"""`nmt train`: prepared data in, a run folder out."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from nmt.commands import average
from nmt.config.load import differences
from nmt.config.names import DeviceName
from nmt.config.schema import Config
from nmt.data.corpus import Corpus
from nmt.data.manifest import is_location_key
from nmt.errors import ConfigError, DataError, TrainingError
from nmt.model.device import pick_device
from nmt.model.seq2seq import Seq2Seq
from nmt.report import curves
from nmt.run.checkpoint import Checkpoints, load_optimizer, load_weights, read_progress
from nmt.run.folder import (
    CURVES_FILE,
    JOURNAL_FILE,
    TENSORBOARD_FOLDER,
    build_model,
    check_prepared,
    check_same_data,
    create_run,
    holds_run,
    load_run_config,
    open_checkpoints,
    write_run_config,
)
from nmt.run.journal import Journal
from nmt.run.progress import Interval, Progress
from nmt.text.tokenizers import Side
from nmt.training import batch_size
from nmt.training.batch_size import BatchSizeResult
from nmt.training.console import Console
from nmt.training.distributed import World, init_distributed, local_gpu
from nmt.training.fine_tuning import Origin, load_origin, start_with
from nmt.training.loop import Hooks, Update, fit
from nmt.training.optimizers import build_optimizer
from nmt.training.tensorboard import TensorBoardWriter
from nmt.training.validation import METRICS, Validator
from nmt.training.vector_files import Vectors
from nmt.training.word_vectors import coverage, load_vectors_of, set_rows

# What may differ when a training goes on: none of it changes an update.
RESUMABLE = (
    "training.epochs",
    "training.max_steps",
    "training.max_minutes",
    "training.patience",
    "training.log_every",
    "training.threads",
    "training.keep_best",
    "training.keep_last",
    "training.average",
    "training.max_skipped",
    "decoding.",
)


def run(
    config: Config, folder: Path | None = None, *, resume: bool = False, device: DeviceName = "auto", quiet: bool = False
) -> Progress:
    """Train into `folder` (default `runs/<name>`); `resume` goes on from its last checkpoint, or starts where there is none.

    Raises:
        ConfigError: the folder holds a run and `resume` is off, or the run to resume has another configuration.
        DataError: the data is not prepared, or was prepared with another configuration; or word vectors cannot be used.
        CheckpointError: the run to start from, or to go on with, cannot be read.
        TrainingError: interrupted (a checkpoint is written), too many losses were not finite, or another process has failed.
    """
    torch_device = local_gpu(pick_device(device))
    if config.training.precision == "bfloat16" and torch_device.type != "cuda":
        raise ConfigError(f"training.precision: bfloat16 needs a GPU, and this trains on {torch_device.type}; set float32")
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    with init_distributed(torch_device) as world:
        return _run(config, folder or config.run_folder, torch_device, world, resume=resume, quiet=quiet)


def _run(config: Config, folder: Path, device: torch.device, world: World, *, resume: bool, quiet: bool) -> Progress:
    check_prepared(config)
    corpus = Corpus.load(config.prepared_folder, "train")
    with _sole_training(folder) if world.is_first else nullcontext():
        if world.is_first and holds_run(folder) and not resume:
            raise ConfigError(f"{folder}: holds a run already; go on with --resume, or train elsewhere with -o")
        config, found = _settle_batches(config, folder, corpus, device, world)
        checkpoint, beginning = _open_folder(folder, config) if world.is_first else (None, None)
        checkpoint = world.broadcast(checkpoint)
        model = _build_model(config).to(device)
        averaged = _build_average(model, config)
        optimizer = build_optimizer(model, config.training)
        progress, console = Progress(), Console(folder, config, quiet or not world.is_first)
        if checkpoint is not None:
            progress = read_progress(checkpoint)
            _load(checkpoint, model, optimizer, averaged)
        if checkpoint is not None and not _may_go_on(progress, config):
            console.info(f"{folder}: trained already, to step {progress.step} ({progress.finished or 'nothing is left to do'})")
            return progress
        progress = replace(progress, finished=None)
        console.begin(model, device, len(corpus), progress, world.size)
        if found is not None:
            console.info(str(found))
        if beginning is not None:
            _begin_with(beginning, model, Journal(folder / JOURNAL_FILE), console)
        world.copy_weights(model)
        with stop_requested() as stopping, console, ExitStack() as at_end:
            hooks = _silent(stopping)
            if world.is_first:
                at_end.callback(_draw_curves, folder, config, console)
                tensorboard = at_end.enter_context(TensorBoardWriter(folder / TENSORBOARD_FOLDER, progress.step, console.warn))
                saving = _Saving(open_checkpoints(folder, config), model, optimizer, averaged)
                hooks = _hooks(saving.shown, config, folder, progress.step, (console, tensorboard), saving.save, stopping)
            progress = fit(model, optimizer, corpus, config, progress, hooks, averaged=averaged, world=world)
    if progress.finished is None:
        raise TrainingError(
            f"interrupted; step {progress.step} is saved in {folder}: the same command with --resume goes on from there"
        )
    which = config.training.average
    if which != "none" and world.is_first and len(open_checkpoints(folder, config).kept(which)) > 1:
        console.info(average.run(folder, kept=which, device=device))
    console.end(progress)
    return progress


@contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Within, Ctrl-C and SIGTERM only ask training to stop after the current update; a second Ctrl-C interrupts at once."""
    asked = False

    def ask(number: int, _: object) -> None:
        nonlocal asked
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked = True
        os.write(2, b"\nstopping after this step, and saving; Ctrl-C again stops at once, without saving\n")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _hooks(
    shown: Seq2Seq,
    config: Config,
    folder: Path,
    step: int,
    watching: tuple[Console, TensorBoardWriter],
    save: Callable[[Progress, float | None], None],
    stop: Callable[[], bool],
) -> Hooks:
    """Journal, console, TensorBoard, validation of the model that is `shown`, and checkpoints, as the loop calls them."""
    console, tensorboard = watching
    journal, validator = Journal(folder / JOURNAL_FILE), Validator(shown, config, folder)
    journal.rewind(step)

    def log(update: Update, interval: Interval) -> None:
        if summary := console.update(update, interval):
            journal.write("train", update.step, **summary)
            tensorboard.update(update.step, summary)

    def warn(step: int, line: str) -> None:
        console.warn(line)
        journal.write("warning", step, text=line)

    def validate(step: int) -> float:
        with console.paused():
            begun = time.monotonic()
            result = validator.validate()
            seconds = time.monotonic() - begun
            samples = [asdict(sample) for sample in result.samples]
            journal.write("validation", step, **result.figures, seconds=seconds, samples=samples)
            console.validation(step, result, seconds)
            tensorboard.validation(step, result)
            _draw_curves(folder, config, console)
        return METRICS[config.training.metric](result)

    return Hooks(log, warn, validate, save, stop)


@dataclass(frozen=True)
class _Saving:
    """What goes into a checkpoint."""

    checkpoints: Checkpoints
    model: Seq2Seq
    optimizer: Optimizer
    averaged: AveragedModel | None

    @property
    def shown(self) -> Seq2Seq:
        """What is validated, and translated with."""
        if self.averaged is None:
            return self.model
        assert isinstance(self.averaged.module, Seq2Seq)
        return self.averaged.module

    def save(self, progress: Progress, score: float | None) -> None:
        """A checkpoint, with the score of its validation if there was one."""
        averaged = None if self.averaged is None else self.shown
        self.checkpoints.save(progress, self.model, self.optimizer, score=score, averaged=averaged)


def _silent(stop: Callable[[], bool]) -> Hooks:
    """For the processes that neither write nor decide."""
    return Hooks(lambda *_: None, lambda *_: None, lambda _: 0.0, lambda *_: None, stop)


def _load(checkpoint: Path, model: Seq2Seq, optimizer: Optimizer, averaged: AveragedModel | None) -> None:
    """All that a training goes on from."""
    load_weights(checkpoint, model, raw=True)
    load_optimizer(checkpoint, model, optimizer)
    if averaged is not None:
        load_weights(checkpoint, averaged.module)
        averaged.n_averaged.fill_(1)  # any number but 0, which would begin anew


def _draw_curves(folder: Path, config: Config, console: Console) -> None:
    """What the journal says, as a picture in the run folder; without it, training goes on."""
    try:
        events = Journal(folder / JOURNAL_FILE).read()
        curves.draw(events, folder / CURVES_FILE, title=folder.resolve().name, metric=config.training.metric)
    except (DataError, OSError) as error:
        console.warn(str(error))


@contextmanager
def _sole_training(folder: Path) -> Iterator[None]:
    """Raises: TrainingError if another process trains in `folder`."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder.parent / f".{folder.name}.lock", blocking=False):
            yield
    except Timeout:
        raise TrainingError(f"{folder}: another training is running in it") from None


@dataclass(frozen=True)
class _Beginning:
    """What a training from scratch does not draw at random: word vectors, and the weights of another run."""

    vectors: dict[Side, Vectors]
    origin: Origin | None


def _settle_batches(
    config: Config, folder: Path, corpus: Corpus, device: torch.device, world: World
) -> tuple[Config, BatchSizeResult | None]:
    """With a number for `training.batch.size: auto`: that of the run in `folder`, or what is found to fit, in all processes.

    Raises:
        ConfigError: it must be found, and there is no GPU.
        TrainingError: not even the longest sentence fits.
    """
    if config.training.batch.size != "auto":
        return config, None
    known = load_run_config(folder).training.batch.size if world.is_first and holds_run(folder) else "auto"
    known = world.broadcast(known)
    if known != "auto":
        return batch_size.with_size(config, known), None
    batch_size.check_device(device)
    model = _build_model(config).to(device)
    averaged = _build_average(model, config)  # for the memory that it takes
    found = batch_size.measure(model, build_optimizer(model, config.training), corpus, config)
    del averaged
    found = replace(found, size=world.min_over_ranks(found.size))
    return batch_size.with_size(config, found.size), found


def _open_folder(folder: Path, config: Config) -> tuple[Path | None, _Beginning | None]:
    """Make the run folder, or find the checkpoint to go on from; where there is none, what to begin with.

    Nothing is made or changed before all of it is found good.
    """
    if not holds_run(folder):
        first = _Beginning(load_vectors_of(config), load_origin(config))
        create_run(folder, config, config.prepared_folder)
        return None, first
    changed = {
        key: values
        for key, values in differences(load_run_config(folder), config).items()
        if not key.startswith(RESUMABLE) and not is_location_key(key)
    }
    if changed:
        listing = "\n  ".join(f"{key}: was {old}, is {new}" for key, (old, new) in changed.items())
        raise ConfigError(
            f"{folder}: cannot go on, the configuration differs; train elsewhere with -o, or set it back\n  {listing}"
        )
    check_same_data(folder, config.prepared_folder)
    checkpoints = open_checkpoints(folder, config)
    checkpoint = checkpoints.find("last")
    beginning = None if checkpoint else _Beginning(load_vectors_of(config), load_origin(config))
    write_run_config(folder, config)
    checkpoints.delete_unreferenced()
    return checkpoint, beginning


def _begin_with(beginning: _Beginning, model: Seq2Seq, journal: Journal, console: Console) -> None:
    """Set what is not left to chance, on the screen and as the first lines of the journal."""
    journal.rewind(-1)  # an earlier training may have come to its end before its first checkpoint
    if beginning.origin is not None:
        reused = start_with(beginning.origin, model)
        journal.write(
            "start",
            0,
            run=str(reused.origin.run),
            checkpoint=reused.origin.checkpoint,
            reused=reused.count,
            parameters=reused.total,
            new=reused.new,
        )
        console.info(str(reused))
    for side, vectors in beginning.vectors.items():
        set_rows(model.src_embedding.weight if side == "src" else model.tgt_embedding.weight, vectors)
        figures = {"found": len(vectors.ids), "tokens": vectors.n_tokens, "running_share": vectors.running_share}
        journal.write("vectors", 0, side=side, path=str(vectors.path), **figures)
        console.info(coverage(side, vectors))


def _build_average(model: Seq2Seq, config: Config) -> AveragedModel | None:
    """The exponential moving average of the weights, if one is wanted; its first value is that after the first update."""
    if not config.training.moving_average:
        return None
    return AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(config.training.moving_average))


def _build_model(config: Config) -> Seq2Seq:
    """The model with its first weights, which follow from the seed."""
    torch.manual_seed(config.seed)
    return build_model(config.prepared_folder, config)


def _may_go_on(progress: Progress, config: Config) -> bool:
    """Whether a finished training has been given more epochs, steps, minutes or patience."""
    training = config.training
    return (
        progress.epoch < training.epochs
        and (training.max_steps is None or progress.step < training.max_steps)
        and (training.max_minutes is None or progress.seconds < 60 * training.max_minutes)
        and progress.stale < training.patience
    )
