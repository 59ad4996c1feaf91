"""`nmt runs reproduce`: trains a run again with the configuration and data that its folder records,
and compares the weights.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

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
from nmt.errors import CheckpointError, ConfigError, NmtError, TrainingError
from nmt.extras.runs.summary import read_facts
from nmt.files import sha256_of
from nmt.run.checkpoint import MODEL_FILE, RAW_MODEL_FILE
from nmt.run.folder import CONFIG_FILE, check_same_data, find_run, open_checkpoints
from nmt.run.provenance import read_training


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
    print(to_json(result) if as_json else to_text(result))
    if not result["equal"]:
        raise NmtError(f"{result['copy']}: the weights differ from those of {result['run']}")


def run(
    folder: Path | None = None,
    output: Path | None = None,
    *,
    data: Path | None = None,
    device: DeviceName = "auto",
    quiet: bool = False,
) -> dict[str, Any]:
    """Train a finished run (default: the newest one) again into `output` (default: RUN-reproduced),
    and compare. Interrupted, it continues when it is called again.

    Args:
        data: the prepared folder, if it has moved since training.

    Returns:
        Both run folders, whether their last weights are equal bit for bit, and the SHA-256 of each
        file; remarks: versions, devices and threads that were not the same.

    Raises:
        CheckpointError: there is no run, its training is not finished, or a part of it is missing.
        ConfigError: the run cannot be repeated exactly, or `output` holds another run.
        DataError: the data is missing, or is not that of the run.
        TrainingError: interrupted.
    """
    folder = find_run(folder)
    run_config, facts = read_facts(folder)
    _check_finished(facts)
    output = output or folder.resolve().with_name(f"{folder.resolve().name}-reproduced")
    if output.resolve() == folder.resolve():
        raise ConfigError(f"{output}: holds the run itself; name another folder with -o")
    config = load(run_config, _overrides(run_config, facts, data))
    check_same_data(folder, config.prepared_folder)
    try:
        command_train.run(config, output, resume=True, device=device, quiet=quiet)
    except TrainingError as error:
        text = str(error).replace("the command with --resume", "the command")
        raise TrainingError(text) from None
    of_run, of_copy = (
        _weight_digests(open_checkpoints(path, config).find("last")) for path in (folder, output)
    )
    return {
        "run": str(folder),
        "copy": str(output),
        "step": facts["last"]["step"],
        "equal": of_run == of_copy,
        "sha256": {
            name: {"run": of_run.get(name), "copy": of_copy.get(name)}
            for name in {**of_run, **of_copy}
        },
        "remarks": [*_changes(facts["sessions"], read_training(output))],
    }


def to_text(result: dict[str, Any]) -> str:
    """For the screen: the hashes, and what was not the same."""
    rows = [
        f"{file}  {digests[name] or 'missing'}  {result[name]}"
        for name in ("run", "copy")
        for file, digests in result["sha256"].items()
    ]
    if result["equal"]:
        text = f"step {result['step']:,}, the weights of both trainings are the same bit for bit"
        return "\n".join([*rows, *result["remarks"], f"equal: {text}"])
    return "\n".join([*rows, *result["remarks"]])


def _check_finished(facts: dict[str, Any]) -> None:
    """Raises: CheckpointError if the training is not finished, or a part of it cannot be read."""
    folder = facts["run"]
    if facts["problems"]:
        raise CheckpointError(facts["problems"][0])
    if facts["state"] == "training":
        raise CheckpointError(f"{folder}: a training is running in it; wait until it is finished")
    if facts["state"] == "weights only":
        reason = "is a copy without the records of training; name the run that it was made from"
        raise CheckpointError(f"{folder}: {reason}")
    if facts["state"] != "finished":
        command = f"nmt train -c {Path(folder, CONFIG_FILE)} -o {folder} --resume"
        raise CheckpointError(f"{folder}: its training is not finished; `{command}` continues it")


def _overrides(config: Config, facts: dict[str, Any], data: Path | None) -> list[str]:
    """What the configuration of the second training must say in place of clock and machine.

    Raises:
        ConfigError: the learning rate follows the clock, or several processes trained the run.
    """
    folder, training, sessions = facts["run"], config.training, facts["sessions"]
    overrides = [] if data is None else [f"data.prepared={json.dumps(str(data))}"]
    if training.max_minutes is not None:
        if training.learning_rate.lasts_for_training:
            raise ConfigError(
                f"{folder}: its learning rate follows training.max_minutes, so it cannot be "
                "trained again exactly; train with max_steps"
            )
        last_step = facts["last"]["step"]
        overrides += ["training.max_minutes=null", f"training.max_steps={last_step}"]
    if any(session["processes"] > 1 for session in sessions):
        raise ConfigError(
            f"{folder}: several processes trained it, and one, which this command uses, rounds "
            "differently"
        )
    if sessions and training.threads is None:
        overrides.append(f"training.threads={sessions[0]['threads']}")
    return overrides


def _weight_digests(checkpoint: Path | None) -> dict[str, str]:
    if checkpoint is None:
        return {}
    paths = [checkpoint / name for name in (MODEL_FILE, RAW_MODEL_FILE)]
    return {path.name: sha256_of(path) for path in paths if path.is_file()}


def _changes(then: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line for each part of the environment that differs between the two trainings."""
    if not then or not now:
        yield "the run does not say which versions and how many threads trained it"
        return
    flat = [
        [{"code": each.get("sha256"), **each, **each["libraries"]} for each in sessions]
        for sessions in (then, now)
    ]
    for key in sorted({*flat[0][0], *flat[1][0]} - {"step", "sha256", "libraries"}):
        old, new = ([*dict.fromkeys(str(each.get(key)) for each in group)] for group in flat)
        if old != new:
            yield f"{key}: {', '.join(old)} then, {', '.join(new)} now"
