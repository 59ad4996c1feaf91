"""`nmt reproduce`: trains a run again with the configuration and data that its folder records, and
compares the weights.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.commands import prepare
from nmt.commands import train as command_train
from nmt.commands.options import (
    DataOption,
    DeviceOption,
    JsonOption,
    QuietOption,
    RunArgument,
    to_json,
)
from nmt.config.load import load
from nmt.config.parts import DeviceName
from nmt.config.schema import Config
from nmt.data.manifest import MANIFEST, load_manifest
from nmt.errors import CheckpointError, ConfigError, DataError, NmtError, TrainingError
from nmt.extras.runs.summary import RunSummary
from nmt.files import sha256_of
from nmt.run.checkpoint import MODEL_FILE, RAW_MODEL_FILE
from nmt.run.folder import CONFIG_FILE, JOURNAL_FILE, check_same_data, find_run, open_checkpoints
from nmt.run.journal import Journal
from nmt.run.provenance import read_training

CLOCK_KEYS = ("tokens_per_second", "seconds")  # of the journal: no training can repeat them
LATER_EVENTS = ("average",)  # not of the training itself


def command(
    folder: RunArgument = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Run folder to write. Default: RUN-reproduced.", metavar="DIR"
        ),
    ] = None,
    data: DataOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """The command line."""
    result = run(folder, output, data=data, device=device, quiet=quiet)
    print(to_json(result.to_dict()) if as_json else result.to_text())
    if not result.is_equal:
        raise NmtError(result.failure())


@dataclass(frozen=True)
class Reproduction:
    """The result of a second training.

    Attributes:
        run, copy: the two run folders.
        hashes: file of the last checkpoint -> its SHA-256 in the run and in the copy; None where it
            is missing.
        difference: where the two journals first differ; None if nowhere.
        remarks: what was not the same in both trainings.
    """

    run: Path
    copy: Path
    step: int
    hashes: dict[str, tuple[str | None, str | None]]
    difference: str | None
    remarks: list[str]

    @property
    def is_equal(self) -> bool:
        """Whether all weights are equal, bit for bit."""
        return all(run_hash == copy_hash for run_hash, copy_hash in self.hashes.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "run": str(self.run),
            "copy": str(self.copy),
            "step": self.step,
            "equal": self.is_equal,
            "sha256": {
                name: dict(zip(("run", "copy"), hashes, strict=True))
                for name, hashes in self.hashes.items()
            },
            "difference": self.difference,
            "remarks": self.remarks,
        }

    def to_text(self) -> str:
        """For the screen: the hashes, and what was not the same."""
        rows = [
            f"{name}  {hashes[i] or 'missing'}  {folder}"
            for i, folder in enumerate((self.run, self.copy))
            for name, hashes in self.hashes.items()
        ]
        verdict = [
            f"equal: step {self.step:,}, the weights of both trainings are the same bit for bit"
        ] * self.is_equal
        return "\n".join([*rows, *self.remarks, *verdict])

    def failure(self) -> str:
        """Why the weights are not equal, in one line."""
        where = (
            self.difference
            or "nowhere; the weights differ after the last line, or by less than it shows"
        )
        return (
            f"{self.copy}: the weights differ from those of {self.run}; the journals first "
            f"differ: {where}"
        )


def run(
    folder: Path | None = None,
    output: Path | None = None,
    *,
    data: Path | None = None,
    device: DeviceName = "auto",
    quiet: bool = False,
) -> Reproduction:
    """Train a finished run (default: the newest one) again into `output` (default: RUN-reproduced),
    and compare.

    Interrupted, it continues when it is called again. Missing prepared data is prepared again.

    Args:
        data: the prepared folder, if it has moved since training.

    Raises:
        CheckpointError: there is no run, its training is not finished, or a part of it is missing.
        ConfigError: the run cannot be repeated exactly, or `output` holds another run.
        DataError: the data is missing, or is not that of the run.
        TrainingError: interrupted.
    """
    folder = find_run(folder)
    summary = RunSummary.load(folder)
    _check_finished(summary)
    output = output or folder.resolve().with_name(f"{folder.resolve().name}-reproduced")
    if output.resolve() == folder.resolve():
        raise ConfigError(f"{output}: holds the run itself; name another folder with -o")
    sessions = read_training(folder)
    config = load(summary.config, _overrides(summary, sessions, data))
    _provide_data(folder, config)
    try:
        command_train.run(config, output, resume=True, device=device, quiet=quiet)
    except TrainingError as error:
        raise TrainingError(
            str(error).replace("the command with --resume", "the command")
        ) from None
    assert summary.last is not None
    return Reproduction(
        folder,
        output,
        summary.last.step,
        _hashes(folder, output, config),
        _first_difference(folder, output),
        list(_environment_changes(sessions, read_training(output))),
    )


def _check_finished(summary: RunSummary) -> None:
    """Raises: CheckpointError if the training is not finished, or a part of the run cannot be
    read.
    """
    folder = summary.folder
    if summary.problems:
        raise CheckpointError(summary.problems[0])
    if summary.state == "training":
        raise CheckpointError(f"{folder}: a training is running in it; wait until it is finished")
    if summary.state == "weights only":
        raise CheckpointError(
            f"{folder}: is a copy without the records of training; name the run that it was made "
            "from"
        )
    if summary.state != "finished":
        command = f"nmt train -c {folder / CONFIG_FILE} -o {folder} --resume"
        raise CheckpointError(f"{folder}: its training is not finished; `{command}` continues it")


def _overrides(
    summary: RunSummary, sessions: Sequence[dict[str, Any]], data: Path | None
) -> list[str]:
    """What the configuration of the second training must say in place of clock and machine.

    Raises:
        ConfigError: the learning rate follows the clock, or several processes trained the run.
    """
    folder, training = summary.folder, summary.config.training
    overrides = [] if data is None else [f"data.prepared={json.dumps(str(data))}"]
    if training.max_minutes is not None:
        if training.learning_rate.lasts_for_training:
            raise ConfigError(
                f"{folder}: its learning rate follows training.max_minutes, so it cannot be "
                "trained again exactly; "
                "train with max_steps"
            )
        assert summary.last is not None
        overrides += ["training.max_minutes=null", f"training.max_steps={summary.last.step}"]
    if any(session["processes"] > 1 for session in sessions):
        raise ConfigError(
            f"{folder}: several processes trained it; `nmt reproduce` trains in one, which rounds "
            "differently"
        )
    if sessions and training.threads is None:
        overrides.append(f"training.threads={sessions[0]['threads']}")
    return overrides


def _provide_data(folder: Path, config: Config) -> None:
    """Prepare the data of the run again if it is missing; check that it is the same.

    Raises:
        DataError: an input is missing or has changed, the data was augmented and is missing, or it
            is not that of the run.
    """
    prepared, manifest = config.prepared_folder, load_manifest(folder)
    if (prepared / MANIFEST).exists():
        check_same_data(folder, prepared)
        return
    if "augmentation" in manifest:
        raise DataError(
            f"{prepared}: the prepared data of {folder} is missing; `nmt augment` made it, name "
            "its folder with --data"
        )
    new = prepare.run(config)
    if new["content"] != manifest["content"]:
        hashes = {file["role"]: file["sha256"] for file in manifest["inputs"]}
        changed = [
            file["path"] for file in new["inputs"] if file["sha256"] != hashes.get(file["role"])
        ]
        tokenizers = f"{manifest['tokenizers']['src']} then, {new['tokenizers']['src']} now"
        reason = f"{', '.join(changed)} has changed since" if changed else f"tokenizer {tokenizers}"
        raise DataError(
            f"{prepared}: prepared again, but it is not the data that {folder} was trained on "
            f"({reason})"
        )


def _hashes(run: Path, copy: Path, config: Config) -> dict[str, tuple[str | None, str | None]]:
    of_run, of_copy = (
        _weight_hashes(open_checkpoints(folder, config).find("last")) for folder in (run, copy)
    )
    return {name: (of_run.get(name), of_copy.get(name)) for name in {**of_run, **of_copy}}


def _weight_hashes(checkpoint: Path | None) -> dict[str, str]:
    paths = (
        [] if checkpoint is None else [checkpoint / name for name in (MODEL_FILE, RAW_MODEL_FILE)]
    )
    return {path.name: sha256_of(path) for path in paths if path.is_file()}


def _first_difference(run: Path, copy: Path) -> str | None:
    """The first event that differs in the journals of the two trainings, apart from the clock, in
    words.
    """
    for run_event, copy_event in zip_longest(_events(run), _events(copy)):
        if run_event is None or copy_event is None:
            event, folder = (run_event, run) if copy_event is None else (copy_event, copy)
            return f"step {event['step']}, {event['event']}: only in {folder}"
        for key in {**run_event, **copy_event}:
            old, new = run_event.get(key), copy_event.get(key)
            if old != new:
                values = "" if key == "samples" else f" {old} in {run}, {new} in {copy}"
                return f"step {run_event['step']}, {run_event['event']}: {key}{values}"
    return None


def _events(run: Path) -> list[dict[str, Any]]:
    events = [
        event
        for event in Journal(run / JOURNAL_FILE).read()
        if event.get("event") not in LATER_EVENTS
    ]
    return [
        {key: value for key, value in event.items() if key not in CLOCK_KEYS} for event in events
    ]


def _environment_changes(
    old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]
) -> Iterator[str]:
    """A line for each part of the environment that differs between the two trainings."""
    if not old or not new:
        yield "the run does not say which versions and how many threads trained it"
        return
    if len(old) > 1:
        yield (
            f"the run was trained in {len(old)} environments, which `nmt inspect` shows; its "
            "copy in one"
        )
    before, after = (
        {**session.pop("libraries"), **session} for session in ({**old[0]}, {**new[0]})
    )
    for key in {**before, **after}.keys() - {"step"}:
        if before.get(key) != after.get(key):
            yield (
                f"{'code' if key == 'sha256' else key}: {before.get(key)} then, "
                f"{after.get(key)} now"
            )
