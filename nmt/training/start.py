"""How a training starts: all checks, the first weights, the run folder.

Weights that are not random come from another run (fine-tuning) or from a lexicon.
"""

import json
import unicodedata
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.config.load import differences
from nmt.config.schema import Config
from nmt.data.manifest import is_location_key
from nmt.data.training_corpus import load_training_corpus, notes_on
from nmt.errors import ConfigError, DataError, NmtWarning
from nmt.model.seq2seq import Seq2Seq
from nmt.run import provenance
from nmt.run.folder import (
    JOURNAL_FILE,
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
from nmt.run.journal import rewind, write_event
from nmt.run.weights import build_model, load_model, load_training
from nmt.text.tokenizers import JOINER, SPACE
from nmt.text.vocabulary import UNK, Vocabulary
from nmt.training.lexicon import LearnedLexicon
from nmt.training.loop import Training, World
from nmt.training.optimization import lasts_for_training
from nmt.training.precision import check_precision, choose_precision, with_precision

# Keys that may change when a training is resumed: none of them affects an update, unless the
# learning rate follows the limits.
LIMIT_KEYS = ("training.epochs", "training.max_steps", "training.max_minutes")
FOLLOWED = "; the learning rate has followed it: for more, set training.start_from in a new run"
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
# Sides of the parts of a model whose weights have a row for each token.
SIDE_OF_PART = {"src_embedding": 0, "tgt_embedding": 1, "output": 1}
# The probability of all new tokens together is at most this share of what they are made of, so that
# the model translates as before.
NEW_SHARE = 0.01
TIES = ("none", "target", "all")  # values of model.tie_embeddings, each with fewer matrices


class Origin(NamedTuple):
    """Where first weights come from.

    Attributes:
        text: a line for the user.
        event: its name in the journal. values: those of the event.
    """

    text: str
    event: str
    values: dict[str, Any]


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
    config = _with_recorded_precision(config, folder, world)
    check_precision(config, device)
    corpus = load_training_corpus(config)
    checkpoint = _find_last(folder, config, resume) if world.is_first else None
    is_new = world.is_first and checkpoint is None
    # Learned before there is a model: both need memory.
    lexicon = LearnedLexicon.learn(config) if is_new and config.model.lexical_bias else None
    torch.manual_seed(config.seed)
    model = build_model(config.prepared_folder, config)
    origins = first_weights(model, config, lexicon) if is_new else []
    # To the device with the lexicon and the weights of a run, which come from the CPU.
    training = choose_precision(Training.of(model.to(device), corpus, config, world))
    if is_new:
        training.notes = [*(origin.text for origin in origins), *notes_on(corpus)]
    if world.is_first:
        _open_folder(folder, training.config)
    checkpoint = world.broadcast(checkpoint)
    if checkpoint is not None:
        progress = load_training(checkpoint, model, training.optimizer)
        training.progress = replace(progress, finished=progress.reason_to_finish(config.training))
    if world.is_first and training.progress.finished is None:
        _record_start(folder, training, origins, is_new=is_new)
    return training


def _with_recorded_precision(config: Config, folder: Path, world: World) -> Config:
    """Replace `training.precision: auto` by the precision of the run to resume, if there is one."""
    precision = config.training.precision
    if precision == "auto" and world.is_first and holds_run(folder):
        precision = load_run_config(folder).training.precision
    return with_precision(config, world.broadcast(precision))


def _find_last(folder: Path, config: Config, resume: bool) -> Path | None:
    """The checkpoint to resume from; None if there is no run, or it has none yet."""
    if not holds_run(folder):
        return None
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
    resumable = (
        RESUMABLE_KEYS
        if lasts_for_training(config.training.learning_rate)
        else (*RESUMABLE_KEYS, *LIMIT_KEYS)
    )
    changes = [
        f"{key}: was {old}, is {new}{FOLLOWED if key in LIMIT_KEYS else ''}"
        for key, (old, new) in differences(load_run_config(folder), config).items()
        if not key.startswith(resumable) and not is_location_key(key)
    ]
    if changes:
        raise ConfigError(
            f"{folder}: cannot resume, the configuration differs; train elsewhere with -o, or "
            "change it back\n  " + "\n  ".join(changes)
        )
    check_same_data(folder, config.prepared_folder)
    return open_checkpoints(folder, config).find("last")


def _open_folder(folder: Path, config: Config) -> None:
    """Make the folder a run, or make an existing one ready to be continued."""
    if holds_run(folder):
        write_run_config(folder, config)
        open_checkpoints(folder, config).delete_unreferenced()
    else:
        create_run(folder, config, config.prepared_folder)


def _record_start(
    folder: Path, training: Training, origins: Iterable[Origin], *, is_new: bool
) -> None:
    """Write into the run what the training starts with, and what computes it."""
    step = training.progress.step
    journal = folder / JOURNAL_FILE
    rewind(journal, -1 if is_new else step)  # what comes later is of a training that was cut short
    for origin in origins:
        write_event(journal, origin.event, 0, **origin.values)
    if training.rates:
        write_event(
            journal,
            "precision",
            step,
            chosen=training.config.training.precision,
            tokens_per_second=training.rates,
        )
    provenance.record_training(folder, step, training.device, training.world.size)


def first_weights(
    model: Seq2Seq, config: Config, lexicon: LearnedLexicon | None = None
) -> list[Origin]:
    """Set the first weights that are not random. Returns where they come from.

    Args:
        lexicon: learned from the training data, for a model with a lexical bias.

    Raises:
        CheckpointError, ConfigError, DataError: the training cannot start from its run.
    """
    run = config.training.start_from
    origins = []
    prior = ""
    if run is not None:
        parent = _load_parent(run, config)
        origins.append(_copy_weights(model, parent, run, config))
        is_opposite = load_run_config(run).data.direction == config.data.opposite_direction
        if lexicon is not None and parent.lexical_bias is not None and not is_opposite:
            lexicon = lexicon.after(parent.lexical_bias)
            prior = f", with those of {run} as prior"
    if lexicon is not None and model.lexical_bias is not None:
        sizes = lexicon.fill(model.lexical_bias)
        words = f", and {sizes['words']:,} whole words" if "words" in sizes else ""
        pairs = f"{sizes['translations']:,} translations of {sizes['tokens']:,} source tokens"
        origins.append(Origin(f"lexicon: {pairs}{words}{prior}", "lexicon", sizes))
    return origins


def _load_parent(run: Path, config: Config) -> Seq2Seq:
    """The model that a training starts from.

    Raises:
        CheckpointError: it is no run, or has no readable checkpoint.
        DataError: its vocabularies are not those of the prepared data, nor their beginning.
        ConfigError: the new model ties embeddings that the run does not tie, or has no room for the
            lexicon of the run.
    """
    parent = load_model(find_run(run), find_checkpoint(run))
    there = load_run_config(run).model
    here = config.model
    vocabularies = zip(
        load_vocabularies(run), load_vocabularies(config.prepared_folder), strict=True
    )
    if not all(old.begins(new) for old, new in vocabularies):
        raise DataError(
            f"training.start_from: the vocabularies of {run} differ from those of "
            f"{config.prepared_folder}; prepare it with vocabulary.like: {run}"
        )
    has = there.tie_embeddings
    if (
        TIES.index(has) < TIES.index(here.tie_embeddings)
        and there.embedding_size == here.embedding_size
    ):
        raise ConfigError(
            f"training.start_from: {run} was trained with model.tie_embeddings {has}, so it has "
            f"several matrices where {here.tie_embeddings} has one; set model.tie_embeddings to "
            f"{has}"
        )
    for key in ("lexical_bias", "lexical_words"):
        old, new = getattr(there, key), getattr(here, key)
        if new < old:
            raise ConfigError(
                f"training.start_from: the weights of {run} depend on its lexicon, for which this "
                f"model has no room (model.{key}: {old} there, {new} here); set it to {old} or more"
            )
    return parent


def _copy_weights(model: Seq2Seq, parent: Seq2Seq, run: Path, config: Config) -> Origin:
    """Copy the weights whose name and shape a parameter of the model has.

    Raises:
        ConfigError: they are less than half of the model.
    """
    known = load_vocabularies(run)
    new_tokens = [
        [*vocabulary][len(old) :]
        for old, vocabulary in zip(known, load_vocabularies(config.prepared_folder), strict=True)
    ]
    weights: dict[str, Tensor] = dict(parent.named_parameters(remove_duplicate=False))
    reused = _copy_fitting(model, weights, known, new_tokens)
    n_reused = sum(reused.values())
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    share = f"{n_reused:,} of {n_parameters:,} parameters ({100 * n_reused / n_parameters:.1f} %)"
    changes = "; ".join(
        f"{key}: {json.dumps(old)} there, {json.dumps(new)} here"
        for key, (old, new) in differences(load_run_config(run), config).items()
        if key.startswith("model.") and not key.endswith("dropout")  # only training uses it
    )
    if n_reused < n_parameters / 2:
        raise ConfigError(
            f"training.start_from: {run} has only {share} of this model, and at least "
            f"half is needed, whatever the keys say; give both the same sizes: {changes}"
        )
    new = [name for name, each in model.named_parameters() if id(each) not in reused]
    if any(name in weights for name in new):
        warnings.warn(
            f"training.start_from: {run} has other sizes, so a part of this model starts at "
            f"random: {changes}",
            NmtWarning,
            stacklevel=2,
        )
    checkpoint = find_checkpoint(run).name
    note = f"starts from {run}, {checkpoint}: {share}"
    note += f"; new: {', '.join(new)}" if new else ""
    note += f"; {changes}" if changes else ""
    values = {"run": str(run), "checkpoint": checkpoint, "reused": n_reused}
    values |= {"parameters": n_parameters, "new": new}
    if any(new_tokens):
        n_src, n_tgt = map(len, new_tokens)
        note += f"; {n_src:,} source and {n_tgt:,} target tokens are new"
        values["new_tokens"] = {"src": n_src, "tgt": n_tgt}
    return Origin(note, "start", values)


@torch.no_grad()
def _copy_fitting(
    model: Seq2Seq,
    weights: Mapping[str, Tensor],
    known: Sequence[Vocabulary],
    new_tokens: Sequence[Sequence[str]],
) -> dict[int, int]:
    """Copy the weights that fit, with rows for new tokens where a part has a row for each.

    Args:
        known, new_tokens: of the source and the target.

    Returns:
        the id of each parameter that has weights now: how many numbers are of the parent.
    """
    reused: dict[int, int] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if name not in weights:
            continue
        weight = weights[name]
        part = name.split(".")[0]
        if weight.shape != parameter.shape and part in SIDE_OF_PART:
            side = SIDE_OF_PART[part]
            if len(weight) == len(known[side]):
                weight = _with_new_rows(weight, known[side], new_tokens[side])
        if weight.shape == parameter.shape:
            parameter.copy_(weight)
            reused[id(parameter)] = weights[name].numel()
    return reused


def _made_of(token: str, known: Vocabulary) -> list[int]:
    """The ids of the known tokens that a new one is made of: those of the characters of which a
    character is composed, or of the word in other case or with another mark; else of `<unk>`.
    """
    text = token.lstrip(SPACE + JOINER)
    variants = {
        mark + variant
        for part in (unicodedata.normalize("NFKD", text) if len(text) == 1 else [text])
        for variant in (part, part.lower(), part.upper(), part.capitalize())
        for mark in ("", SPACE, JOINER)
    }
    return [index for index in known.ids(sorted(variants)) if index != UNK] or [UNK]


def _with_new_rows(weight: Tensor, known: Vocabulary, new_tokens: Sequence[str]) -> Tensor:
    """A weight with a row for each new token at its end: the mean of what the token is made of.
    Biases, which only output layers have, make the new tokens improbable.
    """
    rows = [weight[_made_of(token, known)].mean(0, keepdim=True) for token in new_tokens]
    grown = torch.cat([weight, *rows])
    if weight.ndim == 1 and new_tokens:
        grown[len(weight) :] -= log(len(new_tokens) / NEW_SHARE)
    return grown
