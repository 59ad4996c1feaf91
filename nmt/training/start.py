"""How a training starts: all checks, the first weights, the run folder.

Weights that are not random come from another run (fine-tuning), from a lexicon, or from an extra.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from nmt.config.load import differences
from nmt.config.schema import Config
from nmt.data.corpus import Corpus, load_training_corpus
from nmt.data.manifest import is_location_key
from nmt.device import choose_precision
from nmt.errors import CheckpointError, ConfigError, DataError, NmtWarning
from nmt.model.seq2seq import Seq2Seq
from nmt.plugins import hooks
from nmt.run import provenance
from nmt.run.checkpoint import MODEL_FILE, load_training, read_tensors
from nmt.run.folder import (
    JOURNAL_FILE,
    build_model,
    check_prepared,
    check_same_data,
    create_run,
    find_checkpoint,
    find_run,
    holds_run,
    holds_weights_only,
    load_run_config,
    load_vocabularies,
    open_checkpoints,
    write_run_config,
)
from nmt.run.journal import Journal
from nmt.training.distributed import World
from nmt.training.learned_lexicon import LearnedLexicon
from nmt.training.loop import Training

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
TIES = ("none", "target", "all")  # values of model.tie_embeddings, each with fewer matrices


def start_training(
    config: Config, folder: Path, device: torch.device, world: World, *, resume: bool
) -> Training:
    """The training in `folder`, new or as its last checkpoint left it; `progress.finished` is set
    where nothing is left to do.

    All checks come before the first change. Only the first process reads and writes the folder.

    Raises:
        ConfigError: the folder contains a run and `resume` is off, or the run to resume has another
            configuration.
        DataError: the data is not prepared, or was prepared with another configuration.
        CheckpointError: the run to start from or to resume cannot be read.
    """
    check_prepared(config)
    config = _settle_precision(config, folder, device, world)
    corpus = load_training_corpus(config)
    _check_batch_size(config, corpus)
    checkpoint, weights = None, None
    is_new = world.is_first and not holds_run(folder)
    if world.is_first and not is_new:
        checkpoint = _find_last(folder, config, resume=resume)
    if world.is_first and checkpoint is None:
        weights = FirstWeights.load(config)
    torch.manual_seed(config.seed)
    model = build_model(config.prepared_folder, config).to(device)
    training, lines = Training.of(model, corpus, config, world), dict[str, Mapping[str, Any]]()
    if weights is not None:
        training.notes, lines = weights.fill(model, config)
    if is_new:
        create_run(folder, config, config.prepared_folder)
    elif world.is_first:
        write_run_config(folder, config)
        open_checkpoints(folder, config).delete_unreferenced()
    checkpoint = world.broadcast(checkpoint)
    if checkpoint is not None:
        progress = load_training(checkpoint, model, training.optimizer, training.averaged)
        finished = progress.reason_to_finish(config.training)
        training.progress = replace(progress, finished=finished)
    if training.progress.finished is None:
        if world.is_first:
            _write_start(folder, training, lines)
        world.copy_weights(model)
    return training


def _settle_precision(config: Config, folder: Path, device: torch.device, world: World) -> Config:
    """Replace `training.precision: auto` by the precision of the run to resume, or else by the
    faster one of the device.
    """
    precision = config.training.precision
    if precision == "auto" and world.is_first:
        is_new = not holds_run(folder)
        earlier = precision if is_new else load_run_config(folder).training.precision
        precision = choose_precision(earlier, device)
    precision = choose_precision(world.broadcast(precision), device)
    training = config.training.model_copy(update={"precision": precision})
    return config.model_copy(update={"training": training})


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


def _find_last(folder: Path, config: Config, *, resume: bool) -> Path | None:
    """The checkpoint to resume from; None if the run has none yet."""
    if not resume:
        raise ConfigError(
            f"{folder}: contains a run already; continue it with --resume, or train elsewhere "
            "with -o"
        )
    if holds_weights_only(folder):
        raise ConfigError(
            f"{folder}: is a copy without the state of training, which cannot resume; start from "
            f"it with `--set training.start_from={folder} -o ...`"
        )
    resumable: tuple[str, ...] = RESUMABLE_KEYS
    if not config.training.learning_rate.lasts_for_training:
        resumable = (*RESUMABLE_KEYS, *LIMIT_KEYS)
    changes = [
        f"{key}: was {old}, is {new}"
        for key, (old, new) in differences(load_run_config(folder), config).items()
        if not key.startswith(resumable) and not is_location_key(key)
    ]
    if changes:
        listing = "\n  ".join(changes)
        raise ConfigError(
            f"{folder}: cannot resume, the configuration differs; train elsewhere with -o, or "
            f"change it back\n  {listing}"
        )
    check_same_data(folder, config.prepared_folder)
    return open_checkpoints(folder, config).find("last")


def _write_start(folder: Path, training: Training, lines: Mapping[str, Mapping[str, Any]]) -> None:
    """Write into the run where its first weights come from, and what computes the others."""
    progress, journal = training.progress, Journal(folder / JOURNAL_FILE)
    if progress.step == 0:
        journal.rewind(-1)  # a crash before the first checkpoint may have left lines
        for event, values in lines.items():
            journal.write(event, 0, **values)
    provenance.record_training(folder, progress.step, training.device, training.world.size)


@dataclass(frozen=True)
class ParentWeights:
    """The weights of the run that `training.start_from` names.

    Attributes:
        run: its folder. checkpoint: the name of its best checkpoint.
        tensors: by parameter name; tied parameters appear once.
    """

    run: Path
    checkpoint: str
    tensors: dict[str, torch.Tensor]

    @classmethod
    def load(cls, run: Path, config: Config) -> "ParentWeights":
        """Those of a run whose vocabularies are those of the prepared data.

        Raises:
            CheckpointError: it is no run, or has no readable checkpoint.
            DataError: the vocabularies differ.
            ConfigError: the model ties embeddings that the run does not tie.
        """
        checkpoint = find_checkpoint(find_run(run))
        if load_vocabularies(run) != load_vocabularies(config.prepared_folder):
            raise DataError(
                f"training.start_from: the vocabularies of {run} differ from those of "
                f"{config.prepared_folder}; prepare it with vocabulary.like: {run}"
            )
        parent, model = load_run_config(run).model, config.model
        has_more = TIES.index(parent.tie_embeddings) < TIES.index(model.tie_embeddings)
        if has_more and parent.embedding_size == model.embedding_size:
            raise ConfigError(
                f"training.start_from: {run} was trained with model.tie_embeddings "
                f"{parent.tie_embeddings}, so it has several matrices where "
                f"{model.tie_embeddings} has one; set model.tie_embeddings to "
                f"{parent.tie_embeddings}"
            )
        return cls(run, checkpoint.name, read_tensors(checkpoint / MODEL_FILE))

    @torch.no_grad()
    def copy_into(self, model: Seq2Seq) -> tuple[int, list[str]]:
        """Copy the tensors whose name and shape a parameter of the model has.

        Returns:
            how many numbers were copied, and the names of the parameters that keep their random
            values.
        """
        reused: dict[int, int] = {}
        for name, parameter in model.named_parameters(remove_duplicate=False):
            tensor = self.tensors.get(name)
            if tensor is not None and tensor.shape == parameter.shape:
                parameter.copy_(tensor)
                reused[id(parameter)] = parameter.numel()
        if not reused:
            raise CheckpointError(
                f"training.start_from: no weights of {self.run} have the shapes of this model"
            )
        new = [name for name, each in model.named_parameters() if id(each) not in reused]
        return sum(reused.values()), new


@dataclass(frozen=True)
class FirstWeights:
    """The weights that are there before a model is built.

    Attributes:
        parent: None without `training.start_from`.
        lexicon: None without `model.lexical_bias`.
    """

    parent: ParentWeights | None
    lexicon: LearnedLexicon | None

    @classmethod
    def load(cls, config: Config) -> "FirstWeights":
        """Those that the configuration names."""
        run = config.training.start_from
        parent = None if run is None else ParentWeights.load(run, config)
        return cls(parent, LearnedLexicon.learn(config) if config.model.lexical_bias else None)

    def fill(
        self, model: Seq2Seq, config: Config
    ) -> tuple[list[str], dict[str, Mapping[str, Any]]]:
        """Copy them into the model; then those of extras.

        Returns:
            what was copied, as lines for the user, and as events of the journal.
        """
        notes, lines = list[str](), dict[str, Mapping[str, Any]]()
        if (parent := self.parent) is not None:
            reused, new = parent.copy_into(model)
            total = sum(parameter.numel() for parameter in model.parameters())
            lines["start"] = {
                "run": str(parent.run),
                "checkpoint": parent.checkpoint,
                "reused": reused,
                "parameters": total,
                "new": new,
            }
            counts = f"{reused:,} of {total:,} parameters ({100 * reused / total:.1f} %)"
            new_names = f"; new: {', '.join(new)}" if new else ""
            notes.append(f"starts from {parent.run}, {parent.checkpoint}: {counts}{new_names}")
        for fill in hooks("start"):
            notes += fill(model, config)
        if self.lexicon is not None and model.lexical_bias is not None:
            sizes = lines["lexicon"] = self.lexicon.fill(model.lexical_bias)
            words = f", and {sizes['words']:,} whole words" if "words" in sizes else ""
            notes.append(
                f"lexicon: {sizes['translations']:,} translations of {sizes['tokens']:,} source "
                f"tokens{words}"
            )
        return notes, lines
