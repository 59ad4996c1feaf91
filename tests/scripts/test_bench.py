"""The bench of speed: nmt, and stand-ins for other toolkits."""

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from nmt.config.load import load_config
from nmt.run.folder import load_run_config
from scripts import bench, timed_translation
from scripts.peer_toolkits import MODULES, PEERS, SPACE_MARK, Peer, unsupported_keys, write_settings
from tests import toy

ROOT = Path(__file__).resolve().parent.parent.parent
MODEL_R = load_config(ROOT / "scripts/peers/model-r.yaml")
PEER = """
import time
for step in range(1, 200):
    print(f"Step {step}00/ 100; {step}00/500 tok/s; {25 * step} sec;", flush=True)
    time.sleep(0.05)
"""
CTRANSLATE2 = """
class Translator:  # copies
    def __init__(self, folder, **options):
        print(folder, options)

    def translate_batch(self, sentences, **options):
        return [type("Result", (), {"hypotheses": [tokens]}) for tokens in sentences]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.train(tmp_path_factory.mktemp("bench"), training=toy.ONE_UPDATE)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "peer.py"
    script.write_text(PEER, encoding="utf-8")
    (tmp_path / "ctranslate2.py").write_text(CTRANSLATE2, encoding="utf-8")
    monkeypatch.setitem(PEERS, "opennmt", Peer(str(script), re.compile(r"/(\d+) tok"), 2))
    monkeypatch.setitem(MODULES, "opennmt", "json")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{tmp_path}")
    monkeypatch.setattr(bench, "environment", lambda threads: os.environ)
    monkeypatch.setattr(bench, "unsupported_keys", lambda model: [])


@pytest.mark.slow
@pytest.mark.usefixtures("stand_in")
def test_training(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--seconds", "4", "--rounds", "1", "--threads", "1", "--against", "opennmt"]
    assert bench.main(["train", str(run / "config.yaml"), *options]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert re.match(r"\| nmt float32 \| [\d,.]+ \[.*\] \| 1.00 x \| [\d,]+ \|", rows[2])
    assert rows[3].startswith("| opennmt | 500 [500, 500] |")


@pytest.mark.slow
@pytest.mark.usefixtures("stand_in")
def test_decoding(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "training.txt").write_text("200 updates in 0.8 minutes\n", encoding="utf-8")
    options = ["--sentences", "40", "--rounds", "1", "--threads", "1", "--beam", "2"]
    assert bench.main(["decode", str(run), *options, "--transformer", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("nmt: 1 updates in")
    assert lines[1] == "Transformer: 200 updates in 0.8 minutes."
    names = [line.split("|")[1].strip() for line in lines if line.startswith("|")]
    assert names[2:] == ["nmt", "nmt int8", "Transformer", "Transformer int8"]


@pytest.mark.slow
def test_start(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["start", str(run), "--rounds", "1", "--threads", "1"]) == 0
    assert "| nmt translate SENTENCE | " in capsys.readouterr().out


@pytest.mark.usefixtures("stand_in")
def test_the_transformer_that_is_kept_has_trained_no_longer_than_allowed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, commands = tmp_path / "transformer", []
    monkeypatch.setattr(bench, "run", lambda words, threads: commands.append([*map(str, words)]))
    words = ["transformer", str(run), "--transformer", str(folder), "--minutes", "1"]
    words += ["--threads", "1"]
    assert bench.main(words) == 0
    about = "200 updates in 0.8 minutes of 1 thread(s)"
    assert about in capsys.readouterr().out
    assert (folder / "training.txt").read_text(encoding="utf-8") == f"{about}\n"
    assert str(folder / "model_step_200.pt") in commands[0]
    tokens = (folder / "train.src").read_text(encoding="utf-8").splitlines()
    assert (
        len(tokens) == json.loads((run / "manifest.json").read_bytes())["splits"]["train"]["pairs"]
    )


def test_both_systems_go_from_text_to_text(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    class Translator:  # copies
        def __init__(self, folder: str, **options: object) -> None:
            given.update(options)

        def translate_batch(self, sentences: list[list[str]], **options: object) -> list[Any]:
            given.update(options)
            return [SimpleNamespace(hypotheses=[tokens]) for tokens in sentences]

    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace(Translator=Translator))
    texts = ["The dog sees the tree.", "The man"]
    groups = {"all": [texts], "one by one": [[text] for text in texts]}
    settings = ["decoding.beam=3", "decoding.batch=8", "decoding.precision=int8"]
    outputs = {}
    for model in (None, "model"):
        job = {"run": str(run), "settings": settings, "transformer": model, "threads": 2}
        (tmp_path / "job").write_text(json.dumps({**job, "groups": groups}), encoding="utf-8")
        timed_translation.main(str(tmp_path / "job"), str(tmp_path / "result"))
        seconds, outputs[model] = json.loads((tmp_path / "result").read_bytes())
        assert [*seconds] == [*groups]
    assert len(outputs[None]) == 2
    lowercase = load_run_config(run).tokenizer.lowercase
    assert outputs["model"] == [text.lower() if lowercase else text for text in texts]
    assert given == {
        "beam_size": 3,
        "max_batch_size": timed_translation.CTRANSLATE2_BATCH,
        "compute_type": "int8",
        "inter_threads": 2,
        "intra_threads": 1,
    }


def test_ratios_are_those_within_a_round() -> None:
    results = {
        "nmt": [{"all": 300.0, "BLEU": 41.02}, {"all": 100.0, "BLEU": 41.02}],
        "other": [{"all": 1500.0, "BLEU": 27.3}, {"all": 50.0, "BLEU": 27.3}],
    }
    assert bench.to_table(results, ["nmt"]).splitlines()[2:] == [
        "| nmt | 200 [100, 300] | 1.00 x | 41.0 |",
        "| other | 775 [50.0, 1,500] | 1.10 x | 27.3 |",
    ]


def test_what_cannot_be_compared_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    changed = ["--set", "model.attention.heads=2", "--against", "opennmt"]
    assert bench.main(["train", *changed]) == 1
    assert "do not support this model: model.attention.heads" in capsys.readouterr().err
    assert unsupported_keys(MODEL_R.model) == []


def test_no_transformer_is_trained_by_surprise(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(MODULES, "ctranslate2", "json")
    assert bench.main(["decode", str(run), "--transformer", str(tmp_path / "none")]) == 1
    assert "training.txt is missing; the task `transformer` trains one" in capsys.readouterr().err


def test_a_toolkit_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["train", "--against", "joeynmt", "--peer-python", "joeynmt=none"]) == 1
    assert "not installed for" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["joeynmt", "opennmt", "transformer"])
def test_settings_are_those_of_the_configuration(name: str, tmp_path: Path) -> None:
    write_settings(name, MODEL_R, tmp_path, seed=7)
    text = (tmp_path / "settings.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)
    assert "7" in text
    assert SPACE_MARK not in text
    if name != "transformer":
        assert str(MODEL_R.training.learning_rate.peak) in text
