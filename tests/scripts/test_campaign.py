"""scripts/campaign.py: a command survives one fault of each kind."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="Linux only")]


def test_one_trial_of_each_fault(tmp_path: Path) -> None:
    words = ["-o", str(tmp_path), "--trials", "1", "--command", "translate -o"]
    script = ROOT / "scripts" / "campaign.py"
    done = subprocess.run(
        [sys.executable, script, *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    _, *rows = done.stdout.splitlines()
    assert [row[24:40].strip() for row in rows] == [
        "kill at changes",
        "kill at times",
        "signals",
        "disk full",
        "quota",
    ]
    assert all(row.split()[-3:-2] == ["1"] and row.endswith(" 0") for row in rows)
