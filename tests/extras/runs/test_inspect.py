"""`nmt runs show` and `nmt runs list`: what they say of runs, whole or damaged."""

import json
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from nmt.files import read_json, write_json
from nmt.run.journal import Journal
from tests.conftest import Run


def test_the_facts_of_a_finished_run(nmt: Run, run: Path) -> None:
    facts = json.loads(nmt("runs", "show", run, "--json").out)
    assert (facts["name"], facts["direction"], facts["state"]) == ("toy", "en-de", "finished")
    assert facts["not_default"]["model.dropout"] == {"value": 0.0, "default": 0.2}
    assert "seed" not in facts["not_default"]
    assert facts["data"]["problem"] is None
    assert facts["data"]["inputs"][0]["sha256"]
    assert facts["vocabulary"]["src"]["size"] > 10
    assert sum(facts["parameters"]["parts"].values()) == facts["parameters"]["total"]
    assert facts["progress"]["step"] == facts["last"]["step"] == facts["best"]["step"] == 60
    assert [event["step"] for event in facts["validations"]] == [60]
    assert 0 < facts["bytes"]["checkpoints"] < facts["bytes"]["total"]
    (session,) = facts["sessions"]
    assert (session["step"], session["device"], session["processes"]) == (0, "cpu", 1)


def test_the_screen_shows_them(nmt: Run, run: Path) -> None:
    assert nmt("evaluate", run, "--metric", "chrF").status == 0
    lines = nmt("runs", "show", run).out.splitlines()
    for start, part in {
        "run ": "toy, en-de",
        "training ": "60 steps, 1 epochs",
        "best step ": "60, checkpoints/step-00000060",
        "trained with ": "cpu",
        "not default ": "data.prepared",
        "data ": "40 test pairs",
        "vocabulary ": "spacy",
        "parameters ": "encoder",
        "size on disk ": "checkpoints",
        "train loss ": " to ",
        "dev BLEU ": " to ",
        "scores ": "test, step 60, beam 5: chrF",
    }.items():
        assert any(line.startswith(start) and part in line for line in lines), start


def test_states(nmt: Run, run: Path) -> None:
    progress = run / "checkpoints" / "step-00000060" / "progress.json"
    write_json(progress, {**read_json(progress), "finished": None})
    facts = json.loads(nmt("runs", "show", run, "--json").out)
    assert facts["state"] == "unfinished"
    with FileLock(run.parent / ".run.lock"):
        assert "in progress now" in nmt("runs", "show", run).out
    shutil.rmtree(run / "checkpoints")
    facts = json.loads(nmt("runs", "show", run, "--json").out)
    assert facts["state"] == "not started"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("checkpoints/last.json", "last.json: damaged"),
        ("checkpoints/step-00000060/progress.json", "progress.json: cannot be read"),
        ("manifest.json", "manifest.json: damaged"),
        ("src.vocab.txt", "src.vocab.txt"),
    ],
)
def test_a_damaged_part_is_an_error_of_one_line(nmt: Run, run: Path, name: str, text: str) -> None:
    (run / name).write_text("{")
    result = nmt("runs", "show", run)
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert text in result.err


@pytest.mark.parametrize(
    ("key", "part"),
    [("inputs", 0), ("vocabulary", "src"), ("tokenizers", "tgt"), ("splits", "dev")],
)
def test_a_manifest_without_what_is_shown_is_damaged(
    nmt: Run, run: Path, key: str, part: int | str
) -> None:
    manifest = read_json(run / "manifest.json")
    manifest[key][part] = {}
    write_json(run / "manifest.json", manifest)
    result = nmt("runs", "show", run)
    assert (result.status, result.out) == (1, "")
    assert f"manifest.json: damaged ({key}" in result.err


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("journal.jsonl", "event", None),
        ("journal.jsonl", "perplexity", "high"),
        ("journal.jsonl", "loss", []),
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
    Journal(run / "evaluation" / "history.jsonl").write("evaluation", 60, scores=[], split="test")
    text = (run / name).read_text(encoding="utf-8")
    events = (
        json.loads(text) if name == "provenance.json" else [*map(json.loads, text.splitlines())]
    )
    damaged = next(event for event in events if key in event)
    for content in ({**damaged, key: value}, [damaged]):
        events[events.index(damaged)] = damaged = content
        lines = [json.dumps(events)] if name == "provenance.json" else map(json.dumps, events)
        (run / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        for words in (("show", run), ("show", run, "--card"), ("list", run)):
            result = nmt("runs", *words)
            assert (result.status, result.err.count("\n")) == (0, 1)
            assert result.err.startswith(f"nmt: warning: {run / name}: damaged")


def test_no_run(nmt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert nmt("runs", "show").err == (
        "nmt: no run under runs/ yet: run `nmt train -c CONFIG` first, or name the folder of a "
        "run\n"
    )
    result = nmt("runs", "show", "elsewhere")
    assert (result.status, result.err) == (
        1,
        "nmt: elsewhere: no run here; `nmt train -c CONFIG -o elsewhere` creates one\n",
    )


@pytest.fixture
def runs(run: Path, tmp_path: Path) -> Path:
    """a/whole, a/no-config, broken (a damaged configuration), started (no checkpoint yet)."""
    runs = tmp_path / "runs"
    for name in ("a/whole", "a/no-config", "broken", "started"):
        shutil.copytree(run, runs / name)
    (runs / "a" / "no-config" / "config.yaml").unlink()
    (runs / "broken" / "config.yaml").write_text("name: [\n")
    shutil.rmtree(runs / "started" / "checkpoints")
    (runs / "started" / "journal.jsonl").unlink()
    return runs


def test_the_list(nmt: Run, runs: Path) -> None:
    result = nmt("runs", "list", runs)
    assert (result.status, result.err) == (0, "")
    heading, whole, started, *problems = result.out.splitlines()
    assert heading.split()[:5] == ["run", "direction", "model", "state", "step"]
    assert whole.startswith(str(runs / "a" / "whole"))
    assert "words, lstm 24, general, luong 24" in whole
    assert "finished" in whole
    assert started.startswith(str(runs / "started"))
    assert "not started" in started
    assert problems[0] == (
        f"nmt: {runs / 'a' / 'no-config'}: config.yaml is missing; this is no run, or half of one"
    )
    assert problems[1].startswith(
        f"nmt: {runs / 'broken' / 'config.yaml'}, line 2, column 1: not valid YAML"
    )
    assert len(problems) == 2
    rows = json.loads(nmt("runs", "list", runs, "--json").out)
    assert [Path(row["run"]).name for row in rows] == ["no-config", "whole", "broken", "started"]
    assert (rows[1]["step"], rows[1]["problem"], rows[1]["test_score"]) == (60, None, None)
    assert rows[1]["dev_bleu"] >= 0
    assert rows[1]["bytes"] > 1000


def test_the_list_has_the_last_test_score(nmt: Run, run: Path) -> None:
    assert nmt("evaluate", run, "--metric", "chrF").status == 0
    (row,) = json.loads(nmt("runs", "list", run, "--json").out)
    assert row["test_score"]["metric"] == "chrF"
    assert f"chrF {row['test_score']['score']:.2f}" in nmt("runs", "list", run).out
