"""scripts/campaign.py: a command survives one fault of each kind; a lost file is found."""

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


def test_differences_are_found_but_for_times(tmp_path: Path) -> None:
    from scripts import campaign

    (tmp_path / "a.json").write_text('{"step": 1, "seconds": 2.5}')
    (tmp_path / "b").write_text("x")
    files = campaign.read_files(tmp_path)
    (tmp_path / "a.json").write_text('{"seconds": 3.5, "step": 1}')
    assert campaign.compare(files, tmp_path) == []
    (tmp_path / "a.json").write_text('{"step": 1')  # cut off
    (tmp_path / "b").rename(tmp_path / "c")
    assert campaign.compare(files, tmp_path) == ["differs: a.json", "lacks: b", "stray: c"]
