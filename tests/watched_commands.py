"""Runs commands of nmt, given as JSON, and ends with an error as soon as nmt runs code from data, or a reading command writes.

    python watched_commands.py '[["write", ["prepare", "-c", "c.yaml"]], ["read", ["translate", "x"]]]'

nmt itself never unpickles, evaluates or compiles; only its own worker processes exchange pickled data. Libraries are
imported first, which executes their code.
"""

import importlib
import json
import pickle
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import matplotlib.pyplot
import sacrebleu
import sentencepiece
import spacy
import torch.optim.swa_utils
import torch.utils.tensorboard

import nmt.commands
from nmt import cli

LIBRARIES = (matplotlib.pyplot, sacrebleu, sentencepiece, spacy, torch.optim.swa_utils, torch.utils.tensorboard)
PACKAGE = str(Path(nmt.commands.__file__ or "").parent.parent)
WRITING = {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.chmod", "shutil.rmtree"}
RUNNING = {"os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect"}
VIOLATIONS = (
    *("eval('1')", "exec('1')", "compile('1', 'x', 'eval')", "pickle.loads(b'N.')", "_pickle.loads(b'cposix\\nsystem\\n.')"),
    *("torch.load('x')", "open('written', 'w')", "os.mkdir('written')", "os.system('true')", "shutil.rmtree('written')"),
    *(
        "os.remove('written')",
        "os.symlink('x', 'written')",
        "subprocess.run(['true'])",
        "socket.create_connection(('127.0.0.1', 9))",
    ),
)
mode = "write"


def refuse(*_: Any, **__: Any) -> None:
    raise SystemExit("unpickles")


def _is_between_workers() -> bool:
    """Whether the processes of one command exchange the data."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not {"multiprocessing", "concurrent"} & {*Path(frame.f_code.co_filename).parts}:
        frame = frame.f_back
    return frame is not None


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook."""
    if event in ("exec", "compile") and sys._getframe(1).f_code.co_filename.startswith(PACKAGE):
        raise SystemExit(f"nmt runs code: {arguments}")
    if event == "pickle.find_class" and not _is_between_workers():
        raise SystemExit(f"unpickles {arguments}")
    if mode == "read":
        opens_to_write = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
        if event in WRITING or event in RUNNING or opens_to_write:
            raise SystemExit(f"{event} {arguments}")


def main() -> None:
    global mode  # noqa: PLW0603
    commands: list[tuple[str, list[str]]] = json.loads(sys.argv[1])
    for module in pkgutil.iter_modules(nmt.commands.__path__, "nmt.commands."):
        importlib.import_module(module.name)
    modules = {
        name: importlib.import_module(name) for name in ("os", "pickle", "_pickle", "shutil", "socket", "subprocess", "torch")
    }
    violations: dict[str, Callable[[], object]] = {
        code: eval(compile(f"lambda: {code}", f"{PACKAGE}/x.py", "eval"), modules) for code in VIOLATIONS
    }
    torch.load = pickle.load = pickle.loads = refuse
    sys.addaudithook(watch)
    mode = "read"
    for code, violate in violations.items():
        try:
            violate()
        except SystemExit:
            continue
        raise AssertionError(f"the watch does not find {code}")
    for mode, words in commands:  # noqa: B007 - `watch` uses it
        sys.argv = ["nmt", *words]
        try:
            cli.main()
        except SystemExit as exit_:
            if exit_.code:
                raise


if __name__ == "__main__":
    assert LIBRARIES
    main()
