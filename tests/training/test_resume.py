"""A training that is killed several times ends with the weights and the journal of an uninterrupted
one.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from nmt.commands import prepare
from nmt.config.yaml_text import dump
from tests import toy

pytestmark = pytest.mark.slow

STEPS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dropout and scheduled sampling on; checkpoints, lines of the journal and epochs end at
    different steps.
    """
    folder = tmp_path_factory.mktemp("killed")
    config = toy.configure(
        toy.write_table(folder / "pairs.tsv", toy.sentence_pairs()[:200]),
        data={"split": {"dev": 10, "test": 10}, "prepared": str(folder / "prepared")},
        model={
            "embedding_size": 16,
            "encoder": {"hidden_size": 16},
            "decoder": {"hidden_size": 16},
            "dropout": 0.3,
            "lexical_bias": 3,
        },
        training={
            "max_steps": STEPS,
            "validate_every": 7,
            "log_every": 5,
            "patience": 100,
            "keep_best": 3,
            "batch": {"size": 12},
            "moving_average": 0.9,
            "moving_average_warmup": True,
            "teacher_forcing": {"start": 0.8},
            "learning_rate": {"schedule": "plateau", "patience": 1},
            "validation_pairs": 5,
        },
    )
    prepare.run(config, progress=False)
    (folder / "toy.yaml").write_text(dump(config), encoding="utf-8")
    return folder


def start(folder: Path, run: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "nmt",
        "train",
        "-c",
        "toy.yaml",
        "-o",
        run,
        "--resume",
        "--device",
        "cpu",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (folder / "stderr.txt").open("w") as file:
        return subprocess.Popen(command, cwd=folder, stderr=file, text=True, env=environment)


def journal(folder: Path, run: str) -> list[dict[str, Any]]:
    """All but what the clock says."""
    path = folder / run / "journal.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    clock = ("tokens_per_second", "seconds")
    return [
        {key: value for key, value in json.loads(line).items() if key not in clock}
        for line in lines
    ]


def reached(folder: Path, run: str) -> int:
    """The last step in the journal, whose last line may be half written."""
    try:
        return max((event["step"] for event in journal(folder, run)), default=0)
    except ValueError:
        return 0


def test_a_killed_and_resumed_training_equals_an_uninterrupted_one(folder: Path) -> None:
    whole = start(folder, "whole")
    assert whole.wait(timeout=300) == 0, (folder / "stderr.txt").read_text()
    random = np.random.default_rng(1)
    for how in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
        process = start(folder, "parts")
        goal = reached(folder, "parts") + int(random.integers(5, 18))
        while reached(folder, "parts") < goal and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(how)
        status = process.wait(timeout=300)
        assert status == (-signal.SIGKILL if how == signal.SIGKILL else 1)
    last = start(folder, "parts")
    assert last.wait(timeout=300) == 0, (folder / "stderr.txt").read_text()
    assert journal(folder, "parts") == journal(folder, "whole")
    for name in ("best", "last"):
        pointers = [
            json.loads((folder / run / "checkpoints" / f"{name}.json").read_text())
            for run in ("whole", "parts")
        ]
        assert pointers[0] == pointers[1]
    checkpoint = f"step-{STEPS:08d}"
    for file in ("model", "raw", "optimizer"):
        expected, resumed = (
            load_file(folder / run / "checkpoints" / checkpoint / f"{file}.safetensors")
            for run in ("whole", "parts")
        )
        assert expected.keys() == resumed.keys()
        assert all((expected[key] == resumed[key]).all() for key in expected), file
