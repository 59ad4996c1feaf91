"""`nmt augment`: a new prepared folder with the original pairs, and with translations and
probabilities from trained runs.
"""

import hashlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmt.bars import is_watched, progress_bar
from nmt.commands.options import options_from, to_json
from nmt.commands.prepare import existing_manifest
from nmt.data.corpus import SOFT_TARGETS, Corpus, Sequences, SequencesWriter, encode_pairs
from nmt.data.manifest import Input, check_files, load_manifest, write_manifest
from nmt.data.reading import Pair
from nmt.data.workers import peak_memory
from nmt.decoding.batch_runner import TooLargeError
from nmt.decoding.translator import Translator
from nmt.device import set_up_device
from nmt.errors import ConfigError, DataError
from nmt.extras.augment.options import (
    BACK_TRANSLATION,
    BACKWARD,
    FORWARD,
    ORIGINAL,
    SELF_TRAINING,
    AugmentOptions,
)
from nmt.extras.augment.pairs import (
    PairFilter,
    Sentences,
    select_sentences,
    write_training_data,
)
from nmt.extras.augment.shards import plan_shards, read_shards, seconds_of_shards, write_shard
from nmt.extras.augment.soft_targets import soft_targets
from nmt.files import explain_write_errors, replacing_folder, sha256_of
from nmt.lines import read_text_lines
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import MODEL_FILE
from nmt.run.folder import LEXICON_FILE, load_run_config, load_vocabularies
from nmt.run.heritage import HeldOut, PreparedData, check_teacher
from nmt.run.load import build_translator, find_run_and_checkpoint, load_model, unchanged
from nmt.text.tokenizers import SIDES

Members = list[tuple[Path, Path]]  # (run, checkpoint) each; several translate together


@options_from(AugmentOptions)
def command(options: AugmentOptions) -> None:
    """The command line."""
    options.check()

    manifest = run(options, progress=False if options.quiet else None)
    if options.as_json or not options.quiet:
        print(to_json(manifest) if options.as_json else summary(manifest))


@dataclass(frozen=True)
class Task:
    """Sentences to translate. folder: of the shards; its name identifies sentences, models and
    decoding options.
    """

    origin: str
    members: Members
    sentences: Sentences
    folder: Path
    facts: dict[str, Any]

    @property
    def is_from_source(self) -> bool:
        """Whether it translates from source to target."""
        return self.origin in (FORWARD, SELF_TRAINING)

    @property
    def shards(self) -> list[tuple[Path, Sequence[str]]]:
        """The files of the translations, with the sentences of each."""
        return plan_shards(self.folder, self.sentences.texts)


def run(options: AugmentOptions, progress: bool | None = None) -> dict[str, Any]:
    """Translate, and write the new prepared folder; translations that an earlier call has finished
    are not repeated.

    Args:
        progress: show a progress bar on stderr; default: if stderr is a terminal.

    Returns:
        The manifest with two more keys: `folder`, and `already_prepared`, true if the folder
        already held the result.

    Raises:
        CheckpointError: a run cannot be read, or the vocabularies of an ensemble differ.
        ConfigError: a decoding option is invalid.
        DataError: an input cannot be used, a run does not fit, or dev or test sentences are in its
            training data.
    """
    start_time = time.perf_counter()
    original = PreparedData.load(options.prepared)
    if options.output.resolve() == options.prepared.resolve():
        raise DataError(f"{options.output}: holds the original pairs; name another folder with -o")
    tag = _tag_id(options, original)
    known = original.held_out.shared_with(original.pairs())
    tasks = _plan_tasks(options, original, known)
    teachers = _find_teachers(options, original, known)
    request = {
        "original": original.manifest["content"],
        "translations": [f"{task.origin}-{task.folder.name}" for task in tasks],
        "repeat": options.counts,
        "tag": options.tag,
    }
    teacher_facts = _describe(teachers)
    if teachers:
        request["teachers"] = [facts["sha256"] for facts in teacher_facts]
    existing = existing_manifest(options.output, options.overwrite)
    if existing is not None:
        old_request = {**existing.get("augmentation", {}).get("request", {})}
        # nmt 0.1 could also add each pair with its sides exchanged
        if old_request.pop("both_directions", False) or old_request != request:
            raise DataError(
                f"{options.output}: contains other prepared data; --overwrite replaces it, -o "
                "names another folder"
            )
        check_files(options.output, existing)
        return {**existing, "folder": str(options.output), "already_prepared": True}
    planned_time, show_bar = time.perf_counter(), is_watched() if progress is None else progress
    with unchanged(teachers):
        models = [
            load_model(*teacher).to(set_up_device(options.device)).eval() for teacher in teachers
        ]
    _translate(tasks, options, show_bar=show_bar)
    start_time += (
        time.perf_counter() - planned_time
    )  # the time of translation is in the figures, with that of earlier calls
    with explain_write_errors(options.output), replacing_folder(options.output) as building:
        figures = _write_files(building, original, tasks, options, tag)
        figures["augmentation"] = {
            "request": request,
            "folder": str(original.folder),
            **figures["augmentation"],
        }
        if teachers:
            figures["augmentation"]["teachers"] = teacher_facts
            _write_soft_targets(building, models, show_bar=show_bar)
        seconds = (
            time.perf_counter()
            - start_time
            + sum(map(seconds_of_shards, {task.folder for task in tasks}))
        )
        figures |= {"seconds": round(seconds, 2), "peak_memory": peak_memory()}
        inputs = [
            Input(**{**each, "path": Path(each["path"])}) for each in original.manifest["inputs"]
        ]
        manifest = write_manifest(building, original.config, inputs, figures)
    return {**manifest, "folder": str(options.output), "already_prepared": False}


def _tag_id(options: AugmentOptions, original: PreparedData) -> int | None:
    """Raises: DataError if the tag is not in the source vocabulary."""
    if options.tag is None:
        return None
    if options.tag not in original.vocabularies[0]:
        raise DataError(
            f"--tag {options.tag}: not in the source vocabulary of {original.folder}; prepare it "
            "with vocabulary.tags"
        )
    return original.vocabularies[0].ids([options.tag])[0]


def _find_teachers(options: AugmentOptions, original: PreparedData, known: HeldOut) -> Members:
    """The runs whose probabilities become soft targets.

    Raises:
        CheckpointError: a run cannot be read.
        DataError: a run does not fit, or has dev or test sentences in its training data.
    """
    members = _find_members(options.teacher or [])
    for run, _ in members:
        check_teacher(run, original, original.config.data.direction, known)
        if load_vocabularies(run) != original.vocabularies:
            raise DataError(
                f"{run}: its vocabularies differ from those of {original.folder}; a teacher needs "
                "the same"
            )
    return members


def _plan_tasks(options: AugmentOptions, original: PreparedData, known: HeldOut) -> list[Task]:
    """What to translate: first all that needs forward runs, then all that needs backward runs.

    Args:
        known: see `check_teacher`.
    """
    data, held_out, counts = original.config.data, original.held_out, options.counts
    tasks: list[Task] = []
    work = (
        (options.forward, data.direction, FORWARD, SELF_TRAINING, options.src_text, held_out.src),
        (
            options.backward,
            data.opposite_direction,
            BACKWARD,
            BACK_TRANSLATION,
            options.tgt_text,
            held_out.tgt,
        ),
    )
    for side, (runs, direction, from_pairs, from_text, path, keys) in enumerate(work):
        members = _find_members(runs or [])
        groups = [members] if options.ensemble and members else [[member] for member in members]
        for run, _ in members:
            check_teacher(run, original, direction, known)
        if groups and counts[from_pairs]:
            sentences = select_sentences(
                (pair[side] for pair in original.pairs()), keys, data.cleaning
            )
            tasks += [
                _make_task(from_pairs, members, sentences, None, options) for members in groups
            ]
        if path is not None and counts[from_text]:
            sentences = select_sentences(
                map(original.tokenizers[side].normalize, read_text_lines(path)), keys, data.cleaning
            )
            tasks += [
                _make_task(from_text, members, sentences, path, options) for members in groups
            ]
    return tasks


def _find_members(runs: Sequence[Path]) -> Members:
    """Raises: CheckpointError if a run cannot be read, DataError if one is named twice."""
    members = [find_run_and_checkpoint(run) for run in runs]
    for i, member in enumerate(members):
        if member in members[:i]:
            raise DataError(f"{member[0]}: is named twice; name each run once")
    return members


def _make_task(
    origin: str, members: Members, sentences: Sentences, text: Path | None, options: AugmentOptions
) -> Task:
    """Raises: ConfigError if a decoding option is invalid or not for this command."""
    first_run, _ = members[0]
    lexicon, runs = first_run / LEXICON_FILE, _describe(members)
    decoding = load_run_config(first_run, options.overrides).decoding
    if decoding.neighbors.pairs:
        reason = (
            "training sentences would find their own translations; add --set "
            "decoding.neighbors.pairs=0"
        )
        raise ConfigError(
            f"decoding.neighbors.pairs: {decoding.neighbors.pairs} is not for `nmt augment`; "
            f"{reason}"
        )
    if decoding.rerank.run is not None:
        reason = "add --set decoding.rerank.run=null"
        raise ConfigError(
            f"decoding.rerank.run: {decoding.rerank.run} is not for `nmt augment`; {reason}"
        )
    facts = {
        "runs": runs,
        "lexicon_sha256": sha256_of(lexicon) if lexicon.exists() else None,
        "decoding": decoding.model_dump(mode="json", exclude={"neighbors", "rerank"}),
        "text": None if text is None else {"path": str(text), "sha256": sha256_of(text)},
    }
    hashes = (
        [run["sha256"] for run in runs],
        facts["lexicon_sha256"],
        facts["decoding"],
        sentences.texts,
    )
    key = hashlib.sha256(json.dumps(hashes).encode()).hexdigest()[:12]
    name = first_run.resolve().name + (f"-and-{len(members) - 1}" if len(members) > 1 else "")
    keep = options.translations or options.output.with_name(f"{options.output.name}-translations")
    return Task(origin, members, sentences, keep / f"{name}-{key}", facts)


def _describe(members: Members) -> list[dict[str, str]]:
    """What the manifest records of them."""
    return [
        {
            "run": str(run),
            "checkpoint": checkpoint.name,
            "sha256": sha256_of(checkpoint / MODEL_FILE),
            "data": load_manifest(run)["content"],
        }
        for run, checkpoint in members
    ]


def _write_soft_targets(folder: Path, models: Sequence[Seq2Seq], *, show_bar: bool) -> None:
    """Write the soft targets of all training pairs in the folder."""
    train = Corpus.load(folder, "train")
    with (
        progress_bar(
            total=len(train), unit=" pairs", desc="soft targets", disable=not show_bar
        ) as bar,
        SequencesWriter(folder / SOFT_TARGETS, len(train)) as writer,
    ):
        for ids, lengths in soft_targets(models, train):
            writer.write(ids, lengths)
            bar.update(len(lengths))


def _translate(tasks: Sequence[Task], options: AugmentOptions, show_bar: bool) -> None:
    """Write the shards that are missing. All models are loaded first, so that errors come before
    the long work.

    Raises:
        DataError: a sentence does not fit into memory, or a shard cannot be written.
    """
    missing = [
        [(path, texts) for path, texts in task.shards if not path.exists()] for task in tasks
    ]
    translators: dict[str, Translator] = {}
    for task, shards in zip(tasks, missing, strict=True):
        if shards and str(task.members) not in translators:
            translators[str(task.members)] = build_translator(
                task.members, device=options.device, overrides=options.overrides
            )
    n_missing = sum(len(texts) for shards in missing for _, texts in shards)
    total = sum(len(task.sentences.texts) for task in tasks)
    with progress_bar(
        total=total, initial=total - n_missing, unit=" sentences", disable=not show_bar
    ) as bar:
        for number, (task, shards) in enumerate(zip(tasks, missing, strict=True), 1):
            bar.set_description(
                f"{number} of {len(tasks)}, {task.origin} {task.members[0][0].name}"
            )
            for path, texts in shards:
                try:
                    write_shard(path, texts, translators[str(task.members)])
                except TooLargeError as error:
                    raise DataError(f"sentence {texts[error.index]!r} {error.reason}") from None
                except OSError as error:
                    raise DataError(
                        f"{path}: cannot be written ({error.strerror or error})"
                    ) from None
                bar.update(len(texts))


def _write_files(
    folder: Path,
    original: PreparedData,
    tasks: Sequence[Task],
    options: AugmentOptions,
    tag: int | None,
) -> dict[str, Any]:
    """All files of the new folder except the manifest. Returns its figures: those of the original,
    with other training data.
    """
    counts, keeps_original = options.counts, bool(options.counts[ORIGINAL])
    for name in original.manifest["files"]:
        if not name.startswith(("train.", "train-")):  # shards, too
            shutil.copyfile(original.folder / name, folder / name)
    parts = [(original.corpus, counts[ORIGINAL])]
    earlier_parts = original.manifest.get("augmentation", {}).get("parts", [])
    earlier_runs = [member for part in earlier_parts for member in part["runs"]]
    figures = [
        {
            "origin": ORIGINAL,
            "pairs": len(original.corpus),
            "repeat": counts[ORIGINAL],
            "runs": earlier_runs,
        }
    ]
    pair_filter = PairFilter(
        original.pairs() if keeps_original else (), original.held_out, original.config.data.cleaning
    )
    for task in tasks:
        dropped = task.sentences.dropped.copy()
        pairs = _synthetic_pairs(task, original, pair_filter, dropped)
        corpus = encode_pairs(
            pairs,
            original.tokenizers,
            original.vocabularies,
            tag if task.origin == BACK_TRANSLATION else None,
        )
        parts.append((corpus, counts[task.origin]))
        part = {
            "origin": task.origin,
            "sentences": task.sentences.n_read,
            "dropped": dict(dropped),
            "pairs": len(corpus),
        }
        figures.append({**part, "repeat": counts[task.origin], **task.facts})
    if not any(len(corpus) * count for corpus, count in parts):
        raise DataError(
            f"{original.folder}: no pair is left; "
            f"{json.dumps([part.get('dropped') for part in figures[1:]])}"
        )
    write_training_data(folder, parts)
    train = Corpus.load(folder, "train")
    manifest = {
        key: original.manifest[key]
        for key in ("counts", "naive_leak", "vocabulary", "tokenizers", "ceiling")
    }
    overlap = original.manifest["overlap"]
    if not keeps_original:  # synthetic pairs share no sentence with dev and test
        overlap = {
            name: {side: 0 if name.startswith("train") else n for side, n in shared.items()}
            for name, shared in overlap.items()
        }
    token_counts = {side: _token_counts(getattr(train, side)) for side in SIDES}
    return {
        **manifest,
        "splits": {**original.manifest["splits"], "train": {"pairs": len(train), **token_counts}},
        "overlap": overlap,
        "augmentation": {"parts": figures},
    }


def _synthetic_pairs(
    task: Task, original: PreparedData, pair_filter: PairFilter, dropped: Counter[str]
) -> Iterator[Pair]:
    """The pairs of a task that are kept. Counts the others in `dropped`."""
    tokenizer = original.tokenizers[1 if task.is_from_source else 0]
    for text, output, problem in read_shards(task.folder, task.sentences.texts):
        translation = tokenizer.normalize(output)
        pair = (text, translation) if task.is_from_source else (translation, text)
        reason = problem or pair_filter.drop_reason(pair)
        if reason:
            dropped[reason] += 1
        else:
            yield pair


def _token_counts(sentences: Sequences) -> dict[str, float]:
    return {
        "tokens": sentences.n_tokens,
        "mean": round(sentences.n_tokens / len(sentences), 2),
        "longest": int(np.max(sentences.lengths)),
    }


def summary(manifest: Mapping[str, Any]) -> str:
    """What was translated, kept and dropped, as a short table for the screen."""
    rows: list[tuple[str, str]] = []
    for part in manifest["augmentation"]["parts"]:
        times = "" if part["repeat"] == 1 else f", {part['repeat']} times"
        if part["origin"] == ORIGINAL:
            rows.append((ORIGINAL, f"{part['pairs']:,} pairs{times}"))
            continue
        runs = " + ".join(each["run"] for each in part["runs"])
        dropped = ", ".join(
            f"{count:,} {reason}" for reason, count in sorted(part["dropped"].items())
        )
        rows.append(
            (
                part["origin"],
                f"{runs}: {part['sentences']:,} sentences, {part['pairs']:,} pairs{times}",
            )
        )
        rows.append(
            ("  dropped", f"{sum(part['dropped'].values()):,}{': ' if dropped else ''}{dropped}")
        )
    if teachers := manifest["augmentation"].get("teachers"):
        rows.append(("soft targets", " + ".join(teacher["run"] for teacher in teachers)))
    train = manifest["splits"]["train"]
    tokens = f"{train['src']['tokens']:,} source, {train['tgt']['tokens']:,} target tokens"
    rows.append(("train", f"{train['pairs']:,} pairs; {tokens}"))
    rows.append(("took", f"{manifest['seconds']:.1f} s"))
    rows.append(
        ("already written" if manifest["already_prepared"] else "written to", manifest["folder"])
    )
    return "\n".join(f"{label:<20}{text}" for label, text in rows)
