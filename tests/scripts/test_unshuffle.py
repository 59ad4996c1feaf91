"""The unshuffle task: its corpus, its check, and the attention of a model that learns it."""

from pathlib import Path

import numpy as np
import pytest

from nmt.commands import prepare, train
from nmt.config.load import load_config
from nmt.data.splitting import sentence_key
from nmt.decoding.translation import Translation
from scripts import check_unshuffle as checker
from scripts import make_unshuffle as maker
from tests.conftest import ROOT

CORPUS = ROOT / "data" / "unshuffle" / "unshuffle.tsv"
CONFIG = ROOT / "configs" / "unshuffle.yaml"


HEADER, *PAIRS = [line.split("\t") for line in CORPUS.read_text(encoding="utf-8").splitlines()]


# --- The corpus


def test_the_script_makes_the_committed_file(tmp_path: Path) -> None:
    maker.main(["--output", str(tmp_path / "unshuffle.tsv")])
    assert (tmp_path / "unshuffle.tsv").read_bytes() == CORPUS.read_bytes()


def test_each_target_is_its_source_sorted_and_no_number_stands_twice() -> None:
    assert HEADER == ["shuffled", "sorted"]
    assert len(PAIRS) == 6000
    for shuffled, ordered in PAIRS:
        numbers = [int(number) for number in shuffled.split(" ")]
        assert ordered == " ".join(map(str, sorted(numbers)))
        assert len(set(numbers)) == len(numbers)
        assert 3 <= len(numbers) <= 8
        assert set(numbers) <= set(range(10, 40))
    for column in (0, 1):
        assert len({sentence_key(pair[column]) for pair in PAIRS}) == len(PAIRS)


# --- The check


def translation(source: str, text: str, attended: list[int]) -> Translation:
    """Its step t attends most to position `attended[t]`; the last column is <eos>."""
    weights = np.full((len(attended), len(source.split()) + 1), 0.1, np.float32)
    weights[np.arange(len(attended)), attended] = 0.6
    return Translation(source, text, attention=weights)


@pytest.mark.parametrize(
    ("attended", "aligned"),
    [
        pytest.param([1, 2, 0, 3], 3, id="all, and <eos>"),
        pytest.param([1, 2, 0], 3, id="cut before <eos>"),
        pytest.param([1, 2, 0, 0, 3], 3, id="too long"),
        pytest.param([1, 2], 2, id="too short"),
        pytest.param([0, 1, 2, 3], 0, id="as they stand"),
        pytest.param([2, 0, 1, 3], 0, id="each one step early"),
        pytest.param([3, 3, 3, 3], 0, id="<eos> only"),
    ],
)
def test_counts_the_steps_that_look_where_their_number_stands(
    attended: list[int], aligned: int
) -> None:
    tally = checker.count([translation("31 15 22", "15 22 31", attended)], ["15 22 31"])
    assert (tally.aligned, tally.steps) == (aligned, 3)


def test_counts_sentences_without_a_fault_apart_from_attention() -> None:
    translations = [
        translation("31 15", "15 31", [0, 1, 2]),
        translation("31 15", "15 15", [1, 0, 2]),
        Translation("31 15"),
    ]
    tally = checker.count(translations, ["15 31"] * 3)
    assert (tally.exact, tally.sentences, tally.aligned, tally.steps) == (1, 3, 2, 6)
    assert tally.exact_share == pytest.approx(1 / 3)
    assert tally.aligned_share == pytest.approx(1 / 3)


def test_a_missing_run_is_said_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checker.main([str(tmp_path / "none")]) == 1
    assert "no run here" in capsys.readouterr().err


# --- The model


@pytest.mark.slow
def test_a_small_model_attends_to_the_permutation(tmp_path: Path) -> None:
    """The model of the configuration, with fewer numbers to tell apart."""
    pairs = maker.make_pairs(1800, seed=1, numbers=range(10, 22), lengths=range(3, 7))
    (tmp_path / "pairs.tsv").write_text(maker.to_table(pairs), encoding="utf-8")
    settings = {
        "data.source.path": tmp_path / "pairs.tsv",
        "data.prepared": tmp_path / "prepared",
        "data.workers": 1,
        "data.split.dev": 50,
        "data.split.test": 150,
        "training.max_minutes": 10,
        "training.epochs": 6,
        "training.learning_rate.peak": 0.005,
        "training.learning_rate.steps": 300,
        "training.validate_every": 100,
    }
    config = load_config(CONFIG, [f"{key}={value}" for key, value in settings.items()])
    prepare.run(config)
    train.run(config, tmp_path / "run", quiet=True)
    tally = checker.check(tmp_path / "run")
    assert tally.exact_share >= 0.95
    assert tally.aligned_share >= 0.95
