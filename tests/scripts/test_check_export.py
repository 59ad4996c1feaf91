"""scripts/check_export.py: the table, on a small run."""

import sys
from pathlib import Path

import pytest

from scripts import check_export
from tests import toy


@pytest.mark.slow
def test_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["check_export.py", str(toy.train(tmp_path)), "--sentences", "20"]
    monkeypatch.setattr(sys, "argv", words)
    check_export.main()  # it fails if a translation in float32 differs
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[:3] for row in rows] == [
        [name, precision, beam]
        for precision in ("float32", "int8")
        for beam in ("1", "5")
        for name in ("nmt", "export")
    ]
