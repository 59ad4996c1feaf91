"""scripts/recipes.py: the table of runs."""

import shutil
from pathlib import Path

import pytest

from scripts import recipes
from tests import toy
from tests.conftest import Run


def test_runs_that_differ_in_the_seed_share_a_row(
    tmp_path: Path, nmt: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run = toy.train(tmp_path, training=toy.ONE_UPDATE)
    assert nmt("evaluate", run, "--split", "dev").status == 0
    shutil.copytree(run, other := tmp_path / "other")
    config = other / "config.yaml"
    config.write_text(config.read_text("utf-8").replace("\nseed: 1 ", "\nseed: 2 "), "utf-8")
    assert recipes.main([str(run), str(other)]) == 0
    heading, _, *rows = capsys.readouterr().out.splitlines()
    (cells,) = (dict(zip(heading.split(" | "), row.split(" | "), strict=True)) for row in rows)
    assert cells["seeds"] == "1, 2"
    assert cells["dev BLEU"].endswith(" ± 0.0")
    assert cells["BLEU"] == "-"


def test_a_missing_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert recipes.main([str(tmp_path / "nowhere")]) == 1
    assert "no run here" in capsys.readouterr().err
