"""Run commands of nmt in forked processes that are killed, stopped or refused a write at a chosen moment.

The process that forks has imported nmt and its libraries, so that a trial takes only the time of the command itself. It must have
been started with the interposed system calls (see interpose.c): `start_interposed` restarts the program in this way.
"""

import atexit
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from matplotlib.figure import Figure
from PIL import Image

SOURCE = Path(__file__).with_name("interpose.c")
LIBRARY_VARIABLE = "NMT_INTERPOSED"

# As in interpose.c.
CREATE, WRITE, TRUNCATE, RENAME, REMOVE, MKDIR, SYNC = (1 << bit for bit in range(7))
ALL_KINDS = 127
GROWING_KINDS = CREATE | WRITE | MKDIR  # those that a full disk refuses
ACTIONS = ("nothing", "kill", "kill-halfway", "signal", "fail-once", "fail-from-now-on", "set-clock")

MAX_TEXT = 1 << 20  # bytes of output that are kept
LIMIT = 120.0  # seconds until a command counts as hanging
COMMANDS = ("augment", "average", "bundle", "doctor", "evaluate", "export", "init", "lexicon", "prepare", "reproduce", "train")
# Imported before the first trial: what commands import on use.
MODULES = (
    "nmt.cli",
    *(f"nmt.commands.{name}" for name in (*COMMANDS, "translate")),
    *("nmt.export.folder", "onnxruntime.quantization", "torch._dynamo"),
    *("torch.utils.tensorboard", "matplotlib.backends.backend_agg", "tensorboard.compat.tensorflow_stub.io.gfile"),
)


@dataclass(frozen=True)
class Fault:
    """What happens to a command.

    Attributes:
        action: one of `ACTIONS`, when it makes the change number `at` (from 1) to a file; 0 for never.
        kinds: of the changes that count. value: number of the signal or the error, or seconds.
        after: seconds after which `signals` are sent, one after the other.
        memory: bytes that the command may allocate beyond those of its start.
    """

    action: str = "nothing"
    at: int = 0
    kinds: int = ALL_KINDS
    value: int = 0
    after: float | None = None
    signals: tuple[int, ...] = ()
    memory: int | None = None


@dataclass(frozen=True)
class Outcome:
    """How a command ended. status: negative for a signal, None for a hang. changes: of files, of the kinds that count."""

    status: int | None
    out: str
    err: str
    seconds: float
    changes: int
    left_processes: bool

    @property
    def last_line(self) -> str:
        """Of the messages."""
        return self.err.rstrip("\n").rpartition("\n")[2]


def start_interposed() -> None:
    """Compile the interposed calls and start this program again with them, unless that is done."""
    if LIBRARY_VARIABLE in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix="nmt-interposed-"))
    library = folder / "interpose.so"
    try:
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl", "-lpthread"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{SOURCE}: cannot be compiled ({error}); install a C compiler")
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment = {**os.environ, **threads, LIBRARY_VARIABLE: str(library), "LD_PRELOAD": str(library)}
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


class Laboratory:
    """Runs commands in one folder, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._library = ctypes.CDLL(os.environ[LIBRARY_VARIABLE])
        self._library.faults_count.restype = ctypes.c_long
        for name in MODULES:
            import_module(name)
        Figure.savefig = _save_picture  # type: ignore[method-assign, assignment]

    def run(
        self,
        words: Sequence[str],
        fault: Fault = Fault(),
        *,
        on_stop: Callable[[int], object] | None = None,
        record: Path | None = None,
        limit: float = LIMIT,
    ) -> Outcome:
        """Run `nmt WORDS` in the folder.

        Args:
            on_stop: called with the process id when the command has stopped itself (SIGSTOP); then it continues.
            record: a file for the record of all changes to files below the folder.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            start = time.monotonic()
            process = os.fork()
            if process == 0:
                self._be_the_command(words, fault, (out.fileno(), err.fileno()), record)
            with suppress(OSError):
                os.setpgid(process, process)
            status = self._wait(process, fault, start, limit, on_stop)
            seconds, changes = time.monotonic() - start, int(self._library.faults_count())
            self._library.faults_disarm()
            left = not _group_ends(process)
            texts = [os.pread(file.fileno(), MAX_TEXT, 0).decode(errors="replace") for file in (out, err)]
        return Outcome(status, texts[0], texts[1], seconds, changes, left)

    def _wait(self, process: int, fault: Fault, start: float, limit: float, on_stop: Callable[[int], object] | None) -> int | None:
        waiting = list(fault.signals)
        while True:
            ended, status = os.waitpid(process, os.WNOHANG | os.WUNTRACED)
            seconds = time.monotonic() - start
            if ended and os.WIFSTOPPED(status):
                if on_stop is not None:
                    on_stop(process)
                os.kill(process, signal.SIGCONT)
            elif ended:
                return os.waitstatus_to_exitcode(status)
            elif waiting and fault.after is not None and seconds >= fault.after:
                os.killpg(process, waiting.pop(0))  # as a terminal does: to all processes
            elif seconds > limit:
                os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
                return None
            time.sleep(0.001)

    def _be_the_command(self, words: Sequence[str], fault: Fault, outputs: tuple[int, int], record: Path | None) -> None:
        """Runs in the forked process, and ends it."""
        status = 1
        try:
            os.setpgid(0, 0)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.chdir(self.folder)
            for descriptor, source in enumerate((os.open(os.devnull, os.O_RDONLY), *outputs)):
                os.dup2(source, descriptor)
            log = -1 if record is None else os.open(record, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
            if fault.memory is not None:
                _limit_memory(fault.memory)
            status = self._call(words, fault, log)
        finally:
            os._exit(status)

    def _call(self, words: Sequence[str], fault: Fault, log: int) -> int:
        from nmt import cli

        sys.argv = ["nmt", *words]
        self._library.faults_arm(
            str(self.folder).encode(), ACTIONS.index(fault.action), ctypes.c_long(fault.at), fault.kinds, fault.value, log
        )
        status = 0
        try:
            cli.main()
        except SystemExit as exit_:
            status = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
        except BaseException:  # noqa: BLE001, as Python itself prints it
            traceback.print_exc()
            status = 1
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        return status


def _save_picture(_figure: Figure, file: BinaryIO, **_: object) -> None:
    """In place of drawing, which would take most of the time of a training: a picture of one pixel."""
    Image.new("RGB", (1, 1)).save(file, "png")


def _limit_memory(more: int) -> None:
    import resource

    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _group_ends(group: int, seconds: float = 10.0) -> bool:
    """Whether all processes of a group end by themselves. The others are killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.002)
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    return False
