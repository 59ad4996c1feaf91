"""Train several systems for the same time on the same data, score them on the same test split, and
print a table.

    python scripts/compare_systems.py [--minutes 10] [--base configs/tatoeba-luong.yaml] [--output
    runs/compare] [CONFIG...]

Each CONFIG gives only the model and the teacher forcing; data, optimization and search are those of
the base configuration, whose data must be prepared. The systems run one after the other, so that
each has the whole machine. Results in the output folder are used again.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.config.load import config_from_dict, load_config
from nmt.config.schema import Config
from nmt.config.yaml_text import dump
from nmt.errors import NmtError
from nmt.files import write_text

ROOT = Path(__file__).resolve().parent.parent
SYSTEMS = (
    "luong-tutorial",
    "bahdanau-tutorial",
    "birnn-linear",
    "birnn-additive",
    "multiplicative",
    "rnnsearch",
    "luong-global",
    "tatoeba-luong",
)
COLUMNS = ("system", "parameters", "steps", "tokens/s", "dev perplexity", "BLEU", "chrF")


def merge(base: Config, system: Config, minutes: float) -> Config:
    """The base configuration with the model and the teacher forcing of `system`, and `minutes` of
    training.
    """
    values = base.to_dict()
    values["name"] = system.name
    values["data"]["prepared"] = str(base.prepared_folder)
    values["model"] = system.to_dict()["model"]
    values["training"]["teacher_forcing"] = system.to_dict()["training"]["teacher_forcing"]
    values["training"]["max_minutes"] = minutes
    return config_from_dict(values)


def measure(config: Config, folder: Path) -> dict[str, Any]:
    """Train and evaluate with the command line, as a user would; reads the figures of a run that
    was measured before.
    """
    results = folder / f"{config.name}.json"
    if not results.exists():
        file = folder / f"{config.name}.yaml"
        write_text(file, dump(config))
        run = folder / config.name
        run_nmt("train", "-c", str(file), "-o", str(run), "--resume")
        evaluation = json.loads(run_nmt("evaluate", str(run), "--split", "test", "--json"))
        write_text(results, json.dumps(_figures(config, run, evaluation), indent=2))
    figures: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    return figures


def run_nmt(*arguments: str) -> str:
    """What the command prints; its messages go to the terminal. Raises: SystemExit if it fails."""
    result = subprocess.run(
        [sys.executable, "-m", "nmt", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if result.returncode:
        raise SystemExit(f"nmt {' '.join(arguments)}: exit status {result.returncode}")
    return result.stdout


def _figures(config: Config, run: Path, evaluation: dict[str, Any]) -> dict[str, Any]:
    events = [
        json.loads(line)
        for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    validations = [event for event in events if event["event"] == "validation"]
    speeds = [event["tokens_per_second"] for event in events if event["event"] == "train"]
    if not speeds:
        raise SystemExit(f"{run}: trained for less than training.log_every steps; raise --minutes")
    return {
        "system": config.name,
        "parameters": _count_parameters(config),
        "steps": validations[-1]["step"],
        "tokens_per_second": statistics.median(speeds),
        "perplexity": min(event["perplexity"] for event in validations),
        "scores": evaluation["scores"],
    }


def _count_parameters(config: Config) -> int:
    from nmt.run.folder import build_model

    return sum(
        parameter.numel() for parameter in build_model(config.prepared_folder, config).parameters()
    )


def to_table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    for row in rows:
        bleu, chrf = row["scores"][0], row["scores"][1]
        low, high = bleu["interval"]
        quality = [f"{bleu['score']:.1f} [{low:.1f}, {high:.1f}]", f"{chrf['score']:.1f}"]
        speed, perplexity = f"{row['tokens_per_second']:,.0f}", f"{row['perplexity']:.2f}"
        cells = [
            row["system"],
            f"{row['parameters'] / 1e6:.1f} M",
            f"{row['steps']:,}",
            speed,
            perplexity,
        ]
        lines.append(f"| {' | '.join([*cells, *quality])} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare systems after equal training time.")
    parser.add_argument(
        "configs",
        nargs="*",
        type=Path,
        help="configurations (default: the systems of the literature)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=10,
        help="training time of each system, validation included (%(default)s)",
    )
    parser.add_argument(
        "--base",
        type=Path,
        default=ROOT / "configs/tatoeba-luong.yaml",
        help="data, optimization, search (%(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("runs/compare"),
        help="folder for runs and figures (%(default)s)",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of the base"
    )
    options = parser.parse_args(arguments)
    try:
        base = load_config(options.base, options.set)
        systems = [
            load_config(path)
            for path in options.configs or [ROOT / f"configs/{name}.yaml" for name in SYSTEMS]
        ]
        options.output.mkdir(parents=True, exist_ok=True)
        print(
            to_table(
                [
                    measure(merge(base, system, options.minutes), options.output.absolute())
                    for system in systems
                ]
            )
        )
    except NmtError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
