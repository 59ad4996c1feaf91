"""nmt.data.workers: how worker processes work and stop."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.data.workers import peak_memory, start_workers, worker_count
from nmt.errors import DataError


def double(number: int) -> int:
    time.sleep(0.01 * (number % 3))
    return 2 * number


def fail(number: int) -> int:
    raise DataError(f"number {number}")


def test_one_worker_per_core_by_default() -> None:
    assert worker_count(3) == 3
    assert 1 <= worker_count(None) <= 8


@pytest.mark.parametrize("count", [1, 3])
def test_results_come_in_order_and_calls_are_taken_as_needed(count: int) -> None:
    drawn: list[int] = []

    def calls() -> Iterator[tuple[int]]:
        for number in range(30):
            drawn.append(number)
            yield (number,)

    with start_workers(count) as workers:
        for index, result in enumerate(workers.map(double, calls())):
            assert result == 2 * index
            assert len(drawn) <= index + 1 + 2 * count
    assert multiprocessing.active_children() == []


# The memory suffices for the stack of a thread, but not for its start: Python would wait for that
# forever.
WITH_LITTLE_MEMORY = """
import resource
from nmt.data.workers import start_workers
from nmt.errors import DataError
for megabytes in (8, 16, 64):
    for kilobytes in (40, 100):
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        limit = used + (megabytes << 20) + (kilobytes << 10)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        try:
            with start_workers(1):
                pass
        except DataError as error:
            print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_without_memory_for_threads_nothing_starts_and_nothing_waits() -> None:
    script = [sys.executable, "-c", WITH_LITTLE_MEMORY]
    result = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert (
        result.stderr + result.stdout
        == 6 * "memory ran out; fewer workers need less: data.workers=1\n"
    )


def test_an_error_in_a_worker_is_raised_and_stops_all() -> None:
    with pytest.raises(DataError, match="number 5"), start_workers(2) as workers:
        list(workers.map(fail, [(5,), (6,)]))
    assert multiprocessing.active_children() == []


def test_a_worker_that_dies_is_reported() -> None:
    with (
        pytest.raises(DataError, match=r"a worker process died.*data\.workers=1"),
        start_workers(2) as workers,
    ):
        list(workers.map(os._exit, [(9,)]))


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")
def test_the_end_does_not_wait_for_a_worker_that_never_ends() -> None:
    with start_workers(2) as workers:
        worker = workers.submit(os.getpid).result()
        os.kill(worker, signal.SIGSTOP)
        rescue = threading.Timer(30, os.kill, (worker, signal.SIGCONT))
        rescue.start()
    assert rescue.is_alive()
    rescue.cancel()
    assert multiprocessing.active_children() == []


# A script as users write them, without a guard of `__name__`.
SCRIPT = """
import time
from nmt.data.workers import start_workers
with start_workers(2) as workers:
    list(workers.map(time.sleep, [(0.1,)] * 4))  # both have started then
    print("started", flush=True)
    try:
        list(workers.map(time.sleep, [(60,)] * 10))
    except KeyboardInterrupt:
        print("stopped")
        raise SystemExit(7) from None
"""


@pytest.fixture
def process() -> "Iterator[subprocess.Popen[str]]":
    """Its workers have the same pipes, so `communicate` waits for their end, too."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "started\n"
        time.sleep(0.2)
        yield started


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
def test_ctrl_c_ends_everything_quietly(process: "subprocess.Popen[str]") -> None:
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=10) == ("stopped\n", "")
    assert process.returncode == 7


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
def test_workers_end_with_a_killed_parent(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate(timeout=10)


def test_the_peak_of_memory_is_unknown_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    peak = peak_memory()
    assert peak is None or peak > 1e6
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory() is None
