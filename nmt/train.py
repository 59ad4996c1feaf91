"""`nmt train`: prepared data in, a run folder out."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock, Timeout
from torch.optim import Optimizer

from nmt import runs
from nmt.config import Config, DeviceName, differences
from nmt.decoding.search import SearchOptions
from nmt.decoding.translator import Translator
from nmt.errors import ConfigError, DataError, TrainingError
from nmt.model.device import pick_device
from nmt.model.seq2seq import Seq2Seq
from nmt.report.scores import score
from nmt.text.batching import plan_batches, read_batches
from nmt.text.corpus import Corpus, config_differences, load_manifest, read_lines
from nmt.text.tokenizers import Side
from nmt.text.vectors import Vectors, load_vectors
from nmt.training.checkpoint import Checkpoints, Progress, load_optimizer, load_weights, read_progress
from nmt.training.journal import Journal
from nmt.training.loop import Hooks, Update, build_optimizer, fit
from nmt.training.objective import batch_loss
from nmt.training.screen import Screen, Validation

# What may differ when a training goes on: none of it changes an update (the data itself is compared by its content).
RESUMABLE = (
    "training.epochs",
    "training.max_steps",
    "training.max_minutes",
    "training.patience",
    "training.log_every",
    "training.threads",
    "data.prepared",
    "data.workers",
    "decoding.",
)


def run(
    config: Config, folder: Path | None = None, *, resume: bool = False, device: DeviceName = "auto", quiet: bool = False
) -> Progress:
    """Train into `folder` (default `runs/<name>`); `resume` goes on from its last checkpoint, or starts where there is none.

    Raises:
        ConfigError: the folder holds a run and `resume` is off, or the run to resume has another configuration.
        DataError: the data is not prepared, or was prepared with another configuration; or word vectors cannot be used.
        TrainingError: interrupted (a checkpoint is written), or the loss is not finite.
    """
    folder = folder or config.run_folder
    _check_prepared(config)
    place = pick_device(device)
    corpus = Corpus.load(config.prepared_folder, "train")
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    with _sole_training(folder):
        checkpoint, vectors = _open_folder(folder, config, resume)
        model = _build_model(config, folder).to(place)
        optimizer = build_optimizer(model, config)
        progress = Progress()
        if checkpoint is not None:
            progress = read_progress(checkpoint)
            load_weights(checkpoint, model)
            load_optimizer(checkpoint, model, optimizer)
        screen = Screen(folder, config, quiet)
        if checkpoint is not None and not _may_go_on(progress, config):
            screen.say(f"{folder}: trained already, to step {progress.step} ({progress.finished or 'nothing is left to do'})")
            return progress
        progress = replace(progress, finished=None)
        screen.begin(model, place, len(corpus), progress)
        if checkpoint is None:
            _begin_with(vectors, model, Journal(folder / runs.JOURNAL), screen)
        with stop_requested() as stopping, screen:
            hooks = _hooks(model, optimizer, config, folder, progress.step, screen, stopping)
            progress = fit(model, optimizer, corpus, config, progress, hooks)
    if progress.finished is None:
        raise TrainingError(
            f"interrupted; step {progress.step} is saved in {folder}: the same command with --resume goes on from there"
        )
    screen.end(progress)
    return progress


def describe(config: Config, folder: Path | None = None) -> str:
    """What a training would do, found out without a step of it: size of the model by part, word vectors, batches of an epoch.

    Raises: as `run`.
    """
    prepared = config.prepared_folder
    _check_prepared(config)
    corpus = Corpus.load(prepared, "train")
    vocabularies = runs.load_vocabularies(prepared)
    model = Seq2Seq(config.model, len(vocabularies[0]), len(vocabularies[1]))
    plan = plan_batches(corpus.src.lengths, corpus.tgt.lengths, config.training.batch, seed=config.seed, epoch=0)
    counts = {name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()}
    lines = [f"{name:<16}{count:>12,} parameters" for name, count in counts.items() if count]
    total = sum(p.numel() for p in model.parameters())
    lines.append(f"{'in all':<16}{total:>12,} parameters" + (" (shared ones counted once)" if total < sum(counts.values()) else ""))
    lines += [_coverage(side, vectors) for side, vectors in _load_vectors(config).items()]
    lines.append(f"{len(corpus):,} pairs, {len(plan):,} batches an epoch; the run would be {folder or config.run_folder}")
    return "\n".join(lines)


class Validator:
    """Scores the model on the dev set: its loss over all pairs, greedy BLEU over the first `training.validation_pairs`."""

    def __init__(self, model: Seq2Seq, config: Config, folder: Path) -> None:
        prepared, n_pairs = config.prepared_folder, config.training.validation_pairs
        self.model, self.config = model, config
        self.corpus = Corpus.load(prepared, "dev")
        self.sources = read_lines(prepared, "dev", "src")[:n_pairs]
        self.references = read_lines(prepared, "dev", "tgt")[:n_pairs]
        self.translator = Translator(
            model,
            tokenizers=runs.load_tokenizers(folder, config),
            vocabularies=runs.load_vocabularies(folder),
            options=SearchOptions(beam=1, max_length_ratio=config.decoding.max_length_ratio),
            batch_size=config.decoding.batch,
        )

    def validate(self) -> Validation:
        """The model must be in evaluation mode."""
        outputs = [translation.text for translation in self.translator.translate(self.sources)]
        (bleu,) = score(outputs, [self.references], ["BLEU"], lowercase=self.config.tokenizer.lowercase)
        return Validation(self._loss(), bleu.value)

    @torch.inference_mode()
    def _loss(self) -> float:
        batch_config, seed = self.config.training.batch, self.config.seed
        plan = plan_batches(self.corpus.src.lengths, self.corpus.tgt.lengths, batch_config, seed=seed, epoch=0)
        losses = [batch_loss(self.model, batch.to(self.model.device)) for batch in read_batches(self.corpus, plan)]
        return sum(loss.likelihood.item() for loss in losses) / sum(loss.n_tokens for loss in losses)


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
    model: Seq2Seq, optimizer: Optimizer, config: Config, folder: Path, step: int, screen: Screen, stop: Callable[[], bool]
) -> Hooks:
    """Journal, screen, validation and checkpoints, as the loop calls them."""
    journal, checkpoints, validator = Journal(folder / runs.JOURNAL), Checkpoints(folder), Validator(model, config, folder)
    journal.rewind(step)

    def log(update: Update) -> None:
        if summary := screen.update(update):
            journal.write("train", update.step, **summary)

    def validate(step: int) -> float:
        begun = time.monotonic()
        result = validator.validate()
        seconds = time.monotonic() - begun
        journal.write("validation", step, loss=result.loss, perplexity=result.perplexity, bleu=result.bleu, seconds=seconds)
        screen.validation(step, result, seconds)
        return result.bleu if config.training.metric == "bleu" else -result.loss

    def save(progress: Progress, best: bool) -> None:
        checkpoints.save(progress, model, optimizer, best=best)

    return Hooks(log, validate, save, stop)


def _check_prepared(config: Config) -> None:
    """Raises: DataError if the prepared folder is missing, or was made with other settings than these."""
    folder = config.prepared_folder
    found = list(config_differences(load_manifest(folder), config))
    if found:
        raise DataError(f"{folder}: prepared with another configuration ({'; '.join(found)}); run `nmt prepare` with --overwrite")


@contextmanager
def _sole_training(folder: Path) -> Iterator[None]:
    """Raises: TrainingError if another process trains in `folder`."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder.parent / f".{folder.name}.lock", blocking=False):
            yield
    except Timeout:
        raise TrainingError(f"{folder}: another training is running in it") from None


def _open_folder(folder: Path, config: Config, resume: bool) -> tuple[Path | None, dict[Side, Vectors]]:
    """Make the run folder, or find the checkpoint to go on from; where there is none, also the word vectors to begin with.

    Nothing is made or changed before all of it is found good.
    """
    if not runs.holds_run(folder):
        vectors = _load_vectors(config)
        runs.create(folder, config, config.prepared_folder)
        return None, vectors
    if not resume:
        raise ConfigError(f"{folder}: holds a run already; go on with --resume, or train elsewhere with -o")
    changed = {
        key: values for key, values in differences(runs.load_config(folder), config).items() if not key.startswith(RESUMABLE)
    }
    if changed:
        listing = "\n  ".join(f"{key}: was {old}, is {new}" for key, (old, new) in changed.items())
        raise ConfigError(
            f"{folder}: cannot go on, the configuration differs; train elsewhere with -o, or set it back\n  {listing}"
        )
    runs.check_data(folder, config.prepared_folder)
    checkpoints = Checkpoints(folder)
    checkpoint = checkpoints.find("last")
    vectors = {} if checkpoint else _load_vectors(config)
    runs.write_config(folder, config)
    checkpoints.delete_unnamed()
    return checkpoint, vectors


def _load_vectors(config: Config) -> dict[Side, Vectors]:
    """The word vectors that the configuration names. Raises: DataError."""
    paths: dict[Side, Path | None] = {"src": config.model.src_vectors, "tgt": config.model.tgt_vectors}
    vocabularies = dict(zip(paths, runs.load_vocabularies(config.prepared_folder), strict=True))
    loaded: dict[Side, Vectors] = {}
    for side, path in paths.items():
        if path is not None:
            try:
                loaded[side] = load_vectors(path, vocabularies[side], config.model.embedding_size)
            except DataError as error:
                raise DataError(f"model.{side}_vectors: {error}") from None
    return loaded


def _begin_with(loaded: dict[Side, Vectors], model: Seq2Seq, journal: Journal, screen: Screen) -> None:
    """Set the rows of the embeddings from word vectors, on the screen and as the first lines of the journal."""
    journal.rewind(-1)  # an earlier training may have come to its end before its first checkpoint
    for side, vectors in loaded.items():
        set_rows(model.src_embedding.weight if side == "src" else model.tgt_embedding.weight, vectors)
        coverage = {"found": len(vectors.ids), "tokens": vectors.n_tokens, "running_share": vectors.running_share}
        journal.write("vectors", 0, side=side, path=str(vectors.path), **coverage)
        screen.say(_coverage(side, vectors))


@torch.no_grad()
def set_rows(weight: torch.Tensor, vectors: Vectors) -> None:
    """Put word vectors into the rows of `weight` [V, E] that are theirs.

    All are multiplied by one number, so that their standard deviation becomes that of the weights as they were. Directions and
    relative lengths stay; small first embeddings, as published vectors would often be, keep attention from forming for long.
    """
    scale = weight.std(correction=0).item() / float(vectors.matrix.std(dtype=np.float64))
    rows = torch.from_numpy(vectors.matrix.astype(np.float64) * scale)
    weight[torch.from_numpy(vectors.ids).to(weight.device)] = rows.to(weight)


def _coverage(side: Side, vectors: Vectors) -> str:
    return f"{side} vectors: {vectors.coverage}"


def _build_model(config: Config, folder: Path) -> Seq2Seq:
    """The model with its first weights, which follow from the seed."""
    vocabularies = runs.load_vocabularies(folder)
    torch.manual_seed(config.seed)
    return Seq2Seq(config.model, len(vocabularies[0]), len(vocabularies[1]))


def _may_go_on(progress: Progress, config: Config) -> bool:
    """Whether a finished training has been given more epochs, steps, minutes or patience."""
    training = config.training
    return (
        progress.epoch < training.epochs
        and (training.max_steps is None or progress.step < training.max_steps)
        and (training.max_minutes is None or progress.seconds < 60 * training.max_minutes)
        and progress.stale < training.patience
    )
