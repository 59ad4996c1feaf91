"""Scripts that print a table, each on a small run; and what scripts/bench.py measures."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nmt.config.load import load_config
from scripts import bench, check_significance, recipes
from scripts.peer_toolkits import unsupported_keys, write_settings
from tests import toy
from tests.conftest import ROOT, Run

MODEL_R = load_config(ROOT / "scripts/peers/model-r.yaml")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")


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
def test_the_table_of_bench(
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


@pytest.mark.slow
@linux_only
def test_the_table_of_campaign(tmp_path: Path) -> None:
    words = ["-o", str(tmp_path), "--trials", "1", "--command", "translate -o"]
    script = ROOT / "scripts" / "campaign.py"
    done = subprocess.run(
        [sys.executable, script, *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    _, *rows = done.stdout.splitlines()
    assert [row[24:40].strip() for row in rows] == [
        "kill at changes",
        "kill at times",
        "signals",
        "disk full",
        "quota",
    ]
    assert all(row.split()[-3:-2] == ["1"] and row.endswith(" 0") for row in rows)


def test_the_table_of_check_significance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    references = [target for _, target in toy.sentence_pairs()]
    files = []
    for old, new in (("Hund", "Wolf"), ("König", "Kaiser"), ("", "")):
        text = "".join(f"{line.replace(old, new)}\n" for line in references)
        files.append(tmp_path / f"{new}.txt")
        files[-1].write_text(text, encoding="utf-8")
    one, other, reference = map(str, files)
    options = "--pairs", "2", "--sentences", "50"
    assert check_significance.main([one, other, "--references", reference, *options]) == 0
    assert re.fullmatch(r"[\d.]+ % \+- [\d.]+ of 2 pairs below 0.05\n", capsys.readouterr().out)


@pytest.mark.slow
@linux_only
def test_the_table_of_fuzz(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from scripts import fuzz

    kinds = ["vocabulary", "weights", "records of a run"]
    words = [f"--kind={kind}" for kind in kinds]
    assert fuzz.main(["-o", str(tmp_path), "--minutes", "0.1", *words]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row[:20].strip() for row in rows] == kinds
    assert all(int(row[20:30].replace(",", "")) > 1 for row in rows)


def test_runs_that_differ_in_the_seed_share_a_row(
    run: Path, tmp_path: Path, nmt: Run, capsys: pytest.CaptureFixture[str]
) -> None:
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
