"""`nmt export` without --web: a run folder that translates without torch."""

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

from nmt.extras.export import folder as export
from nmt.run import load
from tests import toy
from tests.conftest import Run, in_one_process

SENTENCES = ("The dog sees the tree.", "The king loves the river.")
OPTIONS = ("--beam", "3", "--set", "decoding.length_penalty=0.5")


@pytest.fixture
def exported(nmt: Run, run: Path) -> Path:
    (checkpoint,) = (path.name for path in run.glob("checkpoints/step-*"))
    features = {"mean_log_prob": [0.1, -1, 0], "log_src_length": [0.1, 0, 1]}
    record = {"constant": 0.1, "features": features, "checkpoint": checkpoint, "search": "beam"}
    (run / "confidence.json").write_text(json.dumps(record))
    assert nmt("export", run, *OPTIONS).status == 0
    return run.with_name("run-onnx")


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def packages(lines: list[str]) -> set[str]:
    return {line.partition(">")[0].partition("<")[0] for line in lines}


def test_the_folder(nmt: Run, run: Path) -> None:
    folder, checkpoint = run.with_name("run-onnx"), next(run.glob("checkpoints/step-*"))
    nmt("translate", "--run", run, *SENTENCES)  # makes the graphs
    size, *commands = nmt.prints("export", run).splitlines()
    assert size.startswith(f"{folder}: ")
    assert commands == [
        f"pip install -r {folder / 'requirements.txt'}",
        "pip install --no-deps nmt",
        f'nmt translate --run {folder} "A sentence."',
    ]
    files, own = contents(folder), contents(run)
    made = {"checkpoints/best.json", "requirements.txt"}
    assert all(files[name] == own[name] for name in {*files} - made)
    in_checkpoint = f"checkpoints/{checkpoint.name}/"
    kept = {name.removeprefix(in_checkpoint) for name in files if name.startswith(in_checkpoint)}
    assert {name.partition("/")[0] for name in kept} == {"graphs-int8"}
    assert "journal.jsonl" not in files
    text = f"nmt: {folder}: exists; delete it, or choose another folder with -o\n"
    nmt.refuses(text, "export", run)


def test_it_translates_as_the_run(
    nmt: Run, run: Path, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what was set when it was exported; also where there is a GPU, for which it has no
    weights.
    """
    expected = nmt.prints("translate", "--run", run, *OPTIONS, "--json", *SENTENCES)
    assert '"confidence": 0.' in expected
    monkeypatch.setattr(load, "_may_have_gpu", lambda: True)
    assert nmt.prints("translate", "--run", exported, "--json", *SENTENCES) == expected
    assert nmt("export", exported).status == 0
    again = exported.with_name("run-onnx-onnx")
    assert contents(again) == contents(exported)


def test_the_required_packages_are_enough(nmt: Run, run: Path, exported: Path) -> None:
    lines = (exported / "requirements.txt").read_text().splitlines()
    needed = [each for each in requires("nmt") or () if "extra ==" not in each]
    blocked = packages(needed) - packages(lines) - {"requests"}  # which spaCy needs
    assert {"torch", "matplotlib", "onnx", "sentencepiece"} < blocked
    first = f"import sys; sys.modules.update(dict.fromkeys({blocked}))\n"
    words = ["translate", "--run", str(exported), *SENTENCES]
    (out,) = in_one_process([words], exported, first)
    assert out == nmt.prints("translate", "--run", run, *OPTIONS, *SENTENCES)


@pytest.mark.parametrize(
    ("kind", "method", "expected"),
    [
        ("words", "beam", {"spacy"}),
        ("bpe", "mbr", {"sentencepiece", "sacrebleu"}),
        ("characters", "sampling", set()),
    ],
)
def test_packages_that_some_runs_need(kind: str, method: str, expected: set[str]) -> None:
    sections = {"tokenizer": {"kind": kind}, "decoding": {"method": method}}
    config = toy.configure(Path("x.tsv"), **sections)
    found = packages(export.requirements(config))
    assert found & {"spacy", "sentencepiece", "sacrebleu"} == expected
    assert "onnxruntime" in found


def test_similar_pairs_go_with_it(nmt: Run, run: Path) -> None:
    assert nmt("neighbors", run).status == 0
    assert nmt("export", run, "--set", "decoding.neighbors.pairs=4").status == 0
    exported = run.with_name("run-onnx")
    option = ("--set", "decoding.neighbors.pairs=4")
    expected = nmt.prints("translate", "--run", run, *option, *SENTENCES)
    assert nmt.prints("translate", "--run", exported, *SENTENCES) == expected
    assert (exported / "neighbors.tsv").exists()


def test_onnxruntime_sends_no_telemetry(tmp_path: Path) -> None:
    """Otherwise it makes folders in the home of the user as soon as it is imported."""
    silent = ("ORT_", "CI", "GITHUB_ACTIONS", "TF_BUILD", "BUILD_", "XDG_")  # with these anyway
    environment = {name: value for name, value in os.environ.items() if not name.startswith(silent)}
    environment["HOME"] = str(tmp_path)
    code = "import nmt.extras.export.folder"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert [
        path.name for path in tmp_path.rglob("*") if "icrosoft" in path.name or "onnx" in path.name
    ] == []


def test_a_bundle(nmt: Run, run: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "model.nmt"
    assert nmt("share", "bundle", run, "-o", bundle).status == 0
    assert nmt("export", bundle).status == 0
    assert nmt.prints("translate", "--run", tmp_path / "model-onnx", "★") == "★\n"


def test_a_model_that_graphs_cannot_express(
    nmt: Run, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run, tmp_path / "plain", ignore=shutil.ignore_patterns("graphs-*"))
    monkeypatch.setattr("nmt.decoding.torch_model.graphs_of", lambda *_: None)
    monkeypatch.setattr("nmt.extras.export.web_page.graphs_of", lambda *_: None)
    for option in ("-o", "--web"):
        result = nmt("export", tmp_path / "plain", option, tmp_path / "new")
        text = "graphs cannot express its model; it needs torch\n"
        assert (result.status, result.err[-len(text) :]) == (1, text)
        assert not (tmp_path / "new").exists()
