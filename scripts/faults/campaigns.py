"""The campaigns: which faults they try with a command, and what must hold afterwards."""

import errno
import hashlib
import os
import random
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scripts.faults import judge
from scripts.faults.power_loss import RANDOM_NAME, Disk, State, crash_states, read_record
from scripts.faults.scenarios import (
    REPOSITORY,
    Scenario,
    copy_project,
    make_project,
    remove_missing,
)
from scripts.faults.trial import (
    ALL_KINDS,
    GROWING_KINDS,
    SYNC,
    WRITE,
    Fault,
    Laboratory,
    Outcome,
    workers_of,
)

MAX_TRIES = 3  # for a fault that may not come: at random times, or with a random size
PAGE = 4096  # bytes; what a tmpfs gives to a file at once


@dataclass(frozen=True)
class Trial:
    """A trial to run. fault: its description, which identifies it."""

    fault: dict[str, Any]
    run: Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Normal:
    """An undisturbed call.

    Attributes:
        contents: the SHA-256 that whole files may have: the old and the new one.
        changes: of files, by kind. start: the disk before the call. record: of its changes.
            seconds: of processor time.
    """

    files: judge.Files
    contents: dict[str, set[str]]
    changes: dict[int, int]
    seconds: float
    start: Disk
    record: Path


class Bench:
    """Where trials run: a laboratory, a template of its project, and the results of undisturbed
    calls.
    """

    def __init__(self, laboratory: Laboratory, folder: Path, seed: int) -> None:
        self.laboratory, self.folder, self.seed = laboratory, folder, seed
        self.template = folder / "template"
        self._normal: dict[str, Normal] = {}
        self._judged: dict[str, list[str]] = {}
        shutil.rmtree(laboratory.folder, ignore_errors=True)
        if not self.template.exists():
            make_project(laboratory.folder, self._run_well)
            laboratory.folder.rename(self.template)
        shutil.copytree(self.template, laboratory.folder)
        self._run_well("push", "run", REPOSITORY)

    def _run_well(self, *words: str) -> None:
        outcome = self.laboratory.run(words)
        if outcome.status:
            raise SystemExit(f"nmt {' '.join(words)}: {outcome.err}")

    def prepare(self, scenario: Scenario) -> None:
        """Make the project as it is before the command."""
        copy_project(self.template, self.laboratory.folder, scenario)

    def normal(self, scenario: Scenario) -> Normal:
        """The result of an undisturbed call."""
        if scenario.name not in self._normal:
            folder, record = (
                self.laboratory.folder,
                self.folder / f"{scenario.name.replace(' ', '')}.record",
            )
            self.prepare(scenario)
            contents = {name: {_digest(folder / name)} for name in scenario.whole}
            start = Disk(folder)
            outcome = self.laboratory.run(scenario.words, record=record)
            if outcome.status:
                raise SystemExit(f"nmt {' '.join(scenario.words)}: {outcome.err}")
            for name in scenario.whole:
                contents[name].add(_digest(folder / name))
            files = judge.read_files(folder)
            self._normal[scenario.name] = Normal(
                files, contents, outcome.changes, outcome.seconds, start, record
            )
        return self._normal[scenario.name]

    def judge_files(self, scenario: Scenario) -> list[str]:
        """Problems of the present files, and of those after the next call; equal states are judged
        once.
        """
        files = judge.read_files(self.laboratory.folder)
        key = hashlib.sha256(
            repr(
                (scenario.name, sorted((_fixed_name(name), each) for name, each in files.items()))
            ).encode()
        )
        if key.hexdigest() not in self._judged:
            normal = self.normal(scenario)
            problems = judge.judge_kept(self.laboratory.folder, scenario, normal.contents)
            problems += [
                f"{name}: {text}"
                for name in judge.complete_folders(self.laboratory.folder)
                if name not in scenario.kept
                for text in judge.diagnose(self.laboratory.folder, name)
            ]
            self._judged[key.hexdigest()] = problems + judge.judge_next_call(
                self.laboratory, scenario, normal.files
            )
        return self._judged[key.hexdigest()]

    def random(self, *words: object) -> random.Random:
        """A generator for a campaign and a command."""
        return random.Random(" ".join(map(str, (self.seed, *words))))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def _fixed_name(name: str) -> str:
    return "/".join(RANDOM_NAME.sub("X", part) for part in name.split("/"))


def _row(outcome: Outcome | None, problems: list[str], *, fired: bool) -> dict[str, Any]:
    """fired: whether the fault came. A trial without its fault proves nothing."""
    facts = {} if outcome is None else {"status": outcome.status, "line": outcome.last_line[:300]}
    return {**facts, "fired": fired, "problems": problems}


def _disturb(
    bench: Bench,
    scenario: Scenario,
    fault: Fault,
    on_stop: Callable[[int], None] | None = None,
    *,
    may_fail: bool = True,
    wrong_cause: str = "",
    has_fired: Callable[[Outcome], bool] = lambda outcome: outcome.fired,
) -> dict[str, Any]:
    """Run the command with a fault, then judge. wrong_cause: what its error must not say."""
    normal = bench.normal(scenario)
    bench.prepare(scenario)
    outcome = bench.laboratory.run(scenario.words, fault, on_stop=on_stop)
    fired = has_fired(outcome)  # before the next call changes what it looks at
    problems = judge.judge_messages(outcome, may_fail=may_fail)
    expected = {
        *(() if fault.to_worker else fault.signals),
        fault.value if fault.action == "signal" else 0,
    }
    expected |= {signal.SIGKILL} if "kill" in fault.action else set()
    if outcome.status is not None and outcome.status < 0 and -outcome.status not in expected:
        problems.append(f"dies of signal {-outcome.status}")
    if wrong_cause and wrong_cause in outcome.last_line:
        problems.append(f"blames another cause: {outcome.last_line}")
    if outcome.status == 0 and "nmt: " not in outcome.err:
        problems += judge.compare(normal.files, judge.read_files(bench.laboratory.folder))
    can_delete = fault.value != errno.EROFS or fault.action == "nothing"
    if (
        outcome.status is not None and outcome.status >= 0 and can_delete
    ):  # the command itself has cleaned up
        leftovers = [
            name
            for name in judge.leftovers(bench.laboratory.folder)
            if not name.endswith(".partial")
        ]
        names = [name for name in leftovers if name not in outcome.err]  # the others it has named
        problems += [f"leaves {', '.join(names)}"] if names else []
    return _row(outcome, problems + bench.judge_files(scenario), fired=fired)


def _trial(
    bench: Bench, scenario: Scenario, fault: Fault, facts: dict[str, Any] | None = None, **how: Any
) -> Trial:
    """facts: besides those of the fault. how: for `_disturb`."""
    own_facts = {
        key: value for key, value in asdict(fault).items() if value != getattr(Fault(), key)
    }
    return Trial({**own_facts, **(facts or {})}, partial(_disturb, bench, scenario, fault, **how))


def _moments(
    bench: Bench, scenario: Scenario, kinds: int, n_trials: int, *words: object
) -> list[int]:
    """Numbers of changes of these kinds: all, or a random sample."""
    count = sum(number for kind, number in bench.normal(scenario).changes.items() if kind & kinds)
    generator = bench.random(scenario.name, *words)
    return (
        list(range(1, count + 1))
        if count <= n_trials
        else sorted(generator.sample(range(1, count + 1), n_trials))
    )


def _any_moment(bench: Bench, scenario: Scenario, generator: random.Random) -> int:
    return generator.randrange(
        1, max(1, sum(bench.normal(scenario).changes.values())) + 1
    )  # `push` changes no files here


def undisturbed(bench: Bench, scenario: Scenario, _: int) -> Iterator[Trial]:
    """No fault: two calls give equal files. Otherwise the other campaigns would prove nothing."""
    yield _trial(bench, scenario, Fault(), may_fail=False, has_fired=lambda _: True)


def kill_at_changes(bench: Bench, scenario: Scenario, n_trials: int) -> Iterator[Trial]:
    """SIGKILL before each change of a file, and in the middle of each write."""
    for at in _moments(bench, scenario, WRITE, n_trials // 4, "halfway"):
        yield _trial(bench, scenario, Fault("kill-halfway", at, WRITE))
    for at in _moments(bench, scenario, ALL_KINDS, n_trials, "kill"):
        yield _trial(bench, scenario, Fault("kill", at))


def kill_at_times(bench: Bench, scenario: Scenario, n_trials: int) -> Iterator[Trial]:
    """SIGKILL at random times of the whole duration."""
    generator, seconds = bench.random(scenario.name, "times"), bench.normal(scenario).seconds
    for number in range(MAX_TRIES * n_trials):
        fault = Fault(after=round(generator.uniform(0, seconds), 4), signals=(signal.SIGKILL,))
        trial = _trial(
            bench, scenario, fault, has_fired=lambda outcome: outcome.status == -signal.SIGKILL
        )
        yield Trial({"action": "kill at a random time", "number": number}, trial.run)


def lose_power(bench: Bench, scenario: Scenario, n_trials: int) -> Iterator[Trial]:
    """The states of the disk that POSIX allows after a power loss."""
    normal = bench.normal(scenario)
    events = read_record(normal.record)
    states = list(
        crash_states(normal.start, events, max(2, n_trials // max(1, len(events))), bench.seed)
    )
    whole = {
        state.digest()
        for state in states
        if state.name == "killed" and state.after in (0, len(events))
    }
    states = [
        state for state in states if state.digest() not in whole
    ]  # something has happened, and not everything
    if len(states) > n_trials:
        states = bench.random(scenario.name, "power").sample(states, n_trials)

    def check(state: State) -> dict[str, Any]:
        shutil.rmtree(bench.laboratory.folder)
        state.write(bench.laboratory.folder)
        return _row(None, bench.judge_files(scenario), fired=True)

    for state in states:
        yield Trial(
            {"state": state.name, "after": state.after, "digest": state.digest()[:12]},
            partial(check, state),
        )


def send_signals(bench: Bench, scenario: Scenario, n_trials: int) -> Iterator[Trial]:
    """Ctrl-C once and twice, SIGTERM, SIGHUP, and SIGSTOP with SIGCONT."""
    generator, seconds = bench.random(scenario.name, "signals"), bench.normal(scenario).seconds
    kinds = (signal.SIGINT, None, signal.SIGTERM, signal.SIGHUP, signal.SIGSTOP)
    for number in range(MAX_TRIES * n_trials):
        at, after, kind = (
            _any_moment(bench, scenario, generator),
            generator.uniform(0.2, 0.95),
            kinds[number % len(kinds)],
        )
        if kind is None:
            fault = Fault(after=round(after * seconds, 4), signals=(signal.SIGINT, signal.SIGINT))
            yield Trial(
                {"action": "Ctrl-C twice", "number": number}, _trial(bench, scenario, fault).run
            )
        else:
            fault = Fault("signal", at, value=kind)
            yield _trial(
                bench, scenario, fault, {"number": number}, may_fail=kind != signal.SIGSTOP
            )


def _fail_with(
    action: str, number: int, kinds: int, bench: Bench, scenario: Scenario, n_trials: int
) -> Iterator[Trial]:
    name = errno.errorcode[number]
    for at in _moments(bench, scenario, kinds, n_trials, name):
        yield _trial(bench, scenario, Fault(action, at, kinds, number), {"error": name})


def small_disk(bench: Bench, scenario: Scenario, n_trials: int) -> Iterator[Trial]:
    """A real file system (tmpfs) with less free space than an undisturbed call takes. Needs the
    right to mount.
    """
    n_bytes: Counter[str] = Counter()  # by file
    for event in read_record(bench.normal(scenario).record):
        if event.kind == "write":
            n_bytes[event.fields[0]] += len(event.data)
    n_pages = sum(-(-size // PAGE) for size in n_bytes.values())
    for size in sorted(
        bench.random(scenario.name, "small").sample(range(n_pages), min(n_pages, n_trials))
    ):
        yield Trial(
            {"free_bytes": PAGE * size}, partial(_on_small_disk, bench, scenario, PAGE * size)
        )


def _on_small_disk(bench: Bench, scenario: Scenario, free: int) -> dict[str, Any]:
    folder = bench.laboratory.folder
    bench.normal(scenario)
    shutil.rmtree(folder)
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "nmt-campaign", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        raise SystemExit(
            "small-disk: mounting a tmpfs is not permitted here; leave this campaign out"
        )
    try:
        for path in bench.template.iterdir():
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, folder / path.name)
        remove_missing(folder, scenario)
        status = os.statvfs(folder)
        used = (status.f_blocks - status.f_bfree) * status.f_frsize
        subprocess.run(["mount", "-o", f"remount,size={used + free}", str(folder)], check=True)
        outcome = bench.laboratory.run(scenario.words)
        subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
        problems = judge.judge_messages(outcome, may_fail=True)
        return _row(outcome, problems + bench.judge_files(scenario), fired=outcome.disk_full)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def limit_memory(bench: Bench, scenario: Scenario, n_trials: int) -> Iterator[Trial]:
    """Less memory than the command needs."""
    generator = bench.random(scenario.name, "memory")
    for _ in range(MAX_TRIES * n_trials):
        memory = int(2 ** generator.uniform(20, 29))
        fault = Fault(memory=memory)
        yield _trial(
            bench,
            scenario,
            fault,
            wrong_cause="damaged",
            has_fired=lambda outcome: outcome.status != 0,
        )


def change_inputs(bench: Bench, scenario: Scenario, n_trials: int) -> Iterator[Trial]:
    """An input file vanishes, is cut off, grows or is replaced while the command runs. Then it is
    restored.
    """
    generator = bench.random(scenario.name, "inputs")
    for number in range(n_trials if scenario.inputs else 0):
        name, how, at = (
            generator.choice(scenario.inputs),
            generator.choice([*CHANGES]),
            _any_moment(bench, scenario, generator),
        )
        facts = {"input": name, "change": how, "at": at, "number": number}
        yield Trial(facts, partial(_with_changed_input, bench, scenario, name, how, at))


def _replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes()[::-1])
    other.replace(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "delete": Path.unlink,
    "cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "append": lambda path: path.open("ab").write(b"More.\tMehr.\n"),
    "replace": _replace,
}


def _with_changed_input(
    bench: Bench, scenario: Scenario, name: str, how: str, at: int
) -> dict[str, Any]:
    bench.normal(scenario)
    bench.prepare(scenario)
    path = bench.laboratory.folder / name
    content = path.read_bytes()
    outcome = bench.laboratory.run(
        scenario.words,
        Fault("signal", at, value=signal.SIGSTOP),
        on_stop=lambda _: CHANGES[how](path),
    )
    problems = judge.judge_messages(outcome, may_fail=True)
    if outcome.status is not None and outcome.status < 0:
        problems.append(f"dies of signal {-outcome.status}")
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    for kept in scenario.kept:
        problems += [f"{kept}: {text}" for text in judge.diagnose(bench.laboratory.folder, kept)]
    again = bench.laboratory.run(scenario.next_words)
    problems += [f"next call: {problem}" for problem in judge.judge_messages(again, may_fail=True)]
    return _row(outcome, problems, fired=outcome.fired)


def turn_clock_back(bench: Bench, scenario: Scenario, n_trials: int) -> Iterator[Trial]:
    """The clock goes back by a day, or by ten years."""
    generator = bench.random(scenario.name, "clock")
    for number in range(n_trials):
        at, days = _any_moment(bench, scenario, generator), generator.choice([1, 3650])
        yield _trial(
            bench,
            scenario,
            Fault("set-clock", at, value=-86400 * days),
            {"number": number},
            may_fail=False,
        )


def kill_workers(bench: Bench, scenario: Scenario, n_trials: int) -> Iterator[Trial]:
    """SIGKILL for a worker process at a change of a file, as of a system without memory."""
    if not scenario.name.startswith("prepare"):
        return
    for at in _moments(bench, scenario, ALL_KINDS, n_trials, "workers"):
        killed: list[int] = []
        fault = Fault("signal", at, value=signal.SIGSTOP)
        on_stop = partial(_kill_first_worker, killed)
        yield _trial(
            bench,
            scenario,
            fault,
            {"victim": "worker"},
            on_stop=on_stop,
            has_fired=lambda _, killed=killed: bool(killed),
        )


def _kill_first_worker(killed: list[int], process: int) -> None:
    for worker in workers_of(process)[:1]:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)


def signal_workers(bench: Bench, scenario: Scenario, n_trials: int) -> Iterator[Trial]:
    """Signals to one worker process at random times: it dies, or ignores Ctrl-C, or waits from
    SIGSTOP to SIGCONT.
    """
    if not scenario.name.startswith("prepare"):
        return
    generator, seconds = (
        bench.random(scenario.name, "worker signals"),
        bench.normal(scenario).seconds,
    )
    deadly = [(signal.SIGTERM,), (signal.SIGKILL,), (signal.SIGHUP,)]
    kinds = [*deadly, (signal.SIGINT,), (signal.SIGSTOP, signal.SIGCONT)]
    for number in range(MAX_TRIES * n_trials):
        signals, after = kinds[number % len(kinds)], round(generator.uniform(0, seconds), 4)
        trial = _trial(
            bench,
            scenario,
            Fault(after=after, signals=signals, to_worker=True),
            may_fail=signals in deadly,
        )
        yield Trial(
            {
                "action": "signal to a worker",
                "signals": [each.name for each in signals],
                "number": number,
            },
            trial.run,
        )


Campaign = Callable[[Bench, Scenario, int], Iterator[Trial]]
CAMPAIGNS: dict[str, Campaign] = {
    "undisturbed": undisturbed,
    "kill at changes": kill_at_changes,
    "kill at times": kill_at_times,
    "power loss": lose_power,
    "signals": send_signals,
    "disk full": partial(_fail_with, "fail-from-now-on", errno.ENOSPC, GROWING_KINDS),
    "quota": partial(_fail_with, "fail-from-now-on", errno.EDQUOT, GROWING_KINDS),
    "one I/O error": partial(_fail_with, "fail-once", errno.EIO, ALL_KINDS),
    "read-only": partial(_fail_with, "fail-from-now-on", errno.EROFS, ALL_KINDS & ~SYNC),
    "small disk": small_disk,
    "memory": limit_memory,
    "changed input": change_inputs,
    "clock": turn_clock_back,
    "killed worker": kill_workers,
    "worker signals": signal_workers,
}
