"""Measure how `nmt prepare` and the start of `nmt train` grow with the number of pairs.

    python scripts/grow_corpus.py deu-eng.zip grown.tsv --pairs 1700000
    python scripts/measure_growth.py deu-eng.zip grown.tsv -o build/growth [--config
    configs/tatoeba.yaml] [--set key=value]...

Prepares each table with one worker, and trains on it for `--updates` updates in one process, each
in a new process. For each table it prints a line of JSON, and adds it to growth.jsonl in the output
folder:

- prepare: CPU seconds of both processes, in microseconds a pair, and on the clock; the peak memory
  of the main process and of the worker; bytes of the result, and the most bytes on the disk while
  it runs;
- train: seconds on the clock, and of CPU, from the start of the process to the first update; the
  memory that the process does not share with the files after the last update, and its peak. Parts
  of files that are mapped count in the peak.

A prepared folder that exists is not prepared again; then there are no figures for it. It needs
Linux, whose /proc has the figures.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import nmt
from nmt.files import read_json

SECONDS_BETWEEN_LOOKS = 0.1


def main() -> None:
    """Parse the command line, and measure each table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tables", type=Path, nargs="*", help="files with pairs")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("build/growth"), help="folder to write"
    )
    parser.add_argument("--config", type=Path, default=Path("configs/tatoeba.yaml"))
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change the configuration",
    )
    parser.add_argument("--updates", type=int, default=50, help="of each training")
    # The time at which `measure_training` started this process.
    parser.add_argument("--started", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.started is not None:
        print(
            json.dumps(
                train(
                    options.config,
                    options.overrides,
                    options.output,
                    options.updates,
                    options.started,
                )
            )
        )
        return
    options.output.mkdir(parents=True, exist_ok=True)
    for table in options.tables:
        prepared = options.output / f"{table.stem}-prepared"
        overrides = [
            *options.overrides,
            f"data.source.path={table}",
            f"data.prepared={prepared}",
            "data.workers=1",
        ]
        figures = (
            {} if prepared.exists() else measure_preparation(options.config, overrides, prepared)
        )
        pairs = read_json(prepared / "manifest.json")["counts"]["read"]
        training = measure_training(
            options.config, overrides, options.output / f"{table.stem}-run", options.updates
        )
        line = json.dumps({"table": table.name, "pairs": pairs, **figures, **training})
        print(line, flush=True)
        with (options.output / "growth.jsonl").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def measure_preparation(config: Path, overrides: Sequence[str], prepared: Path) -> dict[str, Any]:
    """Prepare, and return the figures."""
    command = [
        sys.executable,
        "-m",
        "nmt",
        "prepare",
        "-q",
        "-c",
        str(config),
        *with_overrides(overrides),
        "-o",
        str(prepared),
    ]
    start_time, process, disk, memory = time.monotonic(), subprocess.Popen(command), 0, 0
    while True:
        memory = max(memory, 1024 * kilobytes("VmHWM", process.pid))
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        disk = max(
            disk, sum(size_of(path) for path in prepared.parent.glob(f".{prepared.name}*/**/*"))
        )
        time.sleep(SECONDS_BETWEEN_LOOKS)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    seconds, manifest = time.monotonic() - start_time, read_json(prepared / "manifest.json")
    cpu = usage.ru_utime + usage.ru_stime
    return {
        "prepare_cpu_seconds": round(cpu, 1),
        "prepare_microseconds_per_pair": round(1e6 * cpu / manifest["counts"]["read"], 1),
        "prepare_seconds": round(seconds, 1),
        "prepare_memory_mb": round(memory / 1e6, 1),
        "worker_memory_mb": round((manifest["peak_memory"] - memory) / 1e6, 1),
        "prepared_mb": round(sum(manifest["files"].values()) / 1e6, 1),
        "prepare_disk_mb": round(disk / 1e6, 1),
    }


def measure_training(
    config: Path, overrides: Sequence[str], run: Path, updates: int
) -> dict[str, Any]:
    """Start a training in a new process, and return the figures."""
    shutil.rmtree(run, ignore_errors=True)
    arguments = [
        "--config",
        config,
        "-o",
        run,
        "--updates",
        updates,
        "--started",
        time.monotonic(),
        *with_overrides(overrides),
        "-",
    ]
    output = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    shutil.rmtree(run)
    figures: dict[str, Any] = json.loads(output)
    return figures


def train(
    config: Path, overrides: Sequence[str], run: Path, updates: int, started: float
) -> dict[str, Any]:
    """Make some updates in this process, which started at `started`, and return the figures."""
    from nmt.training.events import (
        StepEvent,
    )  # here, since Linux adds the memory of this process to the peak of those it starts

    first: dict[str, float] = {}
    with closing(nmt.train_events(config, overrides=overrides, folder=run)) as events:
        for event in events:
            if isinstance(event, StepEvent) and not first:
                first = {
                    "first_update_seconds": time.monotonic() - started,
                    "first_update_cpu_seconds": time.process_time(),
                }
            if isinstance(event, StepEvent) and event.step >= updates:
                break
        memory = {
            "train_memory_mb": kilobytes("RssAnon") / 1e3,
            "train_peak_mb": kilobytes("VmHWM") / 1e3,
        }
    return {key: round(value, 1) for key, value in (first | memory).items()}


def with_overrides(overrides: Sequence[str]) -> list[str]:
    """As arguments of a command."""
    return [argument for override in overrides for argument in ("--set", override)]


def size_of(path: Path) -> int:
    """The bytes of a file; 0 if it is gone."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


def kilobytes(key: str, process: int | str = "self") -> int:
    """A figure of a process in /proc; 0 if the process has ended."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{key}:")), 0)


if __name__ == "__main__":
    main()
