"""Synthetic pairs, with one side translated by a model, beside the original pairs.

- Translations of the training sentences by several models in both directions: data
  diversification (Nguyen et al. 2020, arXiv 1911.01986, algorithm 1); of the training sources
  alone: sequence-level distillation (Kim and Rush 2016, arXiv 1606.07947).
- Translations of other text in the target language: back-translation (Sennrich et al. 2016, arXiv
  1511.06709); in the source language: self-training.

No sentence of dev or test enters, on either side: the rule of the split, with the same keys (see
`nmt.data.splitting`).

The translations are kept in a folder of shards. A shard is written whole or not at all, so a
stopped job loses at most one.

Soft targets, the probabilities of words that trained models give, are stored beside the pairs.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from nmt.config.parts import DeviceName
from nmt.config.schema import BatchConfig, CleaningConfig
from nmt.data import cleaning
from nmt.data.batches import Batch, plan_batches, read_batches
from nmt.data.corpus import (
    SOFT_TARGETS,
    Block,
    Corpus,
    Sequences,
    SequencesWriter,
    pack_soft_targets,
)
from nmt.data.manifest import ORIGINAL, load_manifest
from nmt.data.reading import Pair
from nmt.data.splitting import fingerprint, sentence_key
from nmt.decoding.translator import Translator
from nmt.errors import ConfigError, DataError, TooLargeError
from nmt.files import explain_write_errors, sha256_of, write_text
from nmt.lines import read_lines
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import load_run_config, load_vocabularies
from nmt.run.graphs import weights_digest
from nmt.run.leaks import HeldOut, PreparedData, check_teacher
from nmt.run.load import build_translator, find_run_and_checkpoint
from nmt.text.tokenizers import SIDES
from nmt.text.vocabulary import SPECIALS, UNK
from nmt.texts.warnings import MAX_REPETITIONS, repeats

# The origins of training pairs, beside those of `nmt prepare`.
FORWARD, BACKWARD = "forward", "backward"
SELF_TRAINING, BACK_TRANSLATION = "self-training", "back-translation"
ORIGINS = (ORIGINAL, FORWARD, BACKWARD, SELF_TRAINING, BACK_TRANSLATION)
HELD_OUT = "in dev or test"  # why a sentence is not translated, or a pair is dropped
# Enough for batches of similar lengths; some keys of `decoding` make a translation depend on it.
SHARD_SENTENCES = 2048

# For soft targets.
BATCH_CONFIG = BatchConfig(unit="tokens", size=1024)
N_WORDS = 16  # of each distribution, the most probable
BLOCK_PAIRS = 4096  # in memory at once

Member = tuple[Path, Path]  # run, checkpoint


def select_sentences(
    texts: Iterable[str], held_out: Set[str], config: CleaningConfig
) -> tuple[list[str], Counter[str]]:
    """Each different text once, in order, without those that cannot make a pair; and how many
    others are dropped for which reason.

    Args:
        held_out: keys of the dev and test sentences in this language.
    """
    selected: dict[str, None] = {}
    dropped: Counter[str] = Counter()
    for text in texts:
        if not text:
            dropped["empty sentence"] += 1
        elif text in selected:
            dropped["repeated sentence"] += 1
        elif SPECIALS[UNK] in text:
            dropped["unknown words"] += 1
        elif len(text) > config.max_characters:
            dropped[cleaning.TOO_LONG] += 1
        elif sentence_key(text) in held_out:
            dropped[HELD_OUT] += 1
        else:
            selected[text] = None
    return [*selected], dropped


def drop_reason(
    pair: Pair, known: dict[bytes, str], held_out: HeldOut, config: CleaningConfig
) -> str | None:
    """Why to drop a synthetic pair of normalized sentences, or None to keep it: it is empty, too
    long, in dev or test, or a copy of an earlier pair.

    Args:
        known: the fingerprints of earlier pairs, and why to drop their copies. This pair enters.
    """
    reason = cleaning.drop_reason(*pair, config)
    if reason is not None:
        return reason
    if sentence_key(pair[0]) in held_out["src"] or sentence_key(pair[1]) in held_out["tgt"]:
        return HELD_OUT
    key = fingerprint("\t".join(pair))
    if key in known:
        return known[key]
    known[key] = "copy of a synthetic pair"
    return None


def write_training_data(folder: Path, parts: Sequence[tuple[Corpus, int]]) -> None:
    """Write `train.src` and `train.tgt`: each corpus as often as its number says, in order."""
    for side in SIDES:
        streams: list[Sequences] = [
            getattr(corpus, side) for corpus, count in parts for _ in range(count)
        ]
        with SequencesWriter(folder / f"train.{side}", sum(map(len, streams))) as writer:
            for stream in streams:
                for block in stream.blocks():
                    writer.write(*block)


@dataclass(frozen=True)
class Task:
    """Sentences to translate, for pairs of one origin.

    Attributes:
        texts: the sentences, all different. dropped: how many others there are, for which reason;
            then also how many pairs are dropped.
        folder: of the shards; its name identifies sentences, model and decoding options.
        facts: for the manifest.
    """

    origin: str
    member: Member
    texts: list[str]
    dropped: Counter[str]
    folder: Path
    facts: dict[str, Any]

    @property
    def shards(self) -> list[tuple[Path, Sequence[str]]]:
        """The files of the translations, with the sentences of each."""
        return [
            (self.folder / f"{number:06}.txt", self.texts[start : start + SHARD_SENTENCES])
            for number, start in enumerate(range(0, len(self.texts), SHARD_SENTENCES))
        ]


def make_task(
    origin: str,
    member: Member,
    selected: tuple[list[str], Counter[str]],
    text: Path | None,
    overrides: Sequence[str],
    folder: Path,
) -> Task:
    """A task for a run.

    Args:
        selected: the sentences, and how many others were dropped.
        text: the file of the sentences, if they are not those of the training data.
        folder: for the translations of all tasks.

    Raises:
        ConfigError: a decoding option is invalid or not for this command.
    """
    run, _ = member
    runs = describe([member])
    decoding = load_run_config(run, overrides).decoding.model_dump(mode="json")
    for section, key, value in (("neighbors", "pairs", "0"), ("rerank", "run", "null")):
        if decoding.pop(section, {}).get(key):
            name = f"decoding.{section}.{key}"
            raise ConfigError(f"{name} is not for `nmt augment`; add --set {name}={value}")
    facts = {
        "runs": runs,
        "decoding": decoding,
        "text": None if text is None else {"path": str(text), "sha256": sha256_of(text)},
    }
    texts, dropped = selected
    hashed = ([each["sha256"] for each in runs], decoding, texts)
    key = hashlib.sha256(json.dumps(hashed).encode()).hexdigest()[:12]
    return Task(
        origin, member, texts, dropped.copy(), folder / f"{run.resolve().name}-{key}", facts
    )


def find_members(
    runs: Sequence[Path], data: PreparedData, direction: str, known: HeldOut
) -> list[Member]:
    """Runs with their best checkpoints.

    Args:
        data, direction, known: see `check_teacher`.

    Raises:
        CheckpointError: a run cannot be read.
        DataError: a run is named twice, does not fit, or has dev or test sentences in its training
            data.
    """
    members = [find_run_and_checkpoint(run) for run in runs]
    for i, member in enumerate(members):
        if member in members[:i]:
            raise DataError(f"{member[0]}: is named twice; name each run once")
    for run, _ in members:
        check_teacher(run, data, direction, known)
    return members


def find_teachers(runs: Sequence[Path], data: PreparedData, known: HeldOut) -> list[Member]:
    """The runs that give soft targets; see `find_members`.

    Raises:
        DataError: one has other vocabularies.
    """
    teachers = find_members(runs, data, data.config.data.direction, known)
    for teacher, _ in teachers:
        if load_vocabularies(teacher) != data.vocabularies:
            raise DataError(
                f"{teacher}: its vocabularies differ from those of {data.folder}; a teacher needs "
                "the same"
            )
    return teachers


def describe(members: Sequence[Member]) -> list[dict[str, str]]:
    """What the manifest records of them."""
    return [
        {
            "run": str(run),
            "checkpoint": checkpoint.name,
            "sha256": weights_digest(checkpoint),
            "data": load_manifest(run)["content"],
        }
        for run, checkpoint in members
    ]


def translate(tasks: Sequence[Task], overrides: Sequence[str], device: DeviceName) -> None:
    """Write the shards that are missing. All models are loaded first: errors come early.

    Raises:
        DataError: a sentence does not fit into memory, or a shard cannot be written.
    """
    missing = [[shard for shard in task.shards if not shard[0].exists()] for task in tasks]
    translators: dict[Member, Translator] = {}
    for task, shards in zip(tasks, missing, strict=True):
        if shards and task.member not in translators:
            translators[task.member] = build_translator(
                [task.member], device=device, overrides=overrides
            )
    total = sum(len(task.texts) for task in tasks)
    done = total - sum(len(texts) for shards in missing for _, texts in shards)
    with tqdm(total=total, initial=done, unit=" sentences", disable=None) as bar:
        for number, (task, shards) in enumerate(zip(tasks, missing, strict=True), 1):
            run, _ = task.member
            bar.set_description(f"{number} of {len(tasks)}, {task.origin} {run.name}")
            for path, texts in shards:
                with explain_write_errors(path):
                    try:
                        write_shard(path, texts, translators[task.member])
                    except TooLargeError as error:
                        raise DataError(f"sentence {texts[error.index]!r} {error.reason}") from None
                bar.update(len(texts))


def write_shard(path: Path, texts: Sequence[str], translator: Translator) -> None:
    """Translate `texts` into a file: a line each; after a tab, what is wrong with it.

    Raises:
        OSError: the file cannot be written.
        TooLargeError: a text does not fit into memory, even alone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for translation in translator.translate(texts):
        problem = ""
        if translation.src_cut or not translation.complete:
            problem = "\ttruncated"
        elif repeats(translation.tokens, MAX_REPETITIONS) and not repeats(
            translation.src_tokens, MAX_REPETITIONS
        ):
            problem = "\trepeats itself"
        lines.append(f"{translation.text}{problem}\n")
    write_text(path, "".join(lines))


def synthetic_pairs(task: Task, data: PreparedData, known: dict[bytes, str]) -> Iterator[Pair]:
    """The pairs of a translated task that are kept. Counts the others in `task.dropped`.

    Args:
        known: see `drop_reason`.

    Raises:
        DataError: a shard is missing or damaged.
    """
    advice = "delete it to translate it again"
    is_from_source = task.origin in (FORWARD, SELF_TRAINING)
    limits = data.config.data.cleaning
    for path, shard in task.shards:
        lines = read_lines(path, needs_final_line_feed=True, advice=advice)
        if len(lines) != len(shard):
            raise DataError(f"{path}: has {len(lines)} lines instead of {len(shard)}; {advice}")
        for text, line in zip(shard, lines, strict=True):
            output, _, problem = line.partition("\t")
            translation = data.tokenizers[1 if is_from_source else 0].normalize(output)
            pair = (text, translation) if is_from_source else (translation, text)
            if reason := problem or drop_reason(pair, known, data.held_out, limits):
                task.dropped[reason] += 1
            else:
                yield pair


def write_soft_targets(folder: Path, models: Sequence[Seq2Seq]) -> None:
    """Write the soft targets of all training pairs in the folder."""
    train = Corpus.load(folder, "train")
    with (
        tqdm(total=len(train), unit=" pairs", desc="soft targets", disable=None) as bar,
        SequencesWriter(folder / SOFT_TARGETS, len(train)) as writer,
    ):
        for ids, lengths in soft_targets(models, train):
            writer.write(ids, lengths)
            bar.update(len(lengths))


@torch.inference_mode()
def soft_targets(models: Sequence[Seq2Seq], corpus: Corpus) -> Iterator[Block]:
    """The packed distributions of each pair's target tokens, in order, block by block.

    Args:
        models: in evaluation mode, on one device; each distribution is the mean of theirs.
    """
    for start in range(0, len(corpus), BLOCK_PAIRS):
        block = corpus.selection([(start, min(start + BLOCK_PAIRS, len(corpus)))])
        plan = plan_batches(block.src.lengths, block.tgt.lengths, BATCH_CONFIG, key=(0, 0))
        packed = [np.zeros(0, np.int32)] * len(block)
        for pairs, batch in zip(plan, read_batches(block, plan), strict=True):
            ids, probabilities = (
                best.cpu().split(batch.tgt_mask.sum(1).tolist())
                for best in _most_probable(models, batch)
            )
            for pair, *sentence in zip(pairs.tolist(), ids, probabilities, strict=True):
                packed[pair] = pack_soft_targets(*(tensor.numpy() for tensor in sentence))
        yield np.concatenate(packed), np.array([len(sentence) for sentence in packed], np.int32)


def _most_probable(models: Sequence[Seq2Seq], batch: Batch) -> tuple[Tensor, Tensor]:
    """Ids and probabilities [n_tokens, K] of the best words at the tokens of a batch."""
    batch = batch.to(models[0].device)
    probabilities = []  # [n_tokens, V] of each model
    for model in models:
        vectors = model(batch.src, batch.src_lengths, batch.tgt_in).at(batch.token_positions)
        probabilities.append(model.output.log_probs(*vectors).exp())
    mean = torch.stack(probabilities).mean(0)
    best = mean.topk(min(N_WORDS, mean.shape[1]), 1)
    return best.indices, best.values
