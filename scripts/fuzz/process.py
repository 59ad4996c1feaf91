"""Runs the cases of a target in a child process: so a crash of the interpreter costs one case, and
memory has a limit.
"""

import ctypes
import logging
import multiprocessing
import random
import shutil
import signal
import string
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from nmt.errors import NmtError
from scripts.fuzz.inputs import mutate
from scripts.fuzz.targets import TARGETS, Target

CHUNK = 50_000  # cases of a process
SECONDS, EXTRA_BYTES = (
    10,
    2 << 30,
)  # of processor time for a case; of memory for all cases of a process
HANG_SECONDS = 600  # a case that takes so long, without processor time, hangs
SAVE_SECONDS = 10


@dataclass
class Counts:
    """The cases of a target so far. slowest, seconds: processor time of the slowest case, and of
    all.
    """

    cases: int = 0
    accepted: int = 0
    refused: int = 0
    failed: int = 0
    slowest: float = 0.0
    seconds: float = 0.0


class LimitError(BaseException):
    """A case takes too long."""


class Shared(ctypes.Structure):
    """What a child process tells its parent. started: cases, with the present one."""

    _fields_ = (
        *((name, ctypes.c_long) for name in ("started", "accepted", "refused", "failed")),
        *((name, ctypes.c_double) for name in ("slowest", "seconds")),
    )


def case(name: str, seed: int, number: int, seeds: Any) -> bytes:
    """The input of a case."""
    return mutate(seeds, random.Random(f"{seed} {name} {number}"))


def run_case(target: Target, content: bytes, folder: Path) -> str | None:
    """None if nmt accepts the input; "refused", or the traceback of a failure."""
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        target.read(content, folder)
    except NmtError as error:
        return (
            "refused" if "\n" not in str(error).replace("\n  ", "") else f"several lines: {error}"
        )
    except (Exception, LimitError):  # noqa: BLE001 - this is what the campaign looks for
        return traceback.format_exc(limit=-6)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def _stop(*_: Any) -> None:
    raise LimitError(f"more than {SECONDS} seconds of processor time")


def limit_memory() -> None:
    """From now on, this process can have `EXTRA_BYTES` more than it has."""
    if sys.platform == "linux":
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + EXTRA_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def run_chunk(name: str, seed: int, numbers: range, folder: Path, work: Path, shared: Any) -> None:
    """Runs in a process of its own. work: a copy of the valid files."""
    warnings.simplefilter("ignore")  # they are no failures
    logging.disable()
    target = TARGETS[name]
    seeds = target.seeds(work)
    with suppress(NmtError):
        target.read(seeds[0], work)  # loads libraries and models
    limit_memory()
    before = time.process_time()
    for number in numbers:
        shared.started += 1
        content = case(name, seed, number, seeds)
        result = run_case(target, content, work)
        now = time.process_time()
        shared.seconds += now - before
        shared.slowest, before = max(shared.slowest, now - before), now
        if result is None:
            shared.accepted += 1
        elif result == "refused":
            shared.refused += 1
        else:
            save_failure(name, seed, number, content, result, folder)
            shared.failed += 1


@contextmanager
def work_folder(folder: Path) -> Iterator[Path]:
    """A copy of the valid files, in memory: a case writes a file, and a disk would take more time
    than all else.
    """
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        prefix="nmt-fuzz-", dir=memory if memory.is_dir() else None
    ) as name:
        yield shutil.copytree(folder / "files", Path(name) / "files")


def run_target(
    name: str, seed: int, n_cases: int, folder: Path, counts: Counts, save: Callable[[], None]
) -> None:
    """Run the cases that are left, chunk by chunk. save: called now and then, when `counts` have
    changed.
    """
    with work_folder(folder) as work:
        while counts.cases < n_cases:
            numbers = range(counts.cases, min(n_cases, counts.cases + CHUNK))
            crash = _run_process(name, seed, numbers, folder, work, counts, save)
            if crash is not None:
                number = counts.cases
                content = case(name, seed, number, TARGETS[name].seeds(folder / "files"))
                save_failure(name, seed, number, content, crash, folder)
                counts.failed += 1
                counts.cases += 1
                save()


def _run_process(
    name: str,
    seed: int,
    numbers: range,
    folder: Path,
    work: Path,
    counts: Counts,
    save: Callable[[], None],
) -> str | None:
    """Run some cases in a process, and count those that end. Returns what ended the process too
    early, if anything did.
    """
    has_server = "forkserver" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if has_server else "spawn")
    context.set_forkserver_preload(["scripts.fuzz.preload"])
    shared, old = context.RawValue(Shared), Counts(**asdict(counts))
    process = context.Process(target=run_chunk, args=(name, seed, numbers, folder, work, shared))

    def update() -> None:
        _update(counts, old, shared)
        save()

    process.start()
    try:
        crash = _watch(process, update, shared)
    finally:
        process.kill()
        process.join()
        update()
    if not shared.started:
        raise SystemExit(f"{name}: cannot start (status {process.exitcode})")
    return crash


def _watch(process: BaseProcess, update: Callable[[], None], shared: Any) -> str | None:
    """Wait for the end of a process. Returns what is wrong with its last case, if it did not end by
    itself.
    """
    started, since = 0, time.monotonic()
    while process.is_alive():
        process.join(SAVE_SECONDS)
        update()
        if shared.started != started:
            started, since = shared.started, time.monotonic()
        elif time.monotonic() - since > HANG_SECONDS:
            return f"hangs: not ended after {HANG_SECONDS} seconds"
    return None if process.exitcode == 0 else f"the interpreter crashed (status {process.exitcode})"


def _update(counts: Counts, old: Counts, shared: Any) -> None:
    """Add the finished cases of a chunk to those before it."""
    finished = shared.accepted + shared.refused + shared.failed
    counts.cases, counts.accepted, counts.refused = (
        old.cases + finished,
        old.accepted + shared.accepted,
        old.refused + shared.refused,
    )
    counts.failed, counts.slowest = (
        old.failed + shared.failed,
        max(old.slowest, round(shared.slowest, 3)),
    )
    counts.seconds = round(old.seconds + shared.seconds, 1)


def save_failure(
    name: str, seed: int, number: int, content: bytes, text: str, folder: Path
) -> None:
    """The input of a case that failed, and what happened."""
    stem = (
        folder
        / "failures"
        / f"{''.join(c if c in string.ascii_letters else '-' for c in name)}-{seed}-{number}"
    )
    stem.parent.mkdir(exist_ok=True)
    stem.with_suffix(".txt").write_text(text, encoding="utf-8", errors="replace")
    stem.with_suffix(".bin").write_bytes(content)
