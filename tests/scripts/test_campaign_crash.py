"""A short form of the campaign: a few faults with the commands that matter most."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import campaign_crash

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
def test_nothing_is_lost(tmp_path: Path) -> None:
    names = ["kill at changes", "power loss", "disk full", "signals"]
    commands = ["prepare", "train", "average"]
    words = [word for name in names for word in ("--campaign", name)] + [
        word for name in commands for word in ("--command", name)
    ]
    script = ROOT / "scripts" / "campaign_crash.py"
    call = [sys.executable, str(script), "-o", str(tmp_path), "--trials", "2", *words]
    result = subprocess.run(
        call,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]])},
    )
    assert (result.returncode, result.stderr) == (0, "")
    rows = [json.loads(line) for line in (tmp_path / "trials.jsonl").read_text().splitlines()]
    assert {(row["campaign"], row["command"]) for row in rows} == {
        (name, command) for name in names for command in commands
    }
    fired = sum(row["fired"] for row in rows)  # a signal may come too late
    assert len(rows) - fired <= len(commands)
    assert result.stdout.splitlines()[1].split() == [
        "all",
        "all",
        str(len(rows)),
        str(fired),
        str(fired),
        "0",
    ]


def test_the_table_counts_what_is_lost() -> None:
    rows = [
        {"campaign": "quota", "command": "train", "fired": True, "problems": []},
        {"campaign": "quota", "command": "train", "fired": True, "problems": ["hangs"]},
        {"campaign": "quota", "command": "train", "fired": False, "problems": []},
        {"campaign": "quota", "command": "export", "fired": True, "problems": []},
    ]
    assert [line.split() for line in campaign_crash.table(rows).splitlines()] == [
        ["campaign", "command", "tried", "fired", "survived", "lost"],
        ["all", "all", "4", "3", "2", "1"],
        ["quota", "all", "4", "3", "2", "1"],
        ["quota", "export", "1", "1", "1", "0"],
        ["quota", "train", "3", "2", "1", "1"],
    ]


def test_trials_that_lost_are_moved_away_to_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / campaign_crash.TRIALS_FILE
    rows = [
        {"campaign": campaign, "command": command, "fired": True, "problems": problems}
        for campaign, command, problems in [
            ("quota", "train", []),
            ("quota", "train", ["hangs"]),
            ("quota", "export", ["hangs"]),
            ("clock", "train", ["hangs"]),
        ]
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert campaign_crash.move_lost(path, ["quota"], ["train"]) == rows[1:2]
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        rows[0],
        rows[2],
        rows[3],
    ]
    assert campaign_crash.move_lost(path, None, None) == rows[2:]
    assert [json.loads(line) for line in path.read_text().splitlines()] == rows[:1]
    assert [
        json.loads(line) for line in (tmp_path / campaign_crash.LOST_FILE).read_text().splitlines()
    ] == rows[1:]
