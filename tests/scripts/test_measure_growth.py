"""scripts/measure_growth.py: a line of figures for each table."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.config.yaml_text import dump
from scripts.measure_growth import kilobytes, size_of
from tests import toy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="the script reads its memory from /proc"
    ),
]


def test_a_table_is_prepared_once_and_trained_on(tmp_path: Path) -> None:
    table = toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()[:200])
    config = toy.configure(
        table, data={"split": {"dev": 10, "test": 10}}, training={"batch": {"size": 16}}
    )
    (tmp_path / "toy.yaml").write_text(dump(config), encoding="utf-8")
    options = [
        "--config",
        str(tmp_path / "toy.yaml"),
        "-o",
        str(tmp_path / "growth"),
        "--updates",
        "2",
    ]
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-m", "scripts.measure_growth", str(table), *options],
            check=True,
            timeout=300,
        )
    first, second = map(
        json.loads, (tmp_path / "growth" / "growth.jsonl").read_text(encoding="utf-8").splitlines()
    )
    assert first["pairs"] == second["pairs"] == 200
    assert first.keys() - second.keys() == {
        key for key in first if "prepare" in key or "worker" in key
    }
    # The script looks at disk and memory now and then; on so little data it may miss their peaks.
    assert 0 <= first["prepare_disk_mb"] < 1
    assert 0 <= first["prepare_memory_mb"] < 1000
    assert 0 < first["prepare_cpu_seconds"] < 60
    assert kilobytes("VmHWM") > 30_000  # of this process
    assert size_of(table) == len(table.read_bytes()) > 0 == size_of(tmp_path / "missing")
    assert second["first_update_cpu_seconds"] > 0
    assert 0 < second["train_memory_mb"] <= second["train_peak_mb"]
