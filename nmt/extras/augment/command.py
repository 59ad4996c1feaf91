"""`nmt augment`: a new prepared folder, with translations and probabilities from trained runs."""

import json
import shutil
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from nmt.commands.options import DecodingOption, DeviceOption
from nmt.commands.prepare import existing_manifest
from nmt.config.parts import DeviceName
from nmt.data.corpus import Corpus, encode_pairs
from nmt.data.manifest import ORIGINAL, Input, check_files, training_parts, write_manifest
from nmt.data.splitting import fingerprint
from nmt.data.workers import peak_memory
from nmt.device import set_up_device
from nmt.errors import DataError, NmtWarning
from nmt.extras.augment.pairs import (
    BACK_TRANSLATION,
    BACKWARD,
    FORWARD,
    ORIGINS,
    SELF_TRAINING,
    Task,
    describe,
    find_members,
    find_teachers,
    make_task,
    select_sentences,
    synthetic_pairs,
    translate,
    write_soft_targets,
    write_training_data,
)
from nmt.files import explain_write_errors, replacing_folder
from nmt.lines import read_text_lines
from nmt.run.leaks import HeldOut, PreparedData, shared_with
from nmt.run.load import unchanged
from nmt.run.weights import load_model


@dataclass(frozen=True)
class AugmentOptions:
    """What to translate with which runs, and how to put the pairs together: the options of the
    command.
    """

    prepared: Path
    output: Path
    forward: Sequence[Path] = ()
    backward: Sequence[Path] = ()
    teacher: Sequence[Path] = ()
    src_text: Path | None = None
    tgt_text: Path | None = None
    repeat: Sequence[str] = ()
    translations: Path | None = None
    overrides: Sequence[str] = ()
    device: DeviceName = "auto"
    overwrite: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """How many times to use the pairs of each origin. Raises: typer.BadParameter."""
        counts = dict.fromkeys(ORIGINS, 1)
        for text in self.repeat:
            origin, _, number = text.partition("=")
            if origin not in counts or not number.isdecimal():
                raise typer.BadParameter(
                    f"--repeat {text}: write ORIGIN=N with one of {', '.join(ORIGINS)}"
                )
            counts[origin] = int(number)
        return counts

    def check(self) -> None:
        """Raises: typer.BadParameter if options do not go together."""
        translates = bool(self.forward or self.backward)
        problems = {
            "there is nothing to add; give --forward, --backward or --teacher": (
                not translates and not self.teacher
            ),
            "--set is for translations; add --forward or --backward": (
                not translates and bool(self.overrides)
            ),
            "--src-text needs --forward: a run that translates it": (
                self.src_text is not None and not self.forward
            ),
            "--tgt-text needs --backward: a run that translates it": (
                self.tgt_text is not None and not self.backward
            ),
            "--repeat leaves out all pairs": not any(self.counts.values()),
        }
        for text, is_wrong in problems.items():
            if is_wrong:
                raise typer.BadParameter(text)


def command(
    prepared: Annotated[
        Path, typer.Argument(help="Prepared folder with the original pairs.", metavar="PREPARED")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Prepared folder to write.", metavar="DIR")
    ],
    forward: Annotated[
        list[Path] | None,
        typer.Option(
            "--forward",
            help="Run that translates the training sources; may be repeated.",
            metavar="RUN",
        ),
    ] = None,
    backward: Annotated[
        list[Path] | None,
        typer.Option(
            "--backward",
            help=(
                "Run of the opposite direction that translates the training targets; may be "
                "repeated."
            ),
            metavar="RUN",
        ),
    ] = None,
    teacher: Annotated[
        list[Path] | None,
        typer.Option(
            "--teacher",
            help=(
                "Store this run's word probabilities, for training.distillation; may be "
                "repeated: then the mean of all."
            ),
            metavar="RUN",
        ),
    ] = None,
    src_text: Annotated[
        Path | None,
        typer.Option(
            "--src-text",
            help="Also translate this file with the forward runs (self-training).",
            metavar="FILE",
        ),
    ] = None,
    tgt_text: Annotated[
        Path | None,
        typer.Option(
            "--tgt-text",
            help="Also translate this file with the backward runs (back-translation).",
            metavar="FILE",
        ),
    ] = None,
    repeat: Annotated[
        list[str] | None,
        typer.Option(
            "--repeat",
            help=(
                "How often to use the pairs of one kind, such as original=2; 0 leaves them out. "
                "original: all pairs of PREPARED. "
                f"May be repeated. Kinds: {', '.join(ORIGINS)}."
            ),
            metavar="ORIGIN=N",
        ),
    ] = None,
    translations: Annotated[
        Path | None,
        typer.Option(
            "--translations",
            help=(
                "Folder that keeps the translations for later calls, also for the opposite "
                "direction. Default: DIR-translations."
            ),
            metavar="FOLDER",
        ),
    ] = None,
    set_: DecodingOption = None,
    device: DeviceOption = "auto",
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace other data in the folder, once the new data is complete."
        ),
    ] = False,
) -> None:
    options = AugmentOptions(
        prepared,
        output,
        forward or (),
        backward or (),
        teacher or (),
        src_text,
        tgt_text,
        repeat or (),
        translations,
        set_ or (),
        device,
        overwrite,
    )
    options.check()
    print(summary(run(options)))


def run(options: AugmentOptions) -> dict[str, Any]:
    """Translate, and write the new prepared folder. Finished translations are not repeated.

    Returns:
        The manifest with two more keys: `folder`, and `already_prepared`, true if the folder
        already held the result.

    Raises:
        CheckpointError: a run cannot be read.
        ConfigError: a decoding option is invalid.
        DataError: an input cannot be used, a run does not fit, or dev or test sentences are in its
            training data.
    """
    start_time = time.perf_counter()
    original = PreparedData.load(options.prepared)
    _check_folder(options, original)
    known = shared_with(original.held_out, original.pairs())
    tasks = _plan_tasks(options, original, known)
    teachers = find_teachers(options.teacher or [], original, known)
    described = describe(teachers)
    request = {  # the same for the same result
        "original": original.manifest["content"],
        "translations": [f"{task.origin}-{task.folder.name}" for task in tasks],
        "repeat": options.counts,
        "tag": None,  # as in folders of earlier versions, which are still recognized
        **({"teachers": [facts["sha256"] for facts in described]} if teachers else {}),
    }
    if (existing := _existing_result(options, request)) is not None:
        return {**existing, "folder": str(options.output), "already_prepared": True}
    with unchanged(teachers):
        models = [
            load_model(*member).to(set_up_device(options.device)).eval() for member in teachers
        ]
    translate(tasks, options.overrides, options.device)
    with explain_write_errors(options.output), replacing_folder(options.output) as building:
        parts = _write_pairs(building, original, tasks, options)
        figures = _figures(building, original, keeps_original=bool(options.counts[ORIGINAL]))
        source = {"request": request, "folder": str(original.folder)}
        figures["augmentation"] = {**source, "parts": parts}
        if teachers:
            figures["augmentation"]["teachers"] = described
            write_soft_targets(building, models)
        seconds = time.perf_counter() - start_time
        figures |= {"seconds": round(seconds, 2), "peak_memory": peak_memory()}
        inputs = [Input(**each) for each in original.manifest["inputs"]]
        manifest = write_manifest(building, original.config, inputs, figures)
    return {**manifest, "folder": str(options.output), "already_prepared": False}


def _check_folder(options: AugmentOptions, original: PreparedData) -> None:
    """Raises: DataError if the output is the input."""
    if options.output.resolve() == options.prepared.resolve():
        raise DataError(f"{options.output}: holds the original pairs; name another folder with -o")
    if not options.teacher and "teachers" in original.manifest.get("augmentation", {}):
        warnings.warn(
            f"{original.folder}: its soft targets are of its own pairs, so {options.output} has "
            "none; give --teacher again to make them",
            NmtWarning,
            stacklevel=2,
        )


def _existing_result(options: AugmentOptions, request: dict[str, Any]) -> dict[str, Any] | None:
    """The manifest of the result, if the output folder holds it already.

    Raises:
        DataError: the folder holds something else.
    """
    existing = existing_manifest(options.output, options.overwrite)
    if existing is not None:
        if existing.get("augmentation", {}).get("request") != request:
            raise DataError(
                f"{options.output}: contains other prepared data; --overwrite replaces it, -o "
                "names another folder"
            )
        check_files(options.output, existing)
    return existing


def _plan_tasks(options: AugmentOptions, original: PreparedData, known: HeldOut) -> list[Task]:
    """What to translate: first all that needs forward runs, then all that needs backward runs.

    Args:
        known: see `check_teacher`.
    """
    data = original.config.data
    held_out = original.held_out
    keep = options.translations or options.output.with_name(f"{options.output.name}-translations")
    sides = (
        (
            data.direction,
            options.forward,
            held_out["src"],
            options.src_text,
            FORWARD,
            SELF_TRAINING,
        ),
        (
            data.opposite_direction,
            options.backward,
            held_out["tgt"],
            options.tgt_text,
            BACKWARD,
            BACK_TRANSLATION,
        ),
    )
    tasks: list[Task] = []
    for side, (direction, runs, keys, path, from_pairs, from_text) in enumerate(sides):
        members = find_members(runs, original, direction, known)
        texts: dict[str, Iterable[str]] = {}
        if members and options.counts[from_pairs]:
            texts[from_pairs] = (pair[side] for pair in original.original_pairs())
        if path is not None:
            texts[from_text] = map(original.tokenizers[side].normalize, read_text_lines(path))
        for origin in (origin for origin in texts if options.counts[origin]):
            selected = select_sentences(texts[origin], keys, data.cleaning)
            text = path if origin == from_text else None
            tasks += [
                make_task(origin, member, selected, text, options.overrides, keep)
                for member in members
            ]
    return tasks


def _write_pairs(
    folder: Path, original: PreparedData, tasks: Sequence[Task], options: AugmentOptions
) -> list[dict[str, Any]]:
    """Write all files of the new folder except the manifest. Returns the facts of each part."""
    counts = options.counts
    for name in original.manifest["files"]:
        if not name.startswith(("train.", "train-")):  # shards, too
            shutil.copyfile(original.folder / name, folder / name)
    parts: list[tuple[Corpus, int]] = []
    facts: list[dict[str, Any]] = []
    end = 0
    for part in training_parts(original.manifest):
        start, end = end, end + part["pairs"] * part["repeat"]
        if start < end:
            parts.append((original.corpus.selection([(start, end)]), counts[ORIGINAL]))
        facts.append({"runs": [], **part, "repeat": part["repeat"] * counts[ORIGINAL]})
    known_pairs = original.pairs() if counts[ORIGINAL] else ()
    earlier = "earlier" if "augmentation" in original.manifest else "original"
    known = {fingerprint("\t".join(pair)): f"copy of an {earlier} pair" for pair in known_pairs}
    for task in tasks:
        pairs = synthetic_pairs(task, original, known)
        corpus = encode_pairs(pairs, original.tokenizers, original.vocabularies)
        parts.append((corpus, counts[task.origin]))
        facts.append(
            {
                "origin": task.origin,
                "sentences": len(corpus) + task.dropped.total(),
                "dropped": dict(task.dropped),
                "pairs": len(corpus),
                "repeat": counts[task.origin],
                **task.facts,
            }
        )
    if not any(len(corpus) * count for corpus, count in parts):
        reasons = json.dumps([part.get("dropped") for part in facts[1:]])
        raise DataError(f"{original.folder}: no pair is left; {reasons}")
    write_training_data(folder, parts)
    return facts


def _figures(folder: Path, original: PreparedData, *, keeps_original: bool) -> dict[str, Any]:
    """For the manifest: the figures of the original, with those of the new training data."""
    train = Corpus.load(folder, "train")
    keys = ("counts", "naive_leak", "vocabulary", "tokenizers", "ceiling")
    overlap = original.manifest["overlap"]
    if not keeps_original:  # synthetic pairs share no sentence with dev and test
        overlap = {
            name: {side: 0 if name.startswith("train") else n for side, n in shared.items()}
            for name, shared in overlap.items()
        }
    token_counts = {
        side: {
            "tokens": sentences.n_tokens,
            "mean": round(sentences.n_tokens / len(sentences), 2),
            "longest": int(np.max(sentences.lengths)),
        }
        for side, sentences in (("src", train.src), ("tgt", train.tgt))
    }
    return {
        **{key: original.manifest[key] for key in keys},
        "splits": {**original.manifest["splits"], "train": {"pairs": len(train), **token_counts}},
        "overlap": overlap,
    }


def summary(manifest: Mapping[str, Any]) -> str:
    """What was translated, kept and dropped, as a short table for the screen."""
    rows: list[tuple[str, str]] = []
    for part in manifest["augmentation"]["parts"]:
        pairs = f"{part['pairs']:,} pairs"
        if part["repeat"] != 1:
            pairs += f", {part['repeat']} times"
        if part["origin"] not in ORIGINS[1:]:
            rows.append((part["origin"], pairs))
            continue
        runs = " + ".join(each["run"] for each in part["runs"])
        rows.append((part["origin"], f"{runs}: {part['sentences']:,} sentences, {pairs}"))
        reasons = [f"{count:,} {name}" for name, count in sorted(part["dropped"].items())]
        rows.append(("  dropped", ", ".join(reasons) or "0"))
    if teachers := manifest["augmentation"].get("teachers"):
        rows.append(("soft targets", " + ".join(teacher["run"] for teacher in teachers)))
    train = manifest["splits"]["train"]
    tokens = f"{train['src']['tokens']:,} source, {train['tgt']['tokens']:,} target tokens"
    rows.append(("train", f"{train['pairs']:,} pairs; {tokens}"))
    rows.append(("took", f"{manifest['seconds']:.1f} s"))
    written = "already written" if manifest["already_prepared"] else "written to"
    rows.append((written, manifest["folder"]))
    return "\n".join(f"{label:<20}{text}" for label, text in rows)
