"""`nmt runs show` and `nmt runs list`: what they say of runs, whole or damaged."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from filelock import FileLock

from nmt.extras.runs.inspect import is_of
from nmt.files import CHECKSUMS_FILE, read_json, write_json
from nmt.run.journal import write_event
from tests.conftest import Run


def test_the_facts_of_a_finished_run(nmt: Run, run: Path) -> None:
    facts = json.loads(nmt("runs", "show", run, "--json").out)
    data, changed = facts["data"], facts["not_default"]
    assert (facts["name"], facts["direction"], facts["state"]) == ("toy", "en-de", "finished")
    assert (changed["model.dropout"], "seed" in changed) == ({"value": 0.0, "default": 0.2}, False)
    assert (data["problem"], len(data["inputs"][0]["sha256"])) == (None, 64)
    assert facts["vocabulary"]["src"]["size"] > 10
    assert facts["progress"]["step"] == facts["last"]["step"] == facts["best"]["step"] == 60
    assert [event["step"] for event in facts["validations"]] == [60]
    assert 0 < facts["bytes"]["checkpoints"] < facts["bytes"]["total"]
    (session,) = facts["sessions"]
    assert (session["step"], session["device"], session["processes"]) == (0, "cpu", 1)


def test_the_screen_shows_them(nmt: Run, run: Path) -> None:
    assert nmt("evaluate", run, "--metric", "chrF").status == 0
    (row,) = json.loads(nmt("runs", "list", run, "--json").out)
    score = f"chrF {row['test_score']['score']:.2f}"
    assert score in nmt("runs", "list", run).out
    lines = nmt("runs", "show", run).out.splitlines()
    for start, part in {
        "run ": "toy, en-de",
        "training ": "60 steps, 1 epochs",
        "best step ": "60, checkpoints/step-00000060",
        "trained with ": "cpu",
        "not default ": "data.prepared",
        "data ": "40 test pairs",
        "vocabulary ": "spacy",
        "size on disk ": "checkpoints",
        "scores ": f"test, step 60, beam 5: {score}",
    }.items():
        assert any(line.startswith(start) and part in line for line in lines), start


def test_states(nmt: Run, run: Path) -> None:
    progress = run / "checkpoints" / "step-00000060" / "progress.json"
    write_json(progress, {**read_json(progress), "finished": None})
    assert json.loads(nmt("runs", "show", run, "--json").out)["state"] == "unfinished"
    with FileLock(run.parent / ".run.lock"):
        assert "in progress now" in nmt("runs", "show", run).out
    shutil.rmtree(run / "checkpoints")
    assert json.loads(nmt("runs", "show", run, "--json").out)["state"] == "not started"


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("checkpoints/last.json", None, "last.json: damaged"),
        ("checkpoints/step-00000060/progress.json", None, "progress.json: cannot be read"),
        ("manifest.json", None, "manifest.json: damaged"),
        ("manifest.json", {"inputs": [{}]}, "manifest.json: damaged (inputs"),
        ("manifest.json", {"vocabulary": {"src": {}}}, "manifest.json: damaged (vocabulary"),
        (
            "manifest.json",
            {"tokenizers": {"src": "words", "tgt": {}}},
            "manifest.json: damaged (tokenizers",
        ),
        ("manifest.json", {"splits": {"dev": {}}}, "manifest.json: damaged (splits"),
    ],
)
def test_a_damaged_part_is_an_error_of_one_line(
    nmt: Run, run: Path, name: str, values: dict[str, Any] | None, text: str
) -> None:
    """values: in place of those of the file; without them it is cut off."""
    if values is None:
        (run / name).write_text("{")
    else:
        write_json(run / name, {**read_json(run / name), **values})
    result = nmt("runs", "show", run)
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert text in result.err


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("journal.jsonl", "event", None),
        ("journal.jsonl", "bleu", []),
        ("evaluation/history.jsonl", "step", "60"),
        ("evaluation/history.jsonl", "scores", {"metric": "BLEU", "score": 10}),
        ("evaluation/history.jsonl", "scores", [{"metric": "BLEU", "score": None}]),
        ("provenance.json", "libraries", None),
        ("provenance.json", "processes", "2"),
    ],
)
def test_what_someone_has_damaged_is_left_out_with_a_line(
    nmt: Run, run: Path, name: str, key: str, value: object
) -> None:
    (run / "evaluation").mkdir()
    write_event(run / "evaluation" / "history.jsonl", "evaluation", 60, scores=[], split="test")
    text = (run / name).read_text(encoding="utf-8")
    events = (
        json.loads(text) if name == "provenance.json" else [*map(json.loads, text.splitlines())]
    )
    damaged = next(event for event in events if key in event)
    for content in ({**damaged, key: value}, [damaged]):
        events[events.index(damaged)] = damaged = content
        lines = [json.dumps(events)] if name == "provenance.json" else map(json.dumps, events)
        (run / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        for command in ("show", "list"):
            result = nmt("runs", command, run)
            assert (result.status, result.err.count("\n")) == (0, 1)
            assert result.err.startswith(f"nmt: warning: {run / name}: damaged")


def test_the_list(nmt: Run, run: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in ("a/whole", "a/no-config", "broken", "started"):
        shutil.copytree(run, runs / name)
    (runs / "a" / "no-config" / "config.yaml").unlink()
    (runs / "broken" / "config.yaml").write_text("name: [\n")
    shutil.rmtree(runs / "started" / "checkpoints")
    (runs / "started" / "journal.jsonl").unlink()
    result = nmt("runs", "list", runs)
    assert (result.status, result.err) == (0, "")
    heading, whole, started, *problems = result.out.splitlines()
    assert heading.split()[:5] == ["run", "direction", "model", "state", "step"]
    assert whole.split("  ")[0] == str(runs / "a" / "whole")
    assert "words, lstm 24, general, luong 24  finished " in whole
    assert started.split("  ")[0] == str(runs / "started")
    assert " not started " in started
    texts = (
        f"{runs / 'a' / 'no-config'}: config.yaml is missing; this is no run, or half of one",
        f"{runs / 'broken' / 'config.yaml'}, line 2, column 1: not valid YAML",
    )
    for problem, text in zip(problems, texts, strict=True):
        assert problem.startswith(f"nmt: {text}")
    rows = json.loads(nmt("runs", "list", runs, "--json").out)
    assert [Path(row["run"]).name for row in rows] == ["no-config", "whole", "broken", "started"]
    assert (rows[1]["step"], rows[1]["problem"], rows[1]["test_score"]) == (60, None, None)
    assert rows[1]["dev_bleu"] >= 0
    assert rows[1]["bytes"] > 1000


def copy_with(run: Path, copy: Path, **training: Any) -> None:
    """A copy of a run with another configuration."""
    config = yaml.safe_load((shutil.copytree(run, copy) / "config.yaml").read_text("utf-8"))
    config["training"] |= {"learning_rate": {"peak": 0.25}, **training}
    config["data"]["prepared"] = f"elsewhere/{copy.name}"
    (copy / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    (copy / CHECKSUMS_FILE).unlink()


def test_the_keys_in_which_runs_differ(
    nmt: Run, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    runs = Path("runs")
    copy_with(run, runs / "trial-0", learning_rate={"peak": 0.5})
    for number in (1, 2):
        copy_with(run, runs / f"trial-{number}")
    assert nmt("runs", "list").out.split("\n\n")[1].splitlines() == [
        "differences",
        "runs/trial-0  learning_rate.peak=0.5",
        "runs/trial-1  learning_rate.peak=0.25",
        "runs/trial-2  learning_rate.peak=0.25",
    ]
    rows = json.loads(nmt("runs", "list", "--json").out)
    assert rows[0]["differences"] == {"training.learning_rate.peak": 0.5}
    assert rows[1]["differences"] == rows[2]["differences"] == {"training.learning_rate.peak": 0.25}
    # Of many keys, the values that most runs share stand in one place.
    many = {"clip_norm": 2.0, "patience": 3, "keep_best": 4, "keep_last": 5, "log_every": 7}
    copy_with(run, runs / "trial-3", **many, start_from="x" * 50)
    text = nmt("runs", "list").out.split("differences\n")[1].strip()
    most, first, second, _, last = re.split(r"\n(?! )", text)
    assert " learning_rate.peak=0.25" in most
    assert first.split() == ["runs/trial-0", "learning_rate.peak=0.5"]
    assert second.split() == ["runs/trial-1", "-"]
    assert f" training.start_from={'x' * 50}" in last
    assert len(last.split()) == 7
    assert max(len(line) for line in text.splitlines() if "xxx" not in line) <= 80


@pytest.mark.parametrize(
    ("event", "of_step", "of_average"),
    [
        ({}, True, True),  # of an earlier version
        ({"provenance": [1]}, True, True),
        ({"provenance": {"model": {"checkpoint": "step-00000800"}}}, True, False),
        ({"provenance": {"model": {"checkpoint": "average-00000800"}}}, False, True),
        ({"provenance": {"members": [{"model": {"checkpoint": "step-00000800"}}]}}, False, False),
    ],
)
def test_scores_are_of_one_checkpoint(
    event: dict[str, Any], of_step: bool, of_average: bool
) -> None:
    event["step"] = 800
    assert is_of(event, "step-00000800") is of_step
    assert is_of(event, "average-00000800") is of_average
    assert not is_of(event, "step-00000700")
