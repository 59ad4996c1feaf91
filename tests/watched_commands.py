"""Runs commands of nmt, given as JSON, and ends with an error as soon as nmt runs code from data,
or does what it must not.

    python watched_commands.py '[["write", ["prepare", "-c", "c.yaml"]], ["", ["translate", "x"]]]'

Before each command stands what it may do: "write" files and start processes, "connect" to an
address, both or neither. A server gets a request, and then SIGTERM.

nmt itself never unpickles, evaluates or compiles; only its own worker processes exchange pickled
data. Libraries are
imported first, which executes their code.
"""

import importlib
import json
import os
import pickle
import pkgutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import nmt.commands
from nmt import cli

LIBRARIES = (
    "markdown_it",
    "matplotlib.pyplot",
    "onnxruntime.quantization",
    "sacrebleu",
    "sentencepiece",
    "sentencex",
    "spacy",
    "torch.onnx",
    "torch.optim.swa_utils",
    "torch.utils.tensorboard",
    "uvicorn.lifespan.on",
    "nmt.extras.serve.routes",
)
PACKAGE = str(Path(nmt.commands.__file__ or "").parent.parent)
WRITING = {
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.symlink",
    "os.chmod",
    "shutil.rmtree",
}
RUNNING = {"os.system", "subprocess.Popen", "os.exec", "os.posix_spawn"}
VIOLATIONS = {  # what the watch must find -> what a command may do all the same
    "eval('1')": "write connect",
    "exec('1')": "write connect",
    "compile('1', 'x', 'eval')": "write connect",
    "pickle.loads(b'N.')": "write connect",
    "_pickle.loads(b'cposix\\nsystem\\n.')": "write connect",
    "torch.load('x')": "write connect",
    "socket.create_connection(('127.0.0.1', 9))": "write",
    "socket.socket().connect_ex(('127.0.0.1', 9))": "write",
    "open('written', 'w')": "connect",
    "os.open('written', os.O_CREAT | os.O_WRONLY)": "connect",
    "os.mkdir('written')": "connect",
    "os.remove('written')": "connect",
    "os.symlink('x', 'written')": "connect",
    "shutil.rmtree('written')": "connect",
    "os.system('true')": "connect",
    "subprocess.run(['true'])": "connect",
}
permissions = {"write"}
found: list[str] = []  # also in threads, and where the exception is caught


def allow(allowed: str) -> None:
    permissions.clear()
    permissions.update(allowed.split())


def violation(text: str) -> None:
    found.append(text)
    raise SystemExit(text)


def refuse(*_: Any, **__: Any) -> None:
    violation("unpickles")


def _is_between_workers() -> bool:
    """Whether the processes of one command exchange the data."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not {"multiprocessing", "concurrent"} & {
        *Path(frame.f_code.co_filename).parts
    }:
        frame = frame.f_back
    return frame is not None


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("exec", "compile") and sys._getframe(1).f_code.co_filename.startswith(PACKAGE):
        violation(f"nmt runs code: {arguments}")
    if event == "pickle.find_class" and not _is_between_workers():
        violation(f"unpickles {arguments}")
    if (
        "connect" not in permissions
        and event == "socket.connect"
        and arguments[0].family in (socket.AF_INET, socket.AF_INET6)
    ):
        violation(f"connects to {arguments[1]}")
    if "write" not in permissions:
        opens_to_write = (
            event == "open"
            and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            and arguments[0] != os.devnull
        )
        if event in WRITING or event in RUNNING or opens_to_write:
            violation(f"{event} {arguments}")


def request_and_end(port: int) -> None:
    """Ask the server for a translation as soon as it answers, and end it."""
    while True:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(
                "POST",
                "/translate",
                '{"q": "The dog sees the tree."}',
                {"Content-Type": "application/json"},
            )
            sys.stdout.write(connection.getresponse().read().decode())
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
        finally:
            connection.close()
    os.kill(os.getpid(), signal.SIGTERM)


def run(words: list[str]) -> None:
    if words[0] == "serve":
        threading.Thread(
            target=request_and_end, args=(int(words[words.index("--port") + 1]),), daemon=True
        ).start()
    sys.argv = ["nmt", *words]
    try:
        cli.main()
    except SystemExit as exit_:
        if exit_.code:
            raise


def check_watch() -> None:
    """Raises: AssertionError if the watch does not find something that it should find."""
    names = ("os", "pickle", "_pickle", "shutil", "socket", "subprocess", "torch")
    modules = {name: importlib.import_module(name) for name in names}
    calls: dict[str, Callable[[], object]] = {
        code: eval(compile(f"lambda: {code}", f"{PACKAGE}/x.py", "eval"), modules)
        for code in VIOLATIONS
    }
    torch.load = pickle.load = pickle.loads = refuse
    sys.addaudithook(watch)
    for code, allowed in VIOLATIONS.items():
        allow(allowed)
        try:
            calls[code]()
        except SystemExit:
            continue
        raise AssertionError(f"the watch does not find {code}")
    found.clear()


def main() -> None:
    commands: list[tuple[str, list[str]]] = json.loads(sys.argv[1])
    modules = pkgutil.iter_modules(nmt.commands.__path__, "nmt.commands.")
    for name in (*LIBRARIES, *(module.name for module in modules)):
        importlib.import_module(name)
    check_watch()
    for allowed, words in commands:
        allow(allowed)
        run(words)
        if found:
            raise SystemExit(f"{' '.join(words)}: {found}")


if __name__ == "__main__":
    main()
