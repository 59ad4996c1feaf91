"""Train models on the translations of earlier models, in both directions: data diversification (Nguyen 2020), as one command.

    python scripts/diversify.py FORWARD.yaml BACKWARD.yaml -o FOLDER [--rounds N] [--teachers N] [--seeds 1 2 3] [--set KEY=VALUE]

The two configurations are for the same pairs, in opposite directions. Round 0 trains on the original pairs, with the configurations
as they are and the seeds from 1 to `--teachers`. In each later round, all runs of the rounds before translate the training pairs
(`nmt augment`), and new models train on the original and the synthetic pairs, with the keys of `--set`. With
`--set training.distillation=0.5`, they also learn the probabilities of the earlier models of their direction. The last round trains
with each of `--seeds`, a round before it only with the first.

The runs are FOLDER/round-R/forward-SEED and backward-SEED; FOLDER/round-R/forward and backward are prepared data. At the end, the
runs of the last round are scored on dev and test, and the table of scripts/recipes.py is printed. After an interruption, repeat the
command: it continues. For other settings, name another FOLDER.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nmt.config.load import load
from nmt.errors import ConfigError, NmtError
from scripts import recipes


@dataclass(frozen=True)
class Side:
    """One of the two directions.

    Attributes:
        prepared: the folder of its original pairs. target: the code of its target language.
        distills: whether rounds after round 0 also learn the probabilities of earlier models.
    """

    name: str
    config: Path
    prepared: Path
    target: str
    distills: bool


def open_sides(forward: Path, backward: Path, overrides: Sequence[str]) -> list[Side]:
    """Raises: ConfigError: a configuration is invalid, or the directions are not opposite."""
    configs = [load(path) for path in (forward, backward)]
    if configs[1].data.direction != configs[0].data.opposite_direction:
        directions = " and ".join(config.data.direction for config in configs)
        raise ConfigError(f"{backward}: the two configurations need opposite directions, not {directions}")
    sides = []
    for name, path, config in zip(("forward", "backward"), (forward, backward), configs, strict=True):
        changed = load(path, overrides)  # an error now, not after hours of training
        target = config.data.direction.split("-")[1]
        sides.append(Side(name, path, config.prepared_folder, target, changed.training.distillation > 0))
    return sides


def train_rounds(
    sides: Sequence[Side], folder: Path, n_rounds: int, n_teachers: int, seeds: Sequence[int], overrides: Sequence[str]
) -> list[list[Path]]:
    """The runs of the last round, for each side."""
    for side in sides:
        if not side.prepared.exists():
            _nmt("prepare", "-c", side.config)
    teachers = [[_train(side, folder / "round-0", seed) for seed in range(1, n_teachers + 1)] for side in sides]
    students: list[list[Path]] = []
    for number in range(1, n_rounds + 1):
        students = []
        for side, forward, backward in zip(sides, teachers, reversed(teachers), strict=True):
            data = folder / f"round-{number}" / side.name
            runs = [f"--forward={run}" for run in forward] + [f"--backward={run}" for run in backward]
            runs += [f"--teacher={run}" for run in forward if side.distills]
            _nmt("augment", side.prepared, "-o", data, *runs, "--translations", folder / "translations")
            keys = [f"data.prepared={data}", *overrides]
            students.append([_train(side, data.parent, seed, keys) for seed in (seeds if number == n_rounds else seeds[:1])])
        teachers = [old + new for old, new in zip(teachers, students, strict=True)]
    return students


def _train(side: Side, folder: Path, seed: int, overrides: Sequence[str] = ()) -> Path:
    run = folder / f"{side.name}-{seed}"
    keys = [f"--set={override}" for override in (*overrides, f"seed={seed}")]
    _nmt("train", "-c", side.config, "-o", run, "--resume", *keys)
    return run


def _nmt(*arguments: str | Path) -> None:
    """With its output on the terminal. Raises: SystemExit if it fails; its error is on the terminal already."""
    words = [str(argument) for argument in arguments]
    print("nmt", *words, flush=True)
    if status := subprocess.run([sys.executable, "-m", "nmt", *words], check=False).returncode:
        raise SystemExit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Train on the translations of earlier models, in both directions.")
    parser.add_argument("forward", type=Path, help="configuration")
    parser.add_argument("backward", type=Path, help="configuration of the opposite direction")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="for runs, data and translations")
    parser.add_argument("--rounds", type=int, default=1, help="of translation and training (%(default)s)")
    parser.add_argument("--teachers", type=int, default=1, help="runs of each direction on the original pairs (%(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="of the runs of the last round (1)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a key for the rounds after round 0")
    options = parser.parse_args(arguments)
    if min(options.rounds, options.teachers) < 1:
        parser.error("--rounds and --teachers must be at least 1")
    try:
        sides = open_sides(options.forward, options.backward, options.set)
        groups = train_rounds(sides, options.output, options.rounds, options.teachers, options.seeds, options.set)
        for side, runs in zip(sides, groups, strict=True):
            for run in runs:
                figures = recipes.measure(run)
                if figures.dev_bleu is None:
                    _nmt("evaluate", run, "--split", "dev")
                if figures.moses_bleu is None:
                    _nmt("evaluate", run, "--moses", side.target)
        print(recipes.to_table([recipes.measure(run) for runs in groups for run in runs]))
    except NmtError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
