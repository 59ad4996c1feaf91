"""Run commands of nmt in forked processes that are killed, stopped or refused a write at a chosen
moment.

The process that forks has imported nmt and its libraries, so that a trial takes only the time of
the command itself. It must have been started with the interposed system calls (see interpose.c):
`start_interposed` restarts the program in this way.
"""

import atexit
import copy
import ctypes
import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import yaml
from matplotlib.figure import Figure
from PIL import Image

SOURCE = Path(__file__).with_name("interpose.c")
LIBRARY_VARIABLE = "NMT_INTERPOSED"

# As in interpose.c.
N_KINDS = 7
CREATE, WRITE, TRUNCATE, RENAME, REMOVE, MKDIR, SYNC = KINDS = [1 << bit for bit in range(N_KINDS)]
ALL_KINDS = sum(KINDS)
GROWING_KINDS = CREATE | WRITE | MKDIR  # those that a full disk refuses
ACTIONS = (
    "nothing",
    "kill",
    "kill-halfway",
    "signal",
    "fail-once",
    "fail-from-now-on",
    "set-clock",
)

MAX_TEXT = 1 << 20  # bytes of output that are kept
# seconds; a command hangs if it uses nearly no processor time for as long, or more processor time
# than this
LIMIT = 120.0
# seconds of processor time; a thread that only looks at the clock now and then uses less in LIMIT
MIN_WORK = 0.1
POLL_SECONDS = 0.002
# seconds after a signal to a worker, so that other processes notice a worker that is stopped
WORKER_PAUSE = 0.1
COMMANDS = (
    *("augment", "average", "bundle", "doctor", "evaluate", "export", "init"),
    *("lexicon", "prepare", "pull", "push", "reproduce", "train"),
)
# Imported before the first trial: what commands import on use.
MODULES = (
    "nmt.cli",
    *(f"nmt.commands.{name}" for name in (*COMMANDS, "translate")),
    *(
        "nmt.extras.export.folder",
        "onnxruntime.quantization",
        "torch._dynamo",
        "huggingface_hub.hf_api",
        "huggingface_hub.file_download",
    ),
    *(
        "torch.utils.tensorboard",
        "matplotlib.backends.backend_agg",
        "tensorboard.compat.tensorflow_stub.io.gfile",
    ),
    *(
        "torch.profiler._cupti_monitor",
        "sacrebleu.metrics",
        "sentencepiece",
        "PIL.JpegImagePlugin",
        "multiprocessing.synchronize",
    ),
    *(
        "pydantic.type_adapter",
        "importlib.resources.readers",
        "encodings.utf_8_sig",
        "numpy.ctypeslib",
        "resource",
    ),
)


@dataclass(frozen=True)
class Fault:
    """What happens to a command.

    Attributes:
        action: one of `ACTIONS`, when it makes the change number `at` (from 1) to a file; 0 for
            never.
        kinds: of the changes that count. value: number of the signal or the error, or seconds.
        after: seconds of processor time after which `signals` are sent, one after the other. (Time
            on a clock would say little on a busy machine.)
        to_worker: they are for one child of the command, as soon as it has one; by default for the
            command and all its children.
        memory: bytes that the command may allocate beyond those of its start.
    """

    action: str = "nothing"
    at: int = 0
    kinds: int = ALL_KINDS
    value: int = 0
    after: float | None = None
    signals: tuple[int, ...] = ()
    to_worker: bool = False
    memory: int | None = None


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes:
        status: negative for a signal, None for a hang.
        seconds: of processor time of the main process.
        changes: of files, by kind.
        fired: whether the fault came: the change with its number, or all signals before the end.
        disk_full: whether the file system had no space for a change.
    """

    status: int | None
    out: str
    err: str
    seconds: float
    changes: dict[int, int]
    fired: bool
    disk_full: bool
    left_processes: bool

    @property
    def last_line(self) -> str:
        """Of the messages."""
        return self.err.rstrip("\n").rpartition("\n")[2]


@contextmanager
def local_hub() -> Iterator[None]:
    """Commands use a stand-in for the Hugging Face hub on this computer."""
    from huggingface_hub import constants

    from tests.extras.share.hub import TOKEN, running_hub

    ThreadingHTTPServer.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client was killed
    with running_hub() as server:
        constants.HUGGINGFACE_CO_URL_TEMPLATE = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(
            constants.ENDPOINT, server.address
        )
        constants.ENDPOINT, constants.HF_HUB_DISABLE_XET = server.address, True
        os.environ["HF_TOKEN"] = TOKEN
        yield


def start_interposed() -> None:
    """Compile the interposed calls and start this program again with them, unless that is done."""
    if LIBRARY_VARIABLE in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix="nmt-interposed-"))
    library = folder / "interpose.so"
    try:
        subprocess.run(
            ["cc", "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl", "-lpthread"],
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{SOURCE}: cannot be compiled ({error}); install a C compiler")
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment = {
        **os.environ,
        **threads,
        LIBRARY_VARIABLE: str(library),
        "LD_PRELOAD": str(library),
    }
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


class Laboratory:
    """Runs commands in one folder, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._library = ctypes.CDLL(os.environ[LIBRARY_VARIABLE])
        self._library.faults_count.restype = ctypes.c_long
        for name in MODULES:
            import_module(name)
        Image.init()
        # What takes most of the time of so small a training, and has no part in its files but their
        # looks:
        Figure.savefig = _save_picture  # type: ignore[method-assign, assignment]
        for drawing in ("nmt.report.curves", "nmt.report.heatmap"):
            vars(sys.modules[drawing])["_figure"] = lambda *_, **__: Figure()
        yaml.load = _load_once(yaml.load)
        gc.freeze()  # forked processes then share more memory

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
            on_stop: called with the process id when the command has stopped itself (SIGSTOP); then
                it continues.
            record: a file for the record of all changes to files below the folder.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = os.fork()
            if process == 0:
                self._be_the_command(words, fault, (out.fileno(), err.fileno()), record)
            with suppress(OSError):
                os.setpgid(process, process)
            status, seconds, sent = self._wait(process, fault, limit, on_stop)
            changes = {kind: int(self._library.faults_count(bit)) for bit, kind in enumerate(KINDS)}
            fired, disk_full = (
                sent or bool(self._library.faults_fired()),
                bool(self._library.faults_disk_full()),
            )
            self._library.faults_disarm()
            left = not _group_ends(process)
            texts = [
                os.pread(file.fileno(), MAX_TEXT, 0).decode(errors="replace") for file in (out, err)
            ]
        return Outcome(status, texts[0], texts[1], seconds, changes, fired, disk_full, left)

    def _wait(
        self, process: int, fault: Fault, limit: float, on_stop: Callable[[int], object] | None
    ) -> tuple[int | None, float, bool]:
        """The status, the processor time, and whether all signals of the fault were sent before the
        end.
        """
        waiting, earlier, end = list(fault.signals), 0.0, time.monotonic() + limit
        while True:
            used = _processor_time(process)
            if used > earlier + MIN_WORK:
                earlier, end = used, time.monotonic() + limit
            ended, status = os.waitpid(process, os.WNOHANG | os.WUNTRACED)
            sent = bool(fault.signals) and not waiting
            if ended and os.WIFSTOPPED(status):
                if on_stop is not None:
                    on_stop(process)
                os.kill(process, signal.SIGCONT)
            elif ended:
                return os.waitstatus_to_exitcode(status), used, sent
            elif waiting and fault.after is not None and used >= fault.after:
                if not fault.to_worker:
                    os.killpg(process, waiting.pop(0))  # as a terminal does: to all processes
                elif workers := workers_of(process):
                    with suppress(ProcessLookupError):
                        os.kill(workers[0], waiting[0])
                        waiting.pop(0)
                    time.sleep(WORKER_PAUSE)
            elif used > limit or time.monotonic() > end:
                os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
                return None, used, sent
            time.sleep(POLL_SECONDS)

    def _be_the_command(
        self, words: Sequence[str], fault: Fault, outputs: tuple[int, int], record: Path | None
    ) -> None:
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
            log = (
                -1
                if record is None
                else os.open(record, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
            )
            if fault.memory is not None:
                _limit_memory(fault.memory)
            status = self._call(words, fault, log)
        except BaseException:  # noqa: BLE001, an interrupt outside the command must not end without a word
            traceback.print_exc()
        finally:
            os._exit(status)

    def _call(self, words: Sequence[str], fault: Fault, log: int) -> int:
        from nmt import cli

        sys.argv = ["nmt", *words]
        self._library.faults_arm(
            str(self.folder).encode(),
            ACTIONS.index(fault.action),
            ctypes.c_long(fault.at),
            fault.kinds,
            fault.value,
            log,
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


def workers_of(process: int) -> list[int]:
    """The children that a process has forked."""
    return [
        int(child)
        for child in Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()
    ]


def _save_picture(_figure: Figure, file: BinaryIO, **_: object) -> None:
    """In place of drawing, which would take most of the time of a training: a picture of one
    pixel.
    """
    Image.new("RGB", (1, 1)).save(file, "png")


def _processor_time(process: int) -> float:
    """Seconds that a process has used, without its children; the process may have ended, but nobody
    has waited for it.
    """
    return time.clock_gettime(~process << 3 | 2)  # the number that Linux gives this clock


def _load_once(load: Callable[..., Any]) -> Callable[..., Any]:
    """`yaml.load` that reads a text of this process, or of one forked from it, only once."""
    values: dict[tuple[str, Any], Any] = {}

    def load_once(text: str, Loader: Any) -> Any:  # noqa: N803, its name in yaml
        if (text, Loader) not in values:
            values[text, Loader] = load(text, Loader=Loader)
        return copy.deepcopy(values[text, Loader])

    return load_once


def _limit_memory(more: int) -> None:
    import resource

    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _group_ends(group: int, seconds: float = 60.0) -> bool:
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
