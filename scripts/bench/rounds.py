"""Measures systems in turn, round after round, each in a new process, so that other load on the
machine affects all alike.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nmt.errors import NmtError
from scripts.bench import peers

FOLDER = Path(__file__).resolve().parent

Figures = dict[str, Any]


class BenchError(NmtError):
    """A system that cannot be measured."""


@dataclass
class BenchSystem:
    """A measured system.

    Attributes:
        run: measures one round, given its number.
        rounds: the figures of the rounds so far.
        error: why it is no longer measured.
    """

    name: str
    run: Callable[[int], Figures]
    rounds: list[Figures] = field(default_factory=list)
    error: str | None = None


def run_rounds(systems: Sequence[BenchSystem], rounds: int, essential: str) -> None:
    """Measure all systems in turn. A system that fails is not measured again.

    Raises:
        BenchError, PeerError: a system whose name begins with `essential` failed.
    """
    for number in range(rounds):
        for system in systems:
            if system.error is None:
                _run_round(system, number, rounds, essential)


def _run_round(system: BenchSystem, number: int, rounds: int, essential: str) -> None:
    load_average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    try:
        figures = system.run(number)
    except (BenchError, peers.PeerError) as error:
        if system.name.startswith(essential):
            raise
        system.error = str(error)
        print(f"{system.name}: {error}", file=sys.stderr)
        return
    system.rounds.append({**figures, "load_average": load_average})
    speed, busy = (
        f"{figures['tokens_per_second']:,.0f} tokens/s",
        "" if load_average is None else f", load {load_average:.2f}",
    )
    print(f"round {number + 1} of {rounds}: {system.name} {speed}{busy}", file=sys.stderr)


def environment_of(threads: int) -> dict[str, str]:
    """The environment of this process, with `threads` threads for numerical libraries."""
    return {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYTHONUNBUFFERED": "1",
    }


def work(job: Figures, environment: Mapping[str, str], script: str = "worker.py") -> Figures:
    """Run a job in a new process of a script in this folder. Raises: BenchError: it failed."""
    result = subprocess.run(
        [sys.executable, FOLDER / script],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        env=dict(environment),
        check=False,
    )
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no output"])[-1]
        raise BenchError(f"{job['system']}: failed with exit status {result.returncode}: {last}")
    figures: Figures = json.loads(result.stdout.splitlines()[-1])
    return figures


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def show(value: float | None, form: str, unit: float = 1.0) -> str:
    """A cell of the table, empty for an unknown value."""
    return "" if value is None else form.format(value / unit)


def machine() -> Figures:
    """A description of this machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": available_cores(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": version("torch"),
    }


def interpreter(text: str) -> tuple[str, Path]:
    """The value of `--peer-python`."""
    name, separator, path = text.partition("=")
    if not separator or name not in peers.PEERS:
        raise argparse.ArgumentTypeError(
            f"{text}: write SYSTEM=PYTHON, where SYSTEM is {' or '.join(peers.PEERS)}"
        )
    return name, Path(path).expanduser().absolute()


def positive(text: str) -> float:
    """A number above 0."""
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text}: must be greater than 0")
    return value
