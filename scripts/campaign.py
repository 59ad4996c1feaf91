"""Kill, interrupt and starve the commands of nmt at every moment, and check that nothing is lost.

    python scripts/campaign.py -o FOLDER [--trials 20] [--command NAME]... [--seed 1]

Each trial copies a small project, runs one command with one fault, and checks: it ends without a
traceback, and an error is one line; runs and prepared data that were complete before are intact
(`nmt runs check`), and a file that it replaces is the old or the new one; the next call ends with
the files of an undisturbed call: for a training, the same weights bit for bit. At the end comes a
table; where the fault did not come, a trial is only tried. Exit status 1 if one lost. Linux only.
"""

import argparse
import errno
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.sharedctypes import RawValue
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # before torch is imported

from matplotlib.figure import Figure  # noqa: E402

from nmt import cli  # noqa: E402

CONFIG = """\
name: toy
data:
  source: {format: manythings, path: pairs.tsv}
  split: {dev: 12, test: 12}
  workers: 1
  prepared: prepared
tokenizer: {kind: bpe, size: 150}
model: {embedding_size: 12, encoder: {hidden_size: 12}, decoder: {hidden_size: 12}}
training: {max_steps: 4, validate_every: 2, log_every: 1, validation_pairs: 4, final_pairs: 4,
  keep_last: 2, average: last, batch: {size: 16}}
decoding: {beam: 2, max_length_ratio: 1.0}
"""
LIMIT = 120  # seconds of a command
AGE = 120  # by which files are made older: the next call deletes what nobody changed for a minute
# Differ between two undisturbed calls: times, and what they affect.
VOLATILE = re.compile(r"checksum|peak_memory|time|.*seconds|.*_per_second")
CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir")
LEFTOVER = re.compile(r"\.(.*\.tmp|tmp\w+|.*\.(building|replaced)-\w+)")
TRAIN = "train -c toy.yaml --device cpu -o"
COMMANDS = {
    "prepare": "prepare -c toy.yaml",  # the only one that begins without `FOLDERS`
    "prepare --overwrite": "prepare -c toy.yaml --overwrite --set data.split.seed=2",
    "train": f"{TRAIN} new",
    "train --resume": f"{TRAIN} half --resume",
    "translate -o": "translate --run run --file input.txt -o output.txt --device cpu",
    "evaluate": "evaluate run --split test --device cpu",
    "average": "runs average run --kept last",
    "neighbors": "neighbors run",
}
FOLDERS = ("prepared", "run", "half")  # that must stay intact
FILES = ("output.txt", "run/neighbors.tsv")  # that must have their old or their new content
Files = dict[str, str]  # with a hash of what is equal in all undisturbed calls


@dataclass(frozen=True)
class Fault:
    """What happens at change number `at` of a file. value: the number of a signal, seconds of
    processor time, or the largest size of a file.
    """

    name: str = "none"
    at: int = 0
    value: float = 0

    def arm(self, folder: str, count: Any) -> None:
        """From now on, count the changes below `folder`; the fault comes at its time."""
        if self.name == "kill at times":  # SIGPROF ends a process as SIGKILL does
            signal.setitimer(signal.ITIMER_PROF, self.value)
        elif self.name == "quota":
            limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(self.value), limit))

        def change(path: Any, *, grows: bool) -> None:
            count.value += 1
            if count.value == self.at and self.name in ("kill at changes", "signals"):
                os.kill(os.getpid(), int(self.value))
            elif count.value >= self.at and self.name == "disk full" and grows:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

        def watch(event: str, values: tuple[Any, ...]) -> None:
            path, is_open = values[0] if values else None, event == "open"
            if not isinstance(path, str | bytes | Path) or not (is_open or event in CHANGES):
                return
            path = os.path.abspath(os.fsdecode(path))
            if path.startswith(folder) and (not is_open or values[2] & (os.O_WRONLY | os.O_RDWR)):
                change(path, grows=event == "os.mkdir" or (is_open and not os.path.exists(path)))

        def synchronize(descriptor: int, wait: Callable[[int], None] = os.fsync) -> None:
            change(None, grows=True)
            wait(descriptor)

        os.fsync = synchronize  # type: ignore[assignment]
        sys.addaudithook(watch)


class Outcome(NamedTuple):
    """How a command ended. status: negative for a signal. seconds: of processor time."""

    status: int
    err: str
    last_line: str
    seconds: float
    changes: int


def run(words: str, folder: Path, fault: Fault = Fault()) -> Outcome:
    """Run `nmt WORDS` in a folder: in a process forked from this one, which has imported all."""
    count = RawValue("q")
    with tempfile.TemporaryFile() as err:
        if (child := os.fork()) == 0:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.alarm(LIMIT)
                os.chdir(folder)
                null = os.open(os.devnull, os.O_RDWR)
                for descriptor, source in enumerate((null, null, err.fileno())):
                    os.dup2(source, descriptor)
                sys.argv = ["nmt", *words.split()]
                fault.arm(str(folder), count)
                cli.main()
            except SystemExit as exit_:
                os._exit(exit_.code if isinstance(exit_.code, int) else exit_.code is not None)
            except BaseException:  # noqa: BLE001 - what the campaign looks for
                traceback.print_exc()
            os._exit(1)
        _, waited, usage = os.wait4(child, 0)
        err.seek(0)
        text = err.read().decode("utf-8", "replace")
    status, seconds = os.waitstatus_to_exitcode(waited), usage.ru_utime + usage.ru_stime
    return Outcome(status, text, text.rstrip("\n").rpartition("\n")[2], seconds, count.value)


def run_well(words: str, folder: Path) -> Outcome:
    """`run`; the campaign ends if the command fails."""
    if (outcome := run(words, folder)).status:
        raise SystemExit(f"nmt {words}: {outcome.err}")
    return outcome


def read_files(folder: Path) -> Files:
    """The files below a folder."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "tensorboard" not in path.parts:
            content = b"" if path.name in ("curves.png", "history.jsonl") else _stable(path)
            files[path.relative_to(folder).as_posix()] = hashlib.sha256(content).hexdigest()
    return files


def _stable(path: Path) -> bytes:
    def without_times(value: dict[str, Any]) -> dict[str, Any]:
        return {key: each for key, each in value.items() if not VOLATILE.fullmatch(key)}

    content = path.read_bytes()
    lines = content.splitlines() if path.suffix == ".jsonl" else [content]
    try:
        values = [json.loads(line, object_hook=without_times) for line in lines]
    except ValueError:  # no JSON, or cut off
        return content
    if path.name == "checksums.json":  # of each file the present content, and the one before
        values = [{name: digests[0] for name, digests in values[0]["sha256"].items()}]
    return "\n".join(dict.fromkeys(json.dumps(value, sort_keys=True) for value in values)).encode()


class Campaign:
    """Runs trials in a folder, with a copy of a project that is made first."""

    def __init__(self, folder: Path) -> None:
        self.template, self.project = folder.resolve() / "template", folder.resolve() / "project"
        shutil.rmtree(self.template, ignore_errors=True)
        self.template.mkdir(parents=True)
        lines = (ROOT / "data/sample/sample.tsv").read_text("utf-8").splitlines(keepends=True)
        (self.template / "pairs.tsv").write_text("".join(lines[:400]), "utf-8")
        (self.template / "toy.yaml").write_text(CONFIG, "utf-8")
        (self.template / "input.txt").write_text("The dog sleeps.\nShe reads a book.\n", "utf-8")
        (self.template / "output.txt").write_text("an old translation\n", "utf-8")
        half = f"{TRAIN} half --set training.max_steps=2"
        for words in ("prepare -c toy.yaml", f"{TRAIN} run", half, "neighbors run"):
            run_well(words, self.template)

    def start(self, command: str) -> Files:
        """Make the project as it is before a command. Returns its files."""
        shutil.rmtree(self.project, ignore_errors=True)
        shutil.copytree(self.template, self.project)
        for name in FOLDERS if command == "prepare" else ():
            shutil.rmtree(self.project / name)
            (self.project / f".{name}.lock").unlink(missing_ok=True)
        return read_files(self.project)

    def try_fault(self, command: str, fault: Fault, expected: Files) -> tuple[bool, list[str]]:
        """Whether the fault came, and what is wrong then. expected: the files without a fault."""
        before = self.start(command)
        folders = [name for name in FOLDERS if (self.project / name).exists()]
        outcome = run(COMMANDS[command], self.project, fault)
        came = outcome.changes >= fault.at if fault.at else outcome.status != 0
        problems, files = self._judge_end(outcome, fault, expected), read_files(self.project)
        for name in FILES:
            is_whole = files.get(name) in (before.get(name), expected.get(name))
            problems += [] if is_whole else [f"{name}: neither the old file nor the new one"]
        checks = [run(f"runs check {name}", self.project) for name in folders]
        problems += [f"check: {check.last_line}" for check in checks if check.status]
        for path in self.project.rglob("*"):
            os.utime(path, (time.time() - AGE,) * 2)
        again = run(COMMANDS[command] + " --resume" * (command == "train"), self.project)
        lost = [again.last_line] if again.status else compare(expected, self.project)
        return came, problems + [f"next call: {each}" for each in lost]

    def _judge_end(self, outcome: Outcome, fault: Fault, expected: Files) -> list[str]:
        """What is wrong with the way in which a command ended."""
        if "Traceback" in outcome.err:
            return [f"traceback: {outcome.last_line}"]
        if outcome.status < 0:
            is_expected = -outcome.status == (fault.value if fault.at else signal.SIGPROF)
            return [] if is_expected else [f"dies of signal {-outcome.status}"]
        stray = [path.name for path in self.project.rglob(".*") if LEFTOVER.fullmatch(path.name)]
        problems = [f"leaves {name}" for name in stray if name not in outcome.err]
        if outcome.status and not outcome.last_line.startswith("nmt: "):
            problems.append(f"no clear line: {outcome.last_line}")
        if not outcome.status and not outcome.err:
            problems += compare(expected, self.project)
        return problems


def compare(expected: Files, folder: Path) -> list[str]:
    """Differences of the files to those after an undisturbed call."""
    files = read_files(folder)
    return [
        f"{'lacks' if name not in files else 'differs' if name in expected else 'stray'}: {name}"
        for name in sorted(files.keys() | expected.keys())
        if files.get(name) != expected.get(name)
    ]


def faults(normal: Outcome, generator: random.Random, n: int, largest: int) -> Iterator[Fault]:
    """Up to n faults of each kind; a quota has room for the message. largest: bytes of a file."""
    changes, most = range(1, normal.changes + 1), min(n, normal.changes)
    for at in generator.sample(changes, most):
        yield Fault("kill at changes", at, signal.SIGKILL)
    yield from (Fault("kill at times", 0, generator.uniform(0, normal.seconds)) for _ in range(n))
    for at in generator.sample(changes, most):
        yield Fault("signals", at, generator.choice((signal.SIGINT, signal.SIGTERM)))
    yield from (Fault("disk full", at) for at in generator.sample(changes, most))
    yield from (Fault("quota", 0, max(1000, int(largest ** generator.random()))) for _ in range(n))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--trials", type=int, default=20, help="of each fault with each command")
    parser.add_argument("--command", action="append", choices=COMMANDS, metavar="NAME")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the faults")
    options = parser.parse_args(arguments)
    for place in {row.place for row in cli.all_commands().values() if row.place}:
        import_module(place.partition(":")[0])
    Figure.savefig = lambda *_, **__: None  # type: ignore[method-assign] # most of the time
    campaign = Campaign(options.output)
    counts: dict[tuple[str, str], Counter[str]] = {}
    for command in options.command or COMMANDS:
        campaign.start(command)
        normal = run_well(COMMANDS[command], campaign.project)
        expected = read_files(campaign.project)
        largest = max(path.stat().st_size for path in campaign.project.rglob("*"))
        generator = random.Random(f"{options.seed} {command}")
        for fault in faults(normal, generator, options.trials, largest):
            came, problems = campaign.try_fault(command, fault, expected)
            count = counts.setdefault((command, fault.name), Counter())
            count.update(tried=1, came=came, lost=bool(problems))
            if problems:
                print(f"{command}: {fault}: {'; '.join(problems)}", file=sys.stderr, flush=True)
    print(f"{'command':<24}{'fault':<16}{'tried':>8}{'came':>8}{'lost':>8}")
    for (command, name), count in counts.items():
        print(f"{command:<24}{name:<16}", *(f"{each:>8,}" for each in count.values()), sep="")
    return int(any(count["lost"] for count in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
