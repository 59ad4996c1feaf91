"""Train models that also learn from the translations of earlier models (data diversification,
Nguyen 2020), as one command.

    python scripts/diversify.py FORWARD.yaml BACKWARD.yaml -o FOLDER [--teachers N] [--more-teachers
        NAME KEY=VALUE...] [--seeds 1 2 3] [--forward-only] [--set KEY=VALUE]

The two configurations are for the same pairs, in opposite directions. The teachers train on the
original pairs, with the configurations as they are and the seeds from 1 to `--teachers`. So do
those of `--more-teachers`, with other values of some keys, in both directions. They translate the
training pairs (`nmt augment`). The students train on the original and the synthetic pairs, with the
keys of `--set` and each of `--seeds`. With `--set training.distillation=0.5`, they also learn the
probabilities of the teachers of their direction. Keys of `decoding` are for the translations of the
teachers alone.

The runs are FOLDER/teachers/forward-SEED and backward-SEED, with more teachers also
forward-NAME-SEED, and FOLDER/students/forward-SEED and backward-SEED; FOLDER/data has the training
data of the students. At the end, the students are scored on dev and test, and the table of
scripts/recipes.py is printed. After an interruption, repeat the command: it continues. For other
settings, name another FOLDER.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nmt.config.load import load_config
from nmt.errors import ConfigError, NmtError
from scripts import recipes


@dataclass(frozen=True)
class Side:
    """One of the two directions.

    Attributes:
        prepared: the folder of its original pairs. target: the code of its target language.
        teachers: the keys to change for its teachers, by the beginning of the names of their runs.
        distills: whether its students also learn the probabilities of its teachers.
    """

    name: str
    config: Path
    prepared: Path
    target: str
    teachers: dict[str, list[str]]
    distills: bool


def open_sides(
    forward: Path, backward: Path, more_teachers: Sequence[Sequence[str]], overrides: Sequence[str]
) -> list[Side]:
    """more_teachers: each a name, then the keys to change.

    Raises: ConfigError: a configuration is invalid, the directions are not opposite, or a teacher
    lacks its own name, or keys.
    """
    configs = [load_config(path) for path in (forward, backward)]
    if configs[1].data.direction != configs[0].data.opposite_direction:
        directions = " and ".join(config.data.direction for config in configs)
        raise ConfigError(
            f"{backward}: the two configurations need opposite directions, not {directions}"
        )
    for name, *keys in more_teachers:
        if "=" in name or "/" in name or not keys:
            reason = "needs a name, then keys to change, for example wide model.dropout=0.3"
            raise ConfigError(f"--more-teachers {' '.join([name, *keys])}: {reason}")
    names = [name for name, *_ in more_teachers]
    if len(set(names)) < len(names):
        raise ConfigError(f"--more-teachers: the names {' '.join(names)} must differ")
    sides = []
    for side, path, config in zip(
        ("forward", "backward"), (forward, backward), configs, strict=True
    ):
        changed = load_config(path, overrides)  # an error now, not after hours of training
        teachers: dict[str, list[str]] = {side: []}
        for name, *keys in more_teachers:
            load_config(path, keys)
            teachers[f"{side}-{name}"] = keys
        target = config.data.direction.split("-")[1]
        sides.append(
            Side(
                side,
                path,
                config.prepared_folder,
                target,
                teachers,
                changed.training.distillation > 0,
            )
        )
    return sides


def train_teachers(sides: Sequence[Side], folder: Path, number: int) -> list[list[Path]]:
    """The runs of each side, on the original pairs."""
    for side in sides:
        if not side.prepared.exists():
            _nmt("prepare", "-c", side.config)
    return [
        [
            _train(side.config, folder / "teachers" / f"{name}-{seed}", seed, keys)
            for name, keys in side.teachers.items()
            for seed in range(1, number + 1)
        ]
        for side in sides
    ]


def train_students(
    side: Side,
    teachers: Sequence[Path],
    opposite: Sequence[Path],
    folder: Path,
    seeds: Sequence[int],
    overrides: Sequence[str],
) -> list[Path]:
    """Translate, and train the runs of one side. opposite: the teachers of the other side."""
    data = folder / "data" / side.name
    options = [f"--forward={run}" for run in teachers] + [f"--backward={run}" for run in opposite]
    options += [f"--teacher={run}" for run in teachers if side.distills]
    decoding = [override for override in overrides if override.strip().startswith("decoding.")]
    options += [f"--set={override}" for override in decoding]
    _nmt("augment", side.prepared, "-o", data, *options, "--translations", folder / "translations")
    keys = [
        f"data.prepared={data}",
        *(override for override in overrides if override not in decoding),
    ]
    return [
        _train(side.config, folder / "students" / f"{side.name}-{seed}", seed, keys)
        for seed in seeds
    ]


def _train(config: Path, run: Path, seed: int, overrides: Sequence[str] = ()) -> Path:
    keys = [f"--set={override}" for override in (*overrides, f"seed={seed}")]
    _nmt("train", "-c", config, "-o", run, "--resume", *keys)
    return run


def _nmt(*arguments: str | Path) -> None:
    """With its output on the terminal. Raises: SystemExit if it fails; its error is on the terminal
    already.
    """
    words = [str(argument) for argument in arguments]
    print("nmt", *words, flush=True)
    if status := subprocess.run([sys.executable, "-m", "nmt", *words], check=False).returncode:
        raise SystemExit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Train on the translations of earlier models, in both directions."
    )
    parser.add_argument("forward", type=Path, help="configuration")
    parser.add_argument("backward", type=Path, help="configuration of the opposite direction")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="for runs, data and translations",
    )
    parser.add_argument(
        "--teachers", type=int, default=1, help="teachers of each direction (%(default)s)"
    )
    more_help = (
        "further teachers of each direction: their name, and keys to change; may be repeated"
    )
    metavar = ("NAME", "KEY=VALUE")
    parser.add_argument(
        "--more-teachers", nargs="+", action="append", default=[], metavar=metavar, help=more_help
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="of the students (1)")
    parser.add_argument(
        "--forward-only", action="store_true", help="train no student of the opposite direction"
    )
    set_help = "change a key for the students, or a decoding key for the translations"
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=set_help)
    options = parser.parse_args(arguments)
    if options.teachers < 1:
        parser.error("--teachers must be at least 1")
    folder = options.output
    try:
        sides = open_sides(options.forward, options.backward, options.more_teachers, options.set)
        forward, backward = train_teachers(sides, folder, options.teachers)
        work = [(sides[0], forward, backward)]
        if not options.forward_only:
            work.append((sides[1], backward, forward))
        students = list[Path]()
        for side, teachers, opposite in work:
            students += train_students(side, teachers, opposite, folder, options.seeds, options.set)
        for run in students:
            figures = recipes.measure(run)
            if figures.dev_bleu is None:
                _nmt("evaluate", run, "--split", "dev")
            if figures.bleu is None:
                _nmt("evaluate", run)
        print(recipes.to_table([recipes.measure(run) for run in students]))
    except NmtError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
