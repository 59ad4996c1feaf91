"""Train every configuration twice for a few updates, in two processes, and compare the SHA-256 of
the weights.

    python scripts/check_determinism.py -o FOLDER [--steps 3] [--pairs 20000] [--tatoeba
    deu-eng.zip] [CONFIG]...

Models, batches and settings are those of the configurations (default: all in configs/); only the
data is cut to `--pairs`. Paths of data are relative to the present folder. The two processes differ
in the seed of Python's hashes, so that the order of a set cannot decide about weights. At the end
comes a table in Markdown; exit status 1 if weights differ.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.commands import prepare, train
from nmt.config.load import load
from nmt.config.schema import Config
from nmt.files import sha256_of
from nmt.run.checkpoint import MODEL_FILE, OPTIMIZER_FILE
from nmt.run.folder import open_checkpoints

ROOT = Path(__file__).resolve().parent.parent
HASH_SEEDS = ("1", "2")
SMALL_EVALUATIONS = (
    "training.validation_pairs=4",
    "training.final_pairs=4",
    "training.validate_every=1000000",
)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "configs", nargs="*", type=Path, metavar="CONFIG", help="default: all in configs/"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="for prepared data and runs",
    )
    parser.add_argument(
        "--steps", type=int, default=3, metavar="N", help="updates of each training"
    )
    parser.add_argument("--pairs", type=int, default=20_000, metavar="N", help="of data, at most")
    parser.add_argument(
        "--tatoeba",
        type=Path,
        metavar="FILE",
        help="a copy of the data that configurations download",
    )
    parser.add_argument(
        "--child", metavar="NAME", help=argparse.SUPPRESS
    )  # only train, and print a line for each configuration
    options = parser.parse_args()
    options.configs = options.configs or sorted((ROOT / "configs").glob("*.yaml"))
    if options.child:
        for path in options.configs:
            config = cut(load(path), options.pairs, options.steps, options.tatoeba, options.output)
            print(
                json.dumps(
                    [config.name, *digests(config, options.output / options.child / config.name)]
                ),
                flush=True,
            )
    else:
        sys.exit(compare(options.configs))


def cut(config: Config, pairs: int, steps: int, tatoeba: Path | None, folder: Path) -> Config:
    """The configuration with less data and fewer updates; its prepared data is in `folder`."""
    overrides = [
        f"data.prepared={folder / config.prepared_folder.name}",
        f"training.max_steps={steps}",
        *SMALL_EVALUATIONS,
    ]
    overrides.append(f"data.max_pairs={min(pairs, config.data.max_pairs or pairs)}")
    if config.data.dev is None:
        overrides += ["data.split.dev=20", "data.split.test=20"]
    if config.data.source.url is not None and tatoeba is not None:
        overrides.append(f"data.source.path={tatoeba}")
    return load(config, overrides)


def digests(config: Config, folder: Path) -> tuple[int, str, str]:
    """Train into a new folder: the last step, and the SHA-256 of weights and optimizer. Prepares
    the data if it is missing.
    """
    if not config.prepared_folder.exists():
        prepare.run(config, progress=False)
    progress = train.run(config, folder, device="cpu", quiet=True)
    checkpoint = open_checkpoints(folder, config).find("last")
    assert checkpoint is not None, "a training ends with a checkpoint"
    return progress.step, sha256_of(checkpoint / MODEL_FILE), sha256_of(checkpoint / OPTIMIZER_FILE)


def compare(configs: Sequence[Path]) -> int:
    """Run the two processes, and print the table. Returns the exit status."""
    results = []
    for seed in HASH_SEEDS:
        words = [sys.executable, *sys.argv, "--child", f"seed{seed}"]
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONHASHSEED": seed}
        output = subprocess.run(
            words, env=environment, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        results.append([json.loads(line) for line in output.splitlines()])
    print(
        "| configuration | updates | SHA-256 of the weights | of the optimizer | second "
        "training "
        "|\n|---|---:|---|---|---|"
    )
    for first, second in zip(*results, strict=True):
        name, step, weights, optimizer = first
        verdict = (
            "the same" if first == second else f"**differs**: {second[2][:12]}, {second[3][:12]}"
        )
        print(f"| `{name}` | {step} | `{weights[:12]}` | `{optimizer[:12]}` | {verdict} |")
    return int(results[0] != results[1] or len(results[0]) != len(configs))


if __name__ == "__main__":
    main()
