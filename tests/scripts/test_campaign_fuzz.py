"""scripts/campaign_fuzz.py: a short campaign over all targets; failures are found and kept; a campaign continues."""

import json
import random
import warnings
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs nmt[serve]")

from nmt.errors import DataError
from scripts import campaign_fuzz
from scripts.campaign_fuzz import TARGETS, Target, main, make_files, mutate, run_case


@pytest.mark.slow
def test_a_short_campaign_finds_nothing(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make_files(tmp_path)
        for name, target in TARGETS.items():
            seeds = target.seeds(tmp_path)
            assert run_case(target, seeds[0], tmp_path) is None, f"{name}: valid input"
            for number in range(30):
                outcome = run_case(target, mutate(seeds, random.Random(f"test {name} {number}")), tmp_path)
                assert outcome in (None, "refused"), f"{name}, case {number}"


def test_outcomes(tmp_path: Path) -> None:
    def read(content: bytes, folder: Path) -> None:
        if content == b"bad":
            raise DataError("x: bad")
        if content == b"worse":
            raise KeyError("x")

    target = Target(read, lambda _: [b"good"])
    assert run_case(target, b"good", tmp_path) is None
    assert run_case(target, b"bad", tmp_path) == "refused"
    assert "KeyError: 'x'" in str(run_case(target, b"worse", tmp_path))


def test_a_case_depends_only_on_its_number() -> None:
    seeds = [b"abc" * 50, b"{}"]
    first = [mutate(seeds, random.Random(f"1 x {number}")) for number in range(50)]
    assert first == [mutate(seeds, random.Random(f"1 x {number}")) for number in range(50)]
    assert len({*first}) > 40


@pytest.mark.slow
def test_a_campaign_continues(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_fuzz, "make_files", lambda folder: folder.mkdir(parents=True, exist_ok=True))
    call = ["-o", str(tmp_path), "--targets", "word vectors"]
    assert main([*call, "--cases", "3"]) == 0
    counts = json.loads((tmp_path / "counts.json").read_text())["word vectors"]
    assert counts["cases"] == counts["accepted"] + counts["refused"] == 3
    assert main([*call, "--cases", "5"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:2] == ["total", "5"]
