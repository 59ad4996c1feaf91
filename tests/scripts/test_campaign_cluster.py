"""The campaign of kills: one kill, of one of two processes that two launchers started, as on two
machines.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/task").exists(), reason="the campaign finds the processes in /proc"
    ),
]


def test_a_killed_process_comes_back_and_the_training_ends_the_same(tmp_path: Path) -> None:
    options = [
        "--kills",
        "1",
        "--processes",
        "2",
        "--machines",
        "2",
        "--steps",
        "200",
        "--pause",
        "0",
    ]
    command = [sys.executable, "-m", "scripts.campaign_cluster", "-o", str(tmp_path), *options]
    done = subprocess.run(
        command, cwd=Path.cwd(), capture_output=True, text=True, timeout=600, check=False
    )
    log = tmp_path / "log.txt"
    assert done.returncode == 0, (
        done.stdout + done.stderr + (log.read_text() if log.exists() else "")
    )
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["kills"], result["differences"]) == (1, [])
