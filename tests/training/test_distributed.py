"""Distributed training: two processes with half the batch equal one process; an error in one ends
all.
"""

import os
import signal
import socket
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from nmt import cli
from nmt.commands import prepare
from nmt.config.yaml_text import dump
from nmt.errors import TrainingError
from nmt.run.journal import read_events
from nmt.training.distributed import init_distributed
from tests import toy
from tests.conftest import Run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="forks processes"),
]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared data, and a configuration of 20 steps over two epochs, the last batch of each being
    small.
    """
    folder = tmp_path_factory.mktemp("spread")
    sizes = {"encoder": {"hidden_size": 16}, "decoder": {"hidden_size": 16}}
    steps = {"max_steps": 20, "epochs": 5, "validate_every": 10, "log_every": 5}
    config = toy.configure(
        toy.write_table(folder / "pairs.tsv", toy.sentence_pairs()[:175]),
        data={"split": {"dev": 10, "test": 10}, "prepared": str(folder / "prepared")},
        model={"embedding_size": 16, "dropout": 0.0, **sizes},
        training={**steps, "validation_pairs": 10},
    )
    prepare.run(config, progress=False)
    (folder / "toy.yaml").write_text(dump(config), encoding="utf-8")
    return folder


def words_of(folder: Path, run: str, *sets: str) -> list[str]:
    words = ["train", "-c", str(folder / "toy.yaml"), "-o", str(folder / run), "--device", "cpu"]
    return [*words, *(word for key in sets for word in ("--set", key))]


def in_processes(number: int, work: Callable[[], object], log: Path) -> list[int]:
    """Call `work` in forked processes, with the variables that torchrun sets. A process that stops
    is killed when the others have ended. log: what all print on stderr.

    Returns:
        the exit status of each.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sizes = {"WORLD_SIZE": str(number), "LOCAL_WORLD_SIZE": str(number)}
    children = []
    for rank in map(str, range(number)):
        if (child := os.fork()) == 0:
            warnings.simplefilter("ignore")
            sys.stderr = log.open("a", encoding="utf-8", buffering=1)
            os.environ |= sizes | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            os.environ |= {"RANK": rank, "LOCAL_RANK": rank}
            try:
                work()
                os._exit(0)
            except SystemExit as exit_:
                os._exit(int(exit_.code or 0))
            finally:
                traceback.print_exc()
                os._exit(1)
        children.append(child)
    statuses = [os.waitpid(child, os.WUNTRACED)[1] for child in children]
    for child, status in zip(children, statuses, strict=True):
        if os.WIFSTOPPED(status):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return statuses


def train_in_two(folder: Path, *words: str) -> tuple[list[int], str]:
    """The exit statuses, and what the processes print."""
    log = folder / "log.txt"
    log.unlink(missing_ok=True)

    def train() -> None:
        sys.argv = ["nmt", *words]
        cli.main()

    return in_processes(2, train, log), log.read_text(encoding="utf-8")


def weights(folder: Path, run: str) -> dict[str, torch.Tensor]:
    return load_file(folder / run / "checkpoints" / "step-00000020" / "model.safetensors")


def assert_close(folder: Path, run: str, other: str) -> None:
    single, parallel = weights(folder, run), weights(folder, other)
    assert single.keys() == parallel.keys()
    for name, value in single.items():
        torch.testing.assert_close(parallel[name], value, atol=1e-5, rtol=0)


def test_two_processes_of_torchrun_with_half_the_batch_equal_one_process(
    nmt: Run, folder: Path
) -> None:
    assert (
        nmt(*words_of(folder, "one", "training.batch.size=16", "model.lexical_bias=3")).status == 0
    )
    words = words_of(folder, "two", "training.batch.size=8", "model.lexical_bias=3")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "nmt"]
    command = [sys.executable, *launcher, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "in 2 processes" in done.stderr
    assert "arning" not in done.stderr
    assert_close(folder, "one", "two")
    journals = (read_events(folder / run / "journal.jsonl") for run in ("one", "two"))
    for alone, together in zip(*journals, strict=True):
        assert (alone["event"], alone["step"]) == (together["event"], together["step"])
        if alone["event"] not in ("lexicon", "choice"):
            assert together["loss"] == pytest.approx(alone["loss"], rel=1e-4)
    assert done.stderr.count("step 5  ") == 1  # one process speaks


class Sums(nn.Module):
    """The sum of the parameters with given indices."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([torch.zeros(2) for _ in range(4)])

    def forward(self, *used: int) -> torch.Tensor:
        return torch.stack([self.weights[index].sum() for index in used]).sum()


def test_a_parameter_without_a_gradient_in_all_processes_stays_as_it_is(tmp_path: Path) -> None:
    """Also with accumulation: a gradient of any micro-batch counts, in whichever process."""

    def exchange() -> None:
        with init_distributed(CPU) as world:
            module = Sums()
            parallel = world.parallel(module)
            for _ in range(2):
                module.zero_grad()
                for used, last in (((0, 1 + world.rank), False), ((0,), True)):
                    with world.exchange(parallel, last=last):
                        world.backward(parallel(*used), last=last)
            gradients = [
                None if each.grad is None else each.grad.tolist() for each in module.weights
            ]
            assert gradients == [[2.0, 2.0], [0.5, 0.5], [0.5, 0.5], None]

    assert in_processes(2, exchange, tmp_path / "log.txt") == [0, 0]


@pytest.mark.parametrize(
    ("size", "accumulate", "key"),
    [(2, 2, "training.label_smoothing=0.1"), (7, 1, "training.clip_norm=2")],
    ids=["smoothing", "clipping"],
)
def test_each_objective_is_the_same_in_two_processes(
    nmt: Run, size: int, accumulate: int, key: str, folder: Path
) -> None:
    """The last batch of the epoch has 3 pairs or 1: one process has fewer micro-batches than the
    other, or none.
    """
    whole = words_of(folder, f"one-{size}", f"training.batch.size={2 * accumulate * size}", key)
    assert nmt(*whole).status == 0
    keys = (f"training.batch.size={size}", f"training.accumulate={accumulate}", key)
    statuses, printed = train_in_two(folder, *words_of(folder, f"two-{size}", *keys))
    assert statuses == [0, 0], printed
    assert_close(folder, f"one-{size}", f"two-{size}")


def test_two_processes_resume_from_a_checkpoint(nmt: Run, folder: Path) -> None:
    assert nmt(*words_of(folder, "whole", "training.batch.size=16")).status == 0
    for steps in (7, 20):
        keys = ("training.batch.size=8", f"training.max_steps={steps}")
        statuses, printed = train_in_two(folder, *words_of(folder, "parts", *keys), "--resume")
        assert statuses == [0, 0], printed
    assert "resuming from step 7" in printed
    assert_close(folder, "whole", "parts")


def test_a_failing_process_ends_all_with_its_message(nmt: Run, folder: Path) -> None:
    words = words_of(folder, "taken", "training.max_steps=1")
    assert nmt(*words).status == 0
    statuses, printed = train_in_two(folder, *words)
    assert 0 not in statuses
    text = "taken: contains a run already; continue it with --resume, or train elsewhere with -o"
    assert text in printed


def test_a_process_that_hangs_ends_the_others(tmp_path: Path) -> None:
    def hang() -> None:
        with init_distributed(CPU, timedelta(seconds=4)) as world:
            world.sum(torch.ones(1))
            if world.rank == 1:
                os.kill(os.getpid(), signal.SIGSTOP)
            with pytest.raises(TrainingError) as caught:
                world.sum(torch.ones(1))
            sys.stderr.write(f"{caught.value}\n")
            os._exit(0)

    statuses = in_processes(3, hang, tmp_path / "log.txt")
    assert [os.WIFSTOPPED(status) for status in statuses] == [False, True, False]
    printed = (tmp_path / "log.txt").read_text(encoding="utf-8")
    expected = "another process of this training failed, or has not answered within training.time"
    assert printed.count(expected) == 2
    assert (statuses[0], statuses[2]) == (0, 0), printed
