"""The script that loads a server: what it prints, and that it fails if answers are wrong."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs nmt[serve]")

from scripts import load_serve
from tests import toy

pytestmark = pytest.mark.slow


def test_it_measures_and_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, sentences = toy.train(tmp_path), tmp_path / "sentences.txt"
    sentences.write_text(
        "".join(f"{source}\n" for source, _ in toy.sentence_pairs()[:40]), encoding="utf-8"
    )
    words = [
        "load_serve",
        str(run),
        "--clients",
        "20",
        "--requests",
        "100",
        "--file",
        str(sentences),
    ]
    monkeypatch.setattr(sys, "argv", words)
    load_serve.main()
    out = capsys.readouterr().out
    assert "100 x 200; 0 answers are not those of the sentence alone" in out
    assert "exit status           0 after SIGTERM" in out
    monkeypatch.setattr(load_serve.Client, "translate", lambda *_: (503, {"translatedText": ""}))
    with pytest.raises(SystemExit):
        load_serve.main()
