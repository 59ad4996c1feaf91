"""scripts/bench.py: each table, on a small run; the ratios; the settings of other toolkits."""

from pathlib import Path

import pytest
import yaml

from nmt.config.load import load_config
from scripts import bench
from scripts.peer_toolkits import unsupported_keys, write_settings
from tests import toy
from tests.conftest import ROOT

MODEL_R = load_config(ROOT / "scripts/peers/model-r.yaml")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.train(tmp_path_factory.mktemp("bench"), training=toy.ONE_UPDATE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("train {}/config.yaml --seconds 6", ["nmt float32"]),
        ("decode {} --sentences 40 --beam 2", ["nmt", "nmt int8"]),
        ("start {}", ["nmt translate SENTENCE", "nmt translate --help"]),
    ],
)
def test_a_table(
    run: Path, capsys: pytest.CaptureFixture[str], words: str, names: list[str]
) -> None:
    assert bench.main([*words.format(run).split(), "--rounds", "1", "--threads", "1"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert [row.split(" | ")[0] for row in rows[2:]] == [f"| {name}" for name in names]


def test_ratios_are_those_within_a_round() -> None:
    results = {
        "nmt": [{"all": 300.0, "BLEU": 41.02}, {"all": 100.0, "BLEU": 41.02}],
        "other": [{"all": 1500.0, "BLEU": 27.3}, {"all": 50.0, "BLEU": 27.3}],
    }
    assert bench.to_table(results, ["nmt"]).splitlines()[2:] == [
        "| nmt | 200 [100, 300] | 1.00 x | 41.0 |",
        "| other | 775 [50.0, 1,500] | 1.10 x | 27.3 |",
    ]


@pytest.mark.parametrize("name", ["joeynmt", "opennmt", "transformer"])
def test_settings_are_those_of_the_configuration(name: str, tmp_path: Path) -> None:
    assert unsupported_keys(MODEL_R.model) == []
    write_settings(name, MODEL_R, tmp_path, seed=7)
    text = (tmp_path / "settings.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)
    assert "7" in text
