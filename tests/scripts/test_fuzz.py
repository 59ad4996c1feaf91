"""scripts/fuzz.py: valid inputs of some kinds pass, however they are changed."""

import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_cases_of_some_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from scripts import fuzz

    kinds = ["vocabulary", "weights", "records of a run"]
    words = [f"--kind={kind}" for kind in kinds]
    assert fuzz.main(["-o", str(tmp_path), "--minutes", "0.1", *words]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row[:20].strip() for row in rows] == kinds
    assert all(int(row[20:30].replace(",", "")) > 1 for row in rows)
