"""`nmt adapt`: prepare the memory and general pairs, train from the base, choose, write the run."""

import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from nmt.commands import prepare
from nmt.commands import train as command_train
from nmt.config.load import config_from_dict, load_config
from nmt.config.parts import DeviceName
from nmt.config.schema import Config, SourceConfig
from nmt.data.manifest import MANIFEST, load_manifest
from nmt.data.splitting import TooFewPairsError
from nmt.data.training_corpus import load_training_corpus
from nmt.device import set_up_device
from nmt.errors import ConfigError, DataError, NmtError, TrainingError
from nmt.extras.adapt.choice import (
    GENERAL,
    MEMORY,
    N_HALVINGS,
    NothingGainedError,
    Outputs,
    Scores,
    Sets,
    TooCostlyError,
    best_share,
    between,
    change_table,
    remarks,
    search,
)
from nmt.extras.adapt.picture import draw
from nmt.extras.init.inspection import inspect
from nmt.extras.init.measurement import Measures, by_file, measure
from nmt.extras.init.proposal import (
    ADAPTED,
    MIN_PAIRS,
    check_number,
    load_run_to_fine_tune,
    propose_fine_tuning,
)
from nmt.files import explain_write_errors, new_folder
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import step_of
from nmt.run.folder import (
    JOURNAL_FILE,
    PROVENANCE_FILE,
    RUNS_FOLDER,
    ancestors,
    check_same_data,
    create_run,
    find_checkpoint,
    find_run,
    load_run_config,
    lock_file,
    lock_run,
    open_checkpoints,
)
from nmt.run.graphs import make_graphs
from nmt.run.journal import read_events, write_event
from nmt.run.progress import Rank
from nmt.run.weights import build_model, load_model, save_weights
from nmt.training.calibrate import MAX_AFTER_TRAINING, calibrate
from nmt.training.console import Console
from nmt.training.dry_run import count_updates, duration, time_part
from nmt.training.loop import Training
from nmt.training.record import EndEvent, Event
from nmt.training.start import first_weights

EVENT = "adaptation"  # of the journal
PICTURE = "adaptation.png"  # in the run
MIN_HELD_OUT = 10  # pairs, in dev and test each
# So that the training takes at most fifteen minutes of one core for configs/tatoeba.yaml.
MAX_STEPS = 2400
MAX_DEV = 500  # pairs
MAX_TEST = 1000
MAX_VALIDATED = 200


@dataclass(frozen=True)
class Work:
    """An adaptation that goes on.

    Attributes:
        memory, general, mix, max_loss, device, quiet: the options of the command.
        overrides: `key=value`, of the configuration.
        base: the run to start from. output: the run to write. unfinished: the folder of the
            training.
        is_begun: whether an earlier call was interrupted.
        made: folders that do not stay if it ends without a run.
    """

    memory: Sequence[Path]
    general: Path | None
    mix: float | None
    max_loss: float
    overrides: Sequence[str]
    device: DeviceName
    quiet: bool
    base: Path
    output: Path
    unfinished: Path
    is_begun: bool
    made: list[Path]

    def say(self, text: str) -> None:
        if not self.quiet:
            print(text, flush=True)


def adapt(
    run: Path,
    memory: Sequence[Path],
    output: Path | None,
    general: Path | None,
    mix: float | None,
    max_loss: float,
    overrides: Sequence[str],
    device: DeviceName,
    *,
    quiet: bool,
) -> None:
    """Write the adapted run, and print what it gains and costs. Called again after an interruption,
    it continues, and ends with the same run.

    Raises:
        ConfigError: the run folder to write exists, or an interrupted call had other options.
        NothingGainedError, TooCostlyError: no weights gain anything within `max_loss`.
        NmtError: the run or the pairs cannot be used.
    """
    run = find_run(run)
    is_adapted = any(event["event"] == EVENT for event in read_events(run / JOURNAL_FILE))
    base = next(ancestors(run)) if is_adapted else run
    if base != run and not quiet:
        text = f"{run} is adapted from {base}; this starts there too, with these pairs alone"
        print(text, flush=True)
    name = re.sub(r"[^\w-]+", "-", memory[0].name.partition(".")[0]).strip("-") or "memory"
    output = output or RUNS_FOLDER / f"{base.resolve().name}-{name}"
    unfinished = output.parent / f".{output.name}.adapting"
    if output.exists():
        raise ConfigError(f"{output}: exists already; name another run with -o")
    with lock_run(output):
        work = Work(
            memory,
            general,
            mix,
            max_loss,
            overrides,
            device,
            quiet,
            base,
            output,
            unfinished,
            unfinished.exists(),
            [unfinished],
        )
        unfinished.mkdir(exist_ok=True)
        try:
            prepared = _general_pairs(work)
            config = _prepare(_configure(work, prepared), work)
            folders = {GENERAL: prepared, MEMORY: config.prepared_folder}
            dev, test = (Sets.read(folders, split, config) for split in ("dev", "test"))
            before = _measure_base(config, dev, test, work)
            _train(config, work)
            _choose(config, dev, test, before, work)
        except (ConfigError, DataError) as error:
            # What an interrupted call has left is not lost by a wrong option of this one.
            if not work.is_begun or isinstance(error, NothingGainedError):
                _delete(work.made)
            raise
        _delete([unfinished])


def _delete(folders: Sequence[Path]) -> None:
    """Delete folders, and the locks that trainings left beside them."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        lock_file(folder).unlink(missing_ok=True)


def _general_pairs(work: Work) -> Path:
    """The folder of prepared data with general pairs, which a file may have to become first.

    Raises:
        DataError: there are none.
    """
    base, general = work.base, work.general
    parent = load_run_config(base)
    if general is None:
        folder = parent.prepared_folder
        if not (folder / MANIFEST).exists():
            raise DataError(
                f"{base}: the data that it was trained on, {folder}, is not here; name other pairs "
                "with --general, on which it must not become worse"
            )
        check_same_data(base, folder)
        return folder
    if (general / MANIFEST).exists():
        direction = load_manifest(general)["config"]["data"]["direction"]
        if direction != parent.data.direction:
            raise DataError(
                f"--general {general}: is {direction}, but {base} translates "
                f"{parent.data.direction}; name data of that direction"
            )
        return general
    source, found = _inspect([general], parent)
    check_number(found, MIN_PAIRS, "--general")
    values = {
        "name": f"{work.output.name}-{GENERAL}",
        "data": {
            "direction": parent.data.direction,
            "source": source,
            "split": {"dev": found.n_held_out, "test": found.n_held_out},
        },
        "tokenizer": parent.tokenizer.model_dump(mode="json"),
        "vocabulary": {"joint": parent.vocabulary.joint, "like": str(base)},
    }
    return _prepare(config_from_dict(values), work).prepared_folder


def _inspect(paths: Sequence[Path], parent: Config) -> tuple[dict[str, Any], Measures]:
    """A source of the configuration, and what its pairs are like."""
    wanted = parent.data.src_language, parent.data.tgt_language
    files = inspect(paths, wanted)
    languages = files.languages(wanted)
    source = files.source(languages)
    return source, measure(
        SourceConfig(**source), files.by_language(languages), wanted, is_judged=False
    )


def _configure(work: Work, general: Path) -> Config:
    parent = load_run_to_fine_tune(work.base, None)
    source, found = _inspect(work.memory, parent)
    if listing := by_file(found.texts):
        work.say(listing)
    _, mix, passes = next(mixture for mixture in ADAPTED if found.n_pairs <= mixture[0])
    values = propose_fine_tuning(
        work.output.name, source, found, str(work.base), parent, general, work.mix or mix, passes
    )
    split = values["data"]["split"]
    split |= {"dev": min(MAX_DEV, split["dev"]), "test": min(MAX_TEST, split["test"])}
    values["training"] |= {
        "max_steps": min(MAX_STEPS, values["training"]["max_steps"]),
        "validate_every": 0.5,
        "validation_pairs": MAX_VALIDATED,
        "final_pairs": 0,  # `_choose` does that, in another way
    }
    return load_config(config_from_dict(values), work.overrides)


def _prepare(config: Config, work: Work) -> Config:
    """Prepare data, unless an interrupted call has done so.

    Returns:
        the configuration, with smaller dev and test sets where few pairs are unlike all others.

    Raises:
        ConfigError: the folder exists, or an interrupted call had other options or pairs.
        DataError: the pairs cannot be used.
    """
    folder = config.prepared_folder
    is_there = folder.exists()
    if is_there and not work.is_begun:
        raise ConfigError(f"{folder}: exists already; name another run with -o")
    if is_there:
        config = _with_split(config, load_manifest(folder)["config"]["data"]["split"]["dev"])
    work.made.append(folder)
    while True:
        try:
            manifest = prepare.run(config, progress=False if work.quiet else None)
            break
        except TooFewPairsError:
            if config.data.split.dev < 2 * MIN_HELD_OUT:
                raise
            config = _with_split(config, config.data.split.dev // 2)
        except DataError:
            if is_there:
                raise ConfigError(
                    f"{work.unfinished}: an interrupted adaptation had other options or pairs; "
                    f"repeat its command, delete this folder and {folder}, or name another run "
                    "with -o"
                ) from None
            raise
    counts = ", ".join(f"{part['pairs']:,} for {name}" for name, part in manifest["splits"].items())
    work.say(f"{folder}: {counts}")
    return config


def _with_split(config: Config, size: int) -> Config:
    """With dev and test sets of at most this size."""
    split = config.data.split
    sizes = {"dev": min(size, split.dev), "test": min(size, split.test)}
    return load_config(config, [f"data.split.{name}={n}" for name, n in sizes.items()])


def _measure_base(config: Config, dev: Sets, test: Sets, work: Work) -> Scores:
    """The scores of the base on dev. Says how long all that follows takes, at first."""
    device = set_up_device(work.device)
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    model = load_model(work.base, find_checkpoint(work.base)).to(device).eval()
    start_time = time.perf_counter()
    outputs = dev.translate(model, work.base)
    choice = time.perf_counter() - start_time
    choice *= N_HALVINGS + 1 + 2 * test.n_sentences / dev.n_sentences
    scores = dev.bleu(outputs)
    if work.quiet or work.is_begun:
        return scores
    corpus = load_training_corpus(config)
    fresh = build_model(config.prepared_folder, config).to(device)
    n_batches, seconds = time_part(Training.of(fresh, corpus, config))
    each = seconds / n_batches
    n_updates = count_updates(config, n_batches, each)
    work.say(
        f"about {duration(n_updates * each)} for {n_updates:,} updates, then at most "
        f"{duration(choice)} to choose the weights"
    )
    return scores


def _train(config: Config, work: Work) -> None:
    """Train, or continue. Raises: TrainingError: interrupted."""
    with Console(config, quiet=work.quiet) as console:

        def listen(event: Event) -> None:
            """What `nmt train` shows, but not which commands come next."""
            if isinstance(event, EndEvent):
                seconds = event.progress.seconds
                work.say(f"trained for {event.progress.step} updates, {duration(seconds)}")
            elif not getattr(event, "is_warning", False):
                console(event)

        try:
            command_train.run(
                config,
                work.unfinished,
                resume=True,
                device=work.device,
                quiet=True,  # prints warnings
                listen=listen,
            )
        except TrainingError as error:
            raise TrainingError(
                str(error).replace("the command with --resume", "the command")
            ) from None


def _choose(config: Config, dev: Sets, test: Sets, base_scores: Scores, work: Work) -> None:
    """Choose a share of the way from the base to the trained weights, and write the run.

    Args:
        base_scores: on dev.

    Raises:
        NothingGainedError, TooCostlyError: no share gains anything within `max_loss`.
    """
    base = work.base
    device = set_up_device(work.device)
    checkpoint = open_checkpoints(work.unfinished, config).find("last")
    assert checkpoint is not None  # the training is finished
    before = load_model(base, find_checkpoint(base)).to(device).eval()
    after = load_model(work.unfinished, checkpoint).to(device).eval()
    start = build_model(work.unfinished, config)
    first_weights(start, config)
    start = start.to(device)
    model_at = partial(between, start, after)
    share, results = _choose_share(model_at, dev, base_scores, work)
    model = model_at(share)
    changes = test.changes(test.translate(before, base), test.translate(model, work.unfinished))
    table = change_table(changes)
    _write_run(
        config,
        work,
        model,
        step_of(checkpoint.name),
        {"share": share, "dev": results[share], "test": table.to_dict()},
    )
    draw(results, share, work.max_loss, work.output / PICTURE)
    print(table.to_text())
    for remark in remarks(changes, work.max_loss):
        print(f"nmt: {remark}", file=sys.stderr)
    print(f"{work.output}: {100 * share:g} % of the way from {base}")


def _choose_share(
    model_at: Callable[[float], Seq2Seq], dev: Sets, base_scores: Scores, work: Work
) -> tuple[float, dict[float, Scores]]:
    """A share of the way, and the scores on dev of all that were tried, with those of the base.

    Args:
        model_at: the model at a share.

    Raises:
        NothingGainedError, TooCostlyError: as `best_share`.
    """
    translations: dict[float, Outputs] = {}

    def measure_share(share: float) -> Scores:
        translations[share] = dev.translate(model_at(share), work.unfinished)
        scores = dev.bleu(translations[share])
        work.say(_row(f"{100 * share:g} %", scores))
        return scores

    def is_surely_better(one: float, other: float) -> bool:
        change = dev.change(MEMORY, "BLEU", translations[other], translations[one])
        return change.difference.low > 0

    work.say(f"BLEU on dev\n{'share of the way':16}{GENERAL:>9}{MEMORY:>9}")
    work.say(_row("0 %", base_scores))
    results = search(measure_share, base_scores[GENERAL] - work.max_loss, is_surely_better)
    try:
        share = best_share(results, base_scores, work.max_loss, is_surely_better)
    except TooCostlyError as error:
        left = " and ".join(map(str, work.made))
        raise TooCostlyError(f"{error}; or, if you do not want it, delete {left}") from None
    return share, {0.0: base_scores, **results}


def _write_run(
    config: Config, work: Work, model: Seq2Seq, step: int, facts: dict[str, Any]
) -> None:
    """Write the run. facts: of the journal."""
    with explain_write_errors(work.output), new_folder(work.output) as folder:
        create_run(folder, config, config.prepared_folder)
        (folder / "checkpoints").mkdir()
        rank = Rank(facts["dev"][MEMORY], 0.0)
        open_checkpoints(folder, config).add_average(step, partial(save_weights, model), rank)
        files = [work.unfinished / name for name in (JOURNAL_FILE, PROVENANCE_FILE)]
        for path in (*files, *work.unfinished.glob("curves.*")):  # of an extra
            shutil.copyfile(path, folder / path.name)
        write_event(folder / JOURNAL_FILE, EVENT, step, base=str(work.base), **facts)
        precision = config.decoding.cpu_precision
        make_graphs(folder, find_checkpoint(folder), precision)
        try:
            calibrate(folder, config.prepared_folder, work.device, MAX_AFTER_TRAINING)
        except NmtError as error:  # few pairs, or what `decoding` needs comes later
            work.say(f"without confidence in translations: {error}")


def _row(label: str, scores: Scores) -> str:
    return f"{label:16}{scores[GENERAL]:9.2f}{scores[MEMORY]:9.2f}"
