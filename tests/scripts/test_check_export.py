"""The comparison of an exported run with the run itself, on a small run."""

import json
import sys
from pathlib import Path

import pytest

from scripts import check_export
from tests import toy

pytestmark = pytest.mark.slow


def test_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, file = toy.train(tmp_path), tmp_path / "rows.json"
    monkeypatch.setattr(
        sys, "argv", ["check_export.py", str(run), "--sentences", "20", "--json", str(file)]
    )
    check_export.main()
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["translator", "precision", "beam"]
    rows = json.loads(file.read_text(encoding="utf-8"))
    assert [line.split()[:3] for line in lines] == [
        [row["translator"], row["precision"], str(row["beam"])] for row in rows
    ]
    assert [
        (row["beam"], row["differing"])
        for row in rows
        if row["precision"] == "float32" and "differing" in row
    ] == [
        (1, 0),
        (5, 0),
    ]
    assert all(row["sentences_per_cpu_second"] > 0 for row in rows)


def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["check_export.py", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"^check_export\.py: .*: no run here"):
        check_export.main()
