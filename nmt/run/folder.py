"""The run folder: training writes it, translation and evaluation read it. It is complete in itself
and can be moved.

config.yaml   manifest.json (of the prepared data)  src.vocab.txt  tgt.vocab.txt  [src.spm.model
tgt.spm.model]  checksums.json  checkpoints/  provenance.json  journal.jsonl  evaluation/
and the files of extras, such as curves.png
"""

import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from nmt.config.load import load_config
from nmt.config.schema import Config
from nmt.config.yaml_text import dump
from nmt.data.corpus import PREPARE_AGAIN
from nmt.data.manifest import FORMAT_VERSION, MANIFEST, config_differences, load_manifest
from nmt.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    NmtWarning,
    TrainingError,
    pass_on_lack_of_memory,
)
from nmt.files import (
    check_content,
    read_json,
    record_checksums,
    replacing,
    sha256_of,
    warn_if_changed,
    write_recorded,
)
from nmt.plugins import extras
from nmt.run.checkpoint import MODEL_FILE, OPTIMIZER_FILE, Checkpoints
from nmt.text.tokenizers import Tokenizer, load_tokenizer
from nmt.text.vocabulary import Vocabulary

RUNS_FOLDER = Path("runs")
CONFIG_FILE, JOURNAL_FILE = "config.yaml", "journal.jsonl"
PROVENANCE_FILE, EVALUATION_FOLDER = "provenance.json", "evaluation"
HISTORY_FILE = "history.jsonl"  # in the evaluation folder
CONFIDENCE_FILE = "confidence.json"


def holds_run(folder: Path) -> bool:
    return (folder / CONFIG_FILE).exists()


def holds_weights_only(folder: Path) -> bool:
    """Whether a run is a copy that translates, but whose training cannot resume."""
    checkpoints = folder / "checkpoints"
    is_copy = (checkpoints / "best.json").exists() and not (checkpoints / "last.json").exists()
    return is_copy and not any(checkpoints.glob(f"*/{OPTIMIZER_FILE}"))


def further_files() -> dict[str, str]:
    """The files that a run may have beside those of its training, and that translating reads: the
    name of each, and the place of the function that reads it.
    """
    return {
        **{name: read for extra in extras().values() for name, read in extra.files.items()},
        CONFIDENCE_FILE: "nmt.run.confidence:read_confidence",
    }


def create_run(folder: Path, config: Config, prepared: Path) -> None:
    """Make `folder` a run: its configuration, and copies of vocabularies, tokenizers, manifest.

    Raises:
        DataError: one of these files is damaged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tools = [*prepared.glob("*.vocab.txt"), *prepared.glob("*.spm.model")]
    for path in tools:
        check_content(path, PREPARE_AGAIN)
    record_checksums(folder, {path.name: sha256_of(path) for path in tools})
    for path in [*tools, prepared / MANIFEST]:
        with replacing(folder / path.name) as temporary:
            shutil.copyfile(path, temporary)
    write_run_config(folder, config)


def write_run_config(folder: Path, config: Config) -> None:
    write_recorded(folder / CONFIG_FILE, dump(config))


@contextmanager
def lock_run(folder: Path) -> Iterator[None]:
    """Lock `folder`: no other process can train into it inside the block.

    Raises:
        TrainingError: another process trains into it, or the file system refuses the lock file
            beside it.
    """
    lock = lock_file(folder)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        # FileLock would report some of these errors as a lock of another process.
        lock.open("ab").close()
    except OSError as error:
        raise TrainingError(
            f"{folder}: cannot be written ({error.strerror}: {error.filename}); choose another "
            "folder"
        ) from None
    try:
        with FileLock(lock, blocking=False):
            yield
    except Timeout:
        raise TrainingError(f"{folder}: another training is running in it") from None


def lock_file(folder: Path) -> Path:
    """The file beside `folder` that the process which trains into it locks."""
    resolved = folder.resolve()  # one lock, however the caller spells the path
    return resolved.parent / f".{resolved.name}.lock"


def check_prepared(config: Config) -> None:
    """Raises: DataError if the prepared folder is missing or has other settings than these."""
    folder = config.prepared_folder
    if changes := list(config_differences(load_manifest(folder), config)):
        raise DataError(
            f"{folder}: prepared with another configuration ({'; '.join(changes)}); run `nmt "
            "prepare` with --overwrite"
        )


def check_same_data(folder: Path, prepared: Path) -> None:
    """Raises: DataError if `prepared` is not the data that the run in `folder` learned from."""
    content = load_manifest(prepared).get("content")
    try:
        run_content = read_json(folder / MANIFEST)["content"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        pass_on_lack_of_memory(error)
        raise DataError(
            f"{folder / MANIFEST}: missing or damaged; it identifies the training data of the run; "
            f"if that data is {prepared}, copy the file from there"
        ) from None
    if run_content != content:
        raise DataError(
            f"{prepared}: is not the data that {folder} was trained on; it has been prepared "
            "again since"
        )


def find_run(folder: Path | None) -> Path:
    """`folder`, or without one the run under runs/ that was trained or pulled last.

    Raises:
        CheckpointError: the folder contains no run, or there is no run under runs/.
    """
    if folder is not None:
        if folder.is_file():
            raise CheckpointError(f"{folder}: is a file; name the folder of a run")
        if (folder / MODEL_FILE).is_file() and not holds_run(folder):
            raise CheckpointError(f"{folder}: is a checkpoint; name the folder of its run")
        if not holds_run(folder):
            raise CheckpointError(
                f"{folder}: no run here; `nmt train -c CONFIG -o {folder}` creates one"
            )
        # The run may come from a stranger.
        patterns = ("*", "checkpoints/*", "checkpoints/*/*", "checkpoints/*/*/*")
        for path in (path for pattern in patterns for path in folder.glob(pattern)):
            if not path.resolve().is_relative_to(folder.resolve()):
                raise CheckpointError(
                    f"{path}: links to {path.resolve()}, outside of the run; copy the whole run, "
                    "without links"
                )
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise CheckpointError(
                    f"{path}: is neither a file nor a folder; copy the whole run again"
                )
        return folder
    # A bundle that was unpacked has only the best checkpoint.
    pointers = {
        path.parent.parent: path.stat().st_mtime
        for name in ("best", "last")
        for path in RUNS_FOLDER.glob(f"*/checkpoints/{name}.json")
    }
    if not pointers:
        raise CheckpointError(
            f"no run under {RUNS_FOLDER}/ yet: run `nmt train -c CONFIG` first, or name the "
            "folder of a run"
        )
    return max(pointers, key=lambda run: pointers[run])


def load_run_config(folder: Path, overrides: Sequence[str] = ()) -> Config:
    """The configuration of a run, with overrides `decoding.key=value`, and no others. The prepared
    folder and the run that it starts from are named as seen from here.

    Raises:
        CheckpointError: a newer version of nmt made the run.
        ConfigError: the configuration is damaged, or an override is invalid or sets another section
            than decoding.
    """
    for override in overrides:
        if not override.strip().startswith("decoding.") or "=" not in override:
            raise ConfigError(
                f"--set {override}: for a trained run only decoding.KEY=VALUE can be set"
            )
    # A missing or damaged manifest is reported elsewhere; a newer nmt may make other checksums.
    with suppress(OSError, ValueError):
        manifest = read_json(folder / MANIFEST, verify=False)
        refuse_newer_format(folder, manifest.get("format_version"), FORMAT_VERSION)
    config = load_config(folder / CONFIG_FILE, overrides)
    warn_if_changed(folder / CONFIG_FILE)
    data, training = config.data, config.training
    if prepared := _beside(folder, config.prepared_folder):
        data = data.model_copy(update={"prepared": prepared})
    if training.start_from and (parent := _beside(folder, training.start_from)):
        training = training.model_copy(update={"start_from": parent})
    return config.model_copy(update={"data": data, "training": training})


def _beside(run: Path, folder: Path) -> Path | None:
    """What `folder` means where the training of `run` was started, in the folder around runs/; None
    if it exists here, or not there either.
    """
    there = run.resolve().parent.parent / folder
    return there if there.exists() and not folder.exists() else None


def ancestors(folder: Path) -> Iterator[Path]:
    """The run that a run starts from (training.start_from), the run before that, and so on.

    Raises:
        CheckpointError: one of them is missing.
    """
    earlier, parent = {folder}, load_run_config(folder).training.start_from
    while parent is not None and parent not in earlier:
        if not holds_run(parent):
            raise CheckpointError(f"{folder}: starts from {parent}, which is missing")
        yield parent
        earlier.add(parent)
        folder, parent = parent, load_run_config(parent).training.start_from


def refuse_newer_format(name: Path | str, version: object, known: int) -> None:
    """Raises: CheckpointError if a format has a higher version than the known one."""
    if isinstance(version, int) and version > known:
        raise CheckpointError(
            f"{name}: made by a newer nmt (format {version}, this version reads {known}); "
            "update nmt"
        )


def load_vocabularies(folder: Path) -> tuple[Vocabulary, Vocabulary]:
    """Source and target vocabulary. Raises: DataError if one is missing or damaged."""
    return Vocabulary.load(folder / "src.vocab.txt"), Vocabulary.load(folder / "tgt.vocab.txt")


def load_tokenizers(folder: Path, config: Config) -> tuple[Tokenizer, Tokenizer]:
    """Source and target tokenizer; warns if other versions of them made the data.

    Raises:
        DataError: a subword model is missing or damaged.
    """
    src = load_tokenizer(config.tokenizer, config.data.src_language, "src", folder)
    tgt = load_tokenizer(config.tokenizer, config.data.tgt_language, "tgt", folder)
    # A missing or damaged manifest is reported elsewhere.
    with suppress(OSError, ValueError, KeyError, TypeError):
        signatures = read_json(folder / MANIFEST)["tokenizers"]
        for side, tokenizer in (("src", src), ("tgt", tgt)):
            if signatures[side] != tokenizer.signature:
                warnings.warn(
                    f"{folder}: made with the {side} tokenizer {signatures[side]}, but "
                    f"{tokenizer.signature} is installed here; the tokens may differ, and the "
                    "translations with them",
                    NmtWarning,
                    stacklevel=2,
                )
    return src, tgt


def open_checkpoints(folder: Path, config: Config) -> Checkpoints:
    """The checkpoints of a run; the configuration says how many to keep."""
    return Checkpoints(
        folder, keep_best=config.training.keep_best, keep_last=config.training.keep_last
    )


def find_checkpoint(folder: Path) -> Path:
    """The best checkpoint of a run, or the last one before the first validation.

    Raises:
        CheckpointError: the run has no checkpoint.
    """
    checkpoints = Checkpoints(folder)
    checkpoint = checkpoints.find("best") or checkpoints.find("last")
    if checkpoint is None:
        raise CheckpointError(
            f"{folder}: has no checkpoint yet; continue with `nmt train -c "
            f"{folder / CONFIG_FILE} -o {folder} --resume`"
        )
    return checkpoint
