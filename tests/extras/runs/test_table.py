"""`nmt runs`: the table of all runs below a folder, whole or damaged."""

import json
import shutil
from pathlib import Path

import pytest

from tests import toy
from tests.conftest import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a/whole, a/no-config, broken (a damaged configuration), started (no checkpoint yet),
    empty.
    """
    folder = tmp_path_factory.mktemp("runs")
    run = toy.train(tmp_path_factory.mktemp("toy"))
    for name in ("a/whole", "a/no-config", "broken", "started"):
        shutil.copytree(run, folder / name)
    (folder / "empty").mkdir()
    (folder / "a" / "no-config" / "config.yaml").unlink()
    (folder / "broken" / "config.yaml").write_text("name: [\n")
    for path in ("checkpoints", "tensorboard"):
        shutil.rmtree(folder / "started" / path)
    (folder / "started" / "journal.jsonl").unlink()
    return folder


def test_the_table(nmt: Run, folder: Path) -> None:
    result = nmt("runs", folder)
    assert (result.status, result.err) == (0, "")
    heading, whole, started, *problems = result.out.splitlines()
    assert heading.split()[:5] == ["run", "direction", "model", "state", "step"]
    assert whole.startswith(str(folder / "a" / "whole"))
    assert "words, lstm 24, general, luong 24" in whole
    assert "finished" in whole
    assert started.startswith(str(folder / "started"))
    assert "not started" in started
    assert problems[0] == (
        f"nmt: {folder / 'a' / 'no-config'}: config.yaml is missing; this is no run, or half of one"
    )
    assert problems[1].startswith(
        f"nmt: {folder / 'broken' / 'config.yaml'}, line 2, column 1: not valid YAML"
    )
    assert len(problems) == 2


def test_json(nmt: Run, folder: Path) -> None:
    rows = json.loads(nmt("runs", folder, "--json").out)
    assert [Path(row["run"]).name for row in rows] == ["no-config", "whole", "broken", "started"]
    whole = rows[1]
    assert (whole["step"], whole["problem"], whole["test_score"]) == (60, None, None)
    assert whole["dev_bleu"] >= 0
    assert whole["bytes"] > 1000


def test_the_last_test_score_is_shown(nmt: Run, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "a" / "whole", tmp_path / "run")
    assert nmt("evaluate", tmp_path / "run", "--metric", "chrF").status == 0
    (row,) = json.loads(nmt("runs", tmp_path, "--json").out)
    assert row["test_score"]["metric"] == "chrF"
    assert f"chrF {row['test_score']['score']:.2f}" in nmt("runs", tmp_path).out


def test_without_runs(nmt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = nmt("runs")
    assert (result.status, result.err) == (
        1,
        "nmt: runs: no such folder; name the folder that holds the runs\n",
    )
    assert nmt("runs", ".").out == "no runs\n"
