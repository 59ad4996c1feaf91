"""Print the files of nmt that an update of a training, or a translation, goes through.

    python scripts/way.py train
    python scripts/way.py translate

The files are in the order in which they are entered; those of which only code at import runs do not
count. An update lasts from the making of its batch to the step of the optimizer. Last come the
number of files, and the way from the command line to the model: each ">" is a hop.
"""

import io
import os
import runpy
import shlex
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from importlib import import_module
from inspect import CO_GENERATOR, CO_OPTIMIZED
from itertools import groupby
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
MODELS = "model/", "decoding/onnx_model"  # in training, in translating
PACKAGE = f"{ROOT}/nmt/"
DATA = f"""-q -c {ROOT}/configs/sample.yaml --set data.source.path={ROOT}/data/sample/sample.tsv
--set data.max_pairs=300 --set data.split.dev=20 --set data.split.test=20 --set data.workers=1"""
PREPARE = f"prepare {DATA} -o data"
TRAIN = f"train {DATA} -o run --device cpu --set data.prepared=data --set training.max_steps=4"
TRANSLATE = "translate --run run 'Tom is sad.'"
COMMANDS = {"train": [PREPARE, TRAIN], "translate": [PREPARE, TRAIN, TRANSLATE]}

Stack = list[FrameType]  # a function of nmt that is called, and its callers in nmt
calls: list[Stack] = []  # since the last step of an optimizer
update: list[Stack] = []  # before that step, and after the one before it
iterators: list[FrameType] = []  # generators that a function of nmt asks for the next value


def follow(frame: FrameType, event: str, _: object) -> None:
    """Note a call; this is a profiler."""
    code = frame.f_code
    if event == "call" and code.co_name == "step" and "/torch/optim/" in code.co_filename:
        update[:] = calls or update  # in torch, a function of that name calls another one
        calls.clear()
    elif event == "call" and code.co_filename.startswith(PACKAGE):
        stack = [frame]
        while stack[-1].f_back is not None:
            stack.append(stack[-1].f_back)
        is_iterator = code.co_flags & CO_GENERATOR and code.co_name != "<genexpr>"
        if is_iterator and stack[1].f_code.co_filename.startswith(PACKAGE):
            iterators.append(frame)
        *inner, _ = stack = [each for each in stack if each.f_code.co_filename.startswith(PACKAGE)]
        if inner and all(each.f_code.co_flags & CO_OPTIMIZED for each in inner):  # not at import
            calls.append(stack)


def file_of(frame: FrameType) -> str:
    """The file of a function, within nmt/ and without the ending."""
    return frame.f_code.co_filename.removeprefix(PACKAGE).removesuffix(".py")


def computes(stack: Stack) -> bool:
    """Whether the model, or a part of it, computes."""
    return file_of(stack[0]).startswith(MODELS) and stack[0].f_code.co_name in ("forward", "step")


def is_next(stack: Stack, callers: Stack) -> bool:
    """Whether one of `callers` asks an iterator for its next value."""
    return stack[0] in iterators and stack[0] not in callers and stack[1] in callers


def main() -> None:
    """The command line."""
    *first, last = COMMANDS[sys.argv[1]]
    os.environ["OMP_NUM_THREADS"] = "1"  # the way of a search depends on the number of threads
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        for command in first:
            words = [sys.executable, "-m", "nmt", *command.split()]
            subprocess.run(words, cwd=folder, env=environment, check=True)
        os.chdir(folder)
        sys.path.insert(0, str(ROOT))
        import_module("onnxruntime" if first[1:] else "torch")  # following that takes long
        sys.argv = ["nmt", *shlex.split(last)]
        sys.setprofile(follow)
        with suppress(SystemExit), redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            runpy.run_module("nmt", run_name="__main__")
        sys.setprofile(None)
        os.chdir(ROOT)
    found = update or calls
    at_model = next(i for i, stack in enumerate(found) if computes(stack))
    to_model = found[at_model]
    if update:  # begin where the loop asks for the next batch
        found = found[max(i for i in range(at_model) if is_next(found[i], to_model)) :]
    files = [*dict.fromkeys(file_of(stack[0]) for stack in found)]
    way = [file for file, _ in groupby(file_of(each) for each in reversed(to_model[:-1]))]
    depth = next(i for i, file in enumerate(way) if file.startswith(MODELS))
    print("\n".join(files))
    print(f"{len(files)} files, {depth} hops: {' > '.join(way[: depth + 1])}")


if __name__ == "__main__":
    main()
