"""Distributed training: two processes with half the batch equal one process; an error in one ends
all.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from nmt.commands import prepare
from nmt.config.yaml_text import dump
from tests import toy

pytestmark = pytest.mark.slow

SIZES = {
    "embedding_size": 16,
    "encoder": {"hidden_size": 16},
    "decoder": {"hidden_size": 16},
    "dropout": 0.0,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared data, and a configuration of 20 steps over two epochs, the last batch of each being
    small.
    """
    folder = tmp_path_factory.mktemp("spread")
    pairs = toy.sentence_pairs()[:175]
    training = {
        "max_steps": 20,
        "epochs": 5,
        "validate_every": 10,
        "log_every": 5,
        "validation_pairs": 10,
    }
    config = toy.configure(
        toy.write_table(folder / "pairs.tsv", pairs),
        data={"split": {"dev": 10, "test": 10}, "prepared": str(folder / "prepared")},
        model=SIZES,
        training=training,
    )
    prepare.run(config, progress=False)
    (folder / "toy.yaml").write_text(dump(config), encoding="utf-8")
    return folder


def train(
    folder: Path, run: str, *sets: str, processes: int = 1, fails: bool = False
) -> subprocess.CompletedProcess[str]:
    launcher = (
        ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        if processes > 1
        else []
    )
    options = [word for key in sets for word in ("--set", key)]
    command = [
        sys.executable,
        *launcher,
        "-m",
        "nmt",
        "train",
        "-c",
        "toy.yaml",
        "-o",
        run,
        "--device",
        "cpu",
        *options,
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert (done.returncode != 0) == fails, done.stderr
    return done


def weights(folder: Path, run: str) -> dict[str, torch.Tensor]:
    return load_file(folder / run / "checkpoints" / "step-00000020" / "model.safetensors")


def events(folder: Path, run: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (folder / run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def without_clock(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in event.items() if key not in ("tokens_per_second", "seconds")}
        for event in events
    ]


def test_two_processes_with_half_the_batch_equal_one_process(folder: Path) -> None:
    train(folder, "one", "training.batch.size=16", "model.lexical_bias=3")
    done = train(folder, "two", "training.batch.size=8", "model.lexical_bias=3", processes=2)
    assert "in 2 processes" in done.stderr
    assert "arning" not in done.stderr
    single, parallel = weights(folder, "one"), weights(folder, "two")
    assert single.keys() == parallel.keys()
    for name, value in single.items():
        torch.testing.assert_close(parallel[name], value, atol=1e-5, rtol=0)
    for alone, together in zip(
        without_clock(events(folder, "one")), without_clock(events(folder, "two")), strict=True
    ):
        assert (alone["event"], alone["step"]) == (together["event"], together["step"])
        if alone["event"] not in ("lexicon", "choice"):
            assert together["loss"] == pytest.approx(alone["loss"], rel=1e-4)
    assert done.stderr.count("step 5  ") == 1  # one process speaks


def test_a_parameter_without_a_gradient_in_all_processes_stays_as_it_is(tmp_path: Path) -> None:
    """Also with accumulation: a gradient of any micro-batch counts, in whichever process."""
    script = tmp_path / "gradients.py"
    script.write_text(
        "from pathlib import Path\n"
        "import torch\n"
        "from torch import nn\n"
        "from nmt.training.distributed import init_distributed\n"
        "class Sums(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.weights = nn.ParameterList([torch.zeros(2) for _ in range(4)])\n"
        "    def forward(self, *used):\n"
        "        return sum(self.weights[i].sum() for i in used)\n"
        "with init_distributed(torch.device('cpu')) as world:\n"
        "    module = Sums()\n"
        "    parallel = world.parallel(module)\n"
        "    for _ in range(2):\n"
        "        module.zero_grad()\n"
        "        with world.exchange(parallel, last=False):\n"
        "            world.backward(parallel(0, 1 + world.rank), last=False)\n"
        "        with world.exchange(parallel, last=True):\n"
        "            world.backward(parallel(0), last=True)\n"
        "    gradients = [None if each.grad is None else each.grad.tolist() for each in "
        "module.weights]\n"
        f"    Path({str(tmp_path)!r}, f'{{world.rank}}.txt').write_text(str(gradients))\n"
    )
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        str(script),
    ]
    done = subprocess.run(
        command, cwd=Path.cwd(), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        text = (tmp_path / f"{rank}.txt").read_text(encoding="utf-8")
        assert text == "[[2.0, 2.0], [0.5, 0.5], [0.5, 0.5], None]"


@pytest.mark.parametrize(
    ("size", "sets"),
    [
        (2, ("model.output=adaptive", "training.accumulate=2")),
        (7, ("training.coverage_loss=1",)),
    ],
    ids=["adaptive", "coverage"],
)
def test_each_objective_is_the_same_in_two_processes(
    size: int, sets: tuple[str, ...], folder: Path, request: pytest.FixtureRequest
) -> None:
    """The last batch of the epoch has 3 pairs or 1: one process has fewer micro-batches than the
    other, or none.
    """
    name, accumulates = request.node.callspec.id, "training.accumulate=2" in sets
    train(
        folder,
        f"one-{name}",
        f"training.batch.size={size * (4 if accumulates else 2)}",
        *(each for each in sets if "acc" not in each),
    )
    train(folder, f"two-{name}", f"training.batch.size={size}", *sets, processes=2)
    single, parallel = weights(folder, f"one-{name}"), weights(folder, f"two-{name}")
    for key, value in single.items():
        torch.testing.assert_close(parallel[key], value, atol=1e-5, rtol=0)


def test_two_processes_resume_from_a_checkpoint(folder: Path) -> None:
    train(folder, "whole", "training.batch.size=16")
    train(folder, "parts", "training.batch.size=8", "training.max_steps=7", processes=2)
    words = ("training.batch.size=8", "training.max_steps=20")
    options = [word for key in words for word in ("--set", key)]
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        "-m",
        "nmt",
        "train",
    ]
    done = subprocess.run(
        [*command, "-c", "toy.yaml", "-o", "parts", "--resume", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, value in weights(folder, "whole").items():
        torch.testing.assert_close(weights(folder, "parts")[name], value, atol=1e-5, rtol=0)


def test_a_failing_process_ends_all_with_its_message(folder: Path) -> None:
    train(folder, "taken", "training.max_steps=1")
    done = train(folder, "taken", "training.max_steps=1", processes=2, fails=True)
    assert (
        "taken: contains a run already; continue it with --resume, or train elsewhere with -o"
        in done.stderr
    )


def test_a_process_that_hangs_ends_the_job(tmp_path: Path) -> None:
    script = tmp_path / "hang.py"
    script.write_text(
        "import os, signal, sys, torch\n"
        "from datetime import timedelta\n"
        "from nmt.errors import TrainingError\n"
        "from nmt.training.distributed import init_distributed\n"
        "with init_distributed(torch.device('cpu'), timedelta(seconds=6)) as world:\n"
        "    world.sum(torch.ones(1))\n"
        "    if world.rank == 1:\n"
        "        os.kill(os.getpid(), signal.SIGSTOP)\n"
        "    try:\n"
        "        world.sum(torch.ones(1))\n"
        "    except TrainingError as error:\n"
        "        print(error, flush=True)\n"
        "        sys.exit(1)\n"
    )
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=3",
        str(script),
    ]
    done = subprocess.run(
        command, cwd=Path.cwd(), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode != 0
    expected = "another process of this training failed, or has not answered within training.time"
    assert expected in done.stdout, done.stdout + done.stderr
