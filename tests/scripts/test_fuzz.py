"""scripts/fuzz.py: valid inputs pass, and each way to fail is counted and kept."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import DataError

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="Linux only")]


def refuse(text: str) -> None:
    raise DataError(text)


def test_cases_of_some_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from scripts import fuzz

    kinds = [
        word for kind in ("vocabulary", "weights", "records of a run") for word in ("--kind", kind)
    ]
    assert fuzz.main(["-o", str(tmp_path), "--minutes", "0.1", *kinds]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row[:20].strip() for row in rows] == kinds[1::2]
    assert all(int(row[20:30].replace(",", "")) > 1 for row in rows)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda *_: None, ""),
        (lambda *_: refuse("two problems\n  a\n  b"), ""),
        (lambda *_: int("x"), "ValueError: invalid literal for int()"),
        (lambda *_: os.kill(os.getpid(), signal.SIGSEGV), "the process ended with status 11"),
        (lambda *_: bytearray(3 << 30), "MemoryError"),
    ],
)
def test_what_fails_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Any, text: str
) -> None:
    from scripts import fuzz

    class Inputs:
        case = tmp_path

        def seeds(self, seeds: list[bytes]) -> list[bytes]:
            return seeds

    monkeypatch.setitem(fuzz.KINDS, "kind", ("file", read, [b"content"]))
    inputs: Any = Inputs()
    cases, _, _, failed, _ = fuzz.Fuzzer(tmp_path / "failures", inputs, seed=1).run("kind", 0.2)
    assert failed == (cases if text else 0)
    if text:
        assert text in (tmp_path / "failures" / "kind-1-0.txt").read_text("utf-8")
        assert (tmp_path / "failures" / "kind-1-0.bin").exists()
