"""The bench of speed: nmt, and a stand-in for another toolkit."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.config.load import load_config
from scripts import bench
from scripts.peer_toolkits import PEERS, SPACE_MARK, Peer, unsupported_keys, write_settings
from tests import toy

ROOT = Path(__file__).resolve().parent.parent.parent
MODEL_R = load_config(ROOT / "scripts/peers/model-r.yaml")
PEER = """
import sys, time
task, source = sys.argv[1:3]
if task == "train":
    for _ in range(200):
        print("speed 500", flush=True)
        time.sleep(0.05)
else:
    lines = open(f"{source}.src", encoding="utf-8").read().splitlines()
    time.sleep(0.3 * (len(lines) > 1))
    open(f"{source}.out", "w", encoding="utf-8").write("".join(f"{line}\\n" for line in lines))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.train(tmp_path_factory.mktemp("bench"), training=toy.ONE_UPDATE)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    script = tmp_path / "peer.py"
    script.write_text(PEER, encoding="utf-8")
    commands = f"{script} train none", f"{script} translate {{source}}"
    peer = Peer("json", *commands, False, re.compile(r"speed (\d+)"), 2)
    monkeypatch.setitem(PEERS, "opennmt", peer)
    monkeypatch.setattr(bench, "unsupported_keys", lambda model: [])
    return f"opennmt={sys.executable}"


@pytest.mark.slow
def test_training(run: Path, stand_in: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--seconds", "4", "--rounds", "1", "--threads", "1", "--against", "opennmt"]
    config = str(run / "config.yaml")
    status = bench.main(["train", config, *options, "--peer-python", stand_in])
    assert status == 0, capsys.readouterr().err
    rows = capsys.readouterr().out.splitlines()
    assert re.match(r"\| nmt \| [\d,.]+ \[.*\] \| 1.00 x \| [\d,]+ MB", rows[2])
    assert rows[3].startswith("| opennmt | 500.0 [500.0, 500.0]")


@pytest.mark.slow
def test_decoding(
    run: Path,
    stand_in: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    really_run = bench.run

    def run_in_whole_seconds(words: Any, threads: int, **files: Any) -> tuple[float, float, str]:
        _, memory, text = really_run(words, threads, **files)
        is_whole = any(Path(str(word)).stem == "test" for word in words)
        return (2.0 if is_whole else 1.0), memory, text

    monkeypatch.setattr(bench, "run", run_in_whole_seconds)
    options = ["--sentences", "40", "--rounds", "1", "--threads", "1", "--against", "opennmt"]
    assert bench.main(["decode", str(run), *options, "--peer-python", stand_in]) == 0
    names = [row.split("|")[1].strip() for row in capsys.readouterr().out.splitlines()[2:]]
    assert names == ["nmt", "nmt int8", "opennmt"]


def test_what_cannot_be_compared_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    changed = ["--set", "model.attention.heads=2", "--against", "opennmt"]
    assert bench.main(["train", *changed]) == 1
    assert "do not support this model: model.attention.heads" in capsys.readouterr().err
    assert unsupported_keys(MODEL_R.model) == []


def test_a_toolkit_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["train", "--against", "joeynmt", "--peer-python", "joeynmt=none"]) == 1
    assert "not installed for" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["joeynmt", "opennmt"])
def test_settings_are_those_of_the_configuration(name: str, tmp_path: Path) -> None:
    write_settings(name, MODEL_R, tmp_path, {"seed": 7, "beam": 5, "updates": 300})
    text = (tmp_path / "settings.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)
    assert str(MODEL_R.training.learning_rate.peak) in text
    assert SPACE_MARK not in text
