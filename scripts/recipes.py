"""Print a table of finished runs in Markdown: their scores, sizes, speeds and training times,
teachers included.

    nmt evaluate RUN --split dev; nmt evaluate RUN       # before, for each run
    python scripts/recipes.py RUN...

Runs whose configurations differ only in the seed share a row, with mean and standard deviation. The
scores of lower-case models ignore case. The total time adds, once each, the runs that the training
started from, those that made its training data, and the time of `nmt augment`.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config.schema import Config
from nmt.data.manifest import load_manifest
from nmt.errors import DataError, NmtError
from nmt.run.checkpoint import Checkpoints, read_progress
from nmt.run.folder import find_run, load_run_config
from nmt.run.journal import read_events
from nmt.run.weights import build_model

COLUMNS = (
    "recipe",
    "seeds",
    "parameters",
    "minutes",
    "total",
    "dev BLEU",
    "BLEU",
    "chrF",
    "sentences/s",
)
MISSING = "-"


@dataclass(frozen=True)
class RunFigures:
    """The figures of a run; None for those that its evaluations do not have.

    Attributes:
        config: of the run.
        parameters: of the model, in millions. minutes: of training; total: with all runs that it
            needed.
        dev_bleu, bleu, chrf: of the last evaluations on the dev and the test split.
        speed: sentences translated per second.
    """

    config: Config
    parameters: float
    minutes: float
    total: float
    dev_bleu: float | None
    bleu: float | None
    chrf: float | None
    speed: float | None


def measure(folder: Path) -> RunFigures:
    """Raises: CheckpointError if there is no run, DataError if a run that it needed is missing."""
    config = load_run_config(find_run(folder))
    keys = ["scores"]
    if config.tokenizer.lowercase:
        keys.append("lowercase_scores")  # in place of the scores with the same names
    dev, test = (_last_evaluation(folder, split, keys) for split in ("dev", "test"))
    needed = sorted(needed_runs(folder))
    n_parameters = sum(parameter.numel() for parameter in build_model(folder, config).parameters())
    seconds = test.get("translation_seconds")
    return RunFigures(
        config,
        n_parameters / 1e6,
        _minutes(folder),
        sum(map(_minutes, needed)) + _minutes_of_augmentation(needed),
        dev.get("BLEU"),
        test.get("BLEU"),
        test.get("chrF"),
        test["sentences"] / seconds if seconds else None,
    )


def needed_runs(folder: Path) -> set[Path]:
    """The run, those that it started from, and those that made its training data, with all that
    these needed.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: missing; its training time is part of the total")
    start_from = load_run_config(folder).training.start_from
    augmentation = load_manifest(folder).get("augmentation", {})
    groups = [
        *(part.get("runs", []) for part in augmentation.get("parts", [])),
        augmentation.get("teachers", []),
    ]
    others = {Path(member["run"]) for group in groups for member in group} | (
        {start_from} if start_from else set()
    )
    return {folder.resolve()}.union(*map(needed_runs, others))


def _minutes(folder: Path) -> float:
    checkpoint = Checkpoints(folder).find("last")
    return 0.0 if checkpoint is None else read_progress(checkpoint).seconds / 60


def _minutes_of_augmentation(folders: Sequence[Path]) -> float:
    """Of making each augmented data set that the runs were trained on."""
    manifests = {manifest["content"]: manifest for manifest in map(load_manifest, folders)}
    return (
        float(
            sum(
                manifest["seconds"] for manifest in manifests.values() if "augmentation" in manifest
            )
        )
        / 60
    )


def _last_evaluation(folder: Path, split: str, keys: Sequence[str]) -> dict[str, Any]:
    """The facts and the scores under these keys of the run's last evaluation on a split; empty if
    there is none.

    Evaluations with other decoding settings or as part of an ensemble do not count.
    """
    events = [
        event
        for event in read_events(folder / "evaluation" / "history.jsonl")
        if event.get("split") == split
        and not event.get("overrides")
        and "members" not in event.get("provenance", {})
    ]
    if not events:
        return {}
    scores = {score["metric"]: score["score"] for key in keys for score in events[-1][key]}
    return {**events[-1], **scores}


def to_table(runs: Sequence[RunFigures]) -> str:
    """Markdown."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    lines += [f"| {' | '.join(_cells(group))} |" for group in _group_by_recipe(runs)]
    return "\n".join(lines)


def _group_by_recipe(runs: Sequence[RunFigures]) -> Iterator[list[RunFigures]]:
    """The runs whose configurations are the same, apart from the seed."""
    groups: dict[str, list[RunFigures]] = {}
    for run in runs:
        groups.setdefault(run.config.model_copy(update={"seed": 0}).model_dump_json(), []).append(
            run
        )
    yield from groups.values()


def _cells(group: Sequence[RunFigures]) -> list[str]:
    seeds = ", ".join(str(run.config.seed) for run in group)
    averages = [
        f"{statistics.mean(getattr(run, name) for run in group):,.0f}"
        for name in ("minutes", "total")
    ]
    scores = [
        _mean_and_deviation([getattr(run, name) for run in group])
        for name in ("dev_bleu", "bleu", "chrf")
    ]
    speeds = [run.speed for run in group if run.speed is not None]
    speed = f"{statistics.mean(speeds):,.0f}" if speeds else MISSING
    return [group[0].config.name, seeds, f"{group[0].parameters:.1f} M", *averages, *scores, speed]


def _mean_and_deviation(values: Sequence[float | None]) -> str:
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return MISSING
    deviation = f" ± {statistics.stdev(numbers):.1f}" if len(numbers) > 1 else ""
    return f"{statistics.mean(numbers):.1f}{deviation}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Print a table of finished runs in Markdown.")
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="run folder, evaluated on dev and test"
    )
    try:
        print(to_table([measure(folder) for folder in parser.parse_args(arguments).runs]))
    except NmtError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
