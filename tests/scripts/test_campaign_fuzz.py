"""scripts/campaign_fuzz.py: a short campaign over all targets; failures are found and kept; a
campaign continues.
"""

import ctypes
import json
import multiprocessing
import os
import time
import warnings
from multiprocessing.context import ForkContext
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs nmt[serve]")
pytest.importorskip("pyarrow", reason="needs nmt[formats]")
pytest.importorskip("zstandard", reason="needs nmt[formats]")

from nmt.errors import DataError
from scripts import campaign_fuzz
from scripts.campaign_fuzz import main
from scripts.fuzz import process
from scripts.fuzz.inputs import make_files
from scripts.fuzz.process import case, run_case
from scripts.fuzz.targets import TARGETS, Target

SLOW = {"translation": 5, "run, shown": 10}  # cases


@pytest.mark.slow
def test_a_short_campaign_finds_nothing(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make_files(tmp_path)
        for name, target in TARGETS.items():
            seeds = target.seeds(tmp_path)
            assert None in [run_case(target, seed, tmp_path) for seed in seeds], (
                f"{name}: valid inputs"
            )
            for number in range(SLOW.get(name, 50)):
                outcome = run_case(target, case(name, 0, number, seeds), tmp_path)
                assert outcome in (None, "refused"), f"{name}, case {number}"


def test_outcomes(tmp_path: Path) -> None:
    def read(content: bytes, folder: Path) -> None:
        if content == b"bad":
            raise DataError("x: bad")
        if content == b"worse":
            raise KeyError("x")
        if content == b"lines":
            raise DataError("x: bad\n  y\n  z")

    target = Target(read, lambda _: [b"good"])
    assert run_case(target, b"good", tmp_path) is None
    assert run_case(target, b"bad", tmp_path) == run_case(target, b"lines", tmp_path) == "refused"
    assert "KeyError: 'x'" in str(run_case(target, b"worse", tmp_path))


def test_a_case_that_computes_too_long_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "SECONDS", 0.05)

    def read(_content: bytes, _folder: Path) -> None:
        while True:
            time.process_time()

    assert "LimitError: more than 0.05 seconds" in str(
        run_case(Target(read, lambda _: [b""]), b"", tmp_path)
    )


def test_a_case_depends_only_on_its_number() -> None:
    seeds = [b"abc" * 50, b'{"x": 1, "y": [2, 3]}']
    first = [case("x", 1, number, seeds) for number in range(50)]
    assert first == [case("x", 1, number, seeds) for number in range(50)]
    assert len({*first}) > 40


@pytest.mark.slow
def test_a_campaign_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        campaign_fuzz, "make_files", lambda folder: folder.mkdir(parents=True, exist_ok=True)
    )
    call = ["-o", str(tmp_path), "--targets", "word vectors"]
    assert main([*call, "--cases", "3"]) == 0
    counts = json.loads((tmp_path / "counts.json").read_text())["word vectors"]
    assert counts["cases"] == counts["accepted"] + counts["refused"] == 3
    assert main([*call, "--cases", "5"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:2] == ["total", "5"]


def crash(content: bytes, _folder: Path) -> None:
    if content == b"crash":
        os.kill(os.getpid(), 9)
    if content == b"memory":
        bytearray(process.EXTRA_BYTES + (1 << 28))


@pytest.mark.slow
def test_a_crash_and_too_much_memory_cost_one_case_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chunk runs in this process, but for a fork that dies."""
    contents = [b"", b"memory", b"crash", b"", b""]
    monkeypatch.setattr(process, "case", lambda _name, _seed, number, _seeds: contents[number])
    monkeypatch.setitem(TARGETS, "x", Target(crash, lambda _: [b""]))
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: ForkContext())
    (tmp_path / "files").mkdir()
    counts, saved = process.Counts(), ctypes.c_int()
    process.run_target(
        "x", 1, 5, tmp_path, counts, lambda: setattr(saved, "value", saved.value + 1)
    )
    assert (counts.cases, counts.accepted, counts.refused, counts.failed) == (5, 3, 0, 2)
    texts = [path.read_text() for path in sorted((tmp_path / "failures").glob("*.txt"))]
    assert "MemoryError" in texts[0]
    assert texts[1] == "the interpreter crashed (status -9)"
    assert saved.value >= 3
