"""With graphs, all that translates needs no torch, which takes a second to import and a gigabyte to
install.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import in_one_process
from tests.toy import write

BLOCK = """
import sys
sys.modules["torch"] = sys.modules["onnx"] = None
"""
SERVE = f"""{BLOCK}
from pathlib import Path
from fastapi.testclient import TestClient
from nmt.extras.serve.app import Api
from nmt.extras.serve.routes import create_app
from nmt.extras.serve.command import load_runs
runs = load_runs([Path("run")], device="auto", overrides=())
with TestClient(create_app(Api(runs), hosts=None)) as client:
    for place, body in (
        ("translate", dict(alternatives=1, details=True)),
        ("alternatives", dict(tokens=["Der"])),
        ("tree", dict()),
    ):
        answer = client.post(f"/{{place}}", json={{"q": sys.argv[1], **body}})
        assert answer.status_code == 200, answer.text
"""
SENTENCE = "The dog sees the tree."


@pytest.fixture
def here(folder: Path, run: Path, tmp_path: Path) -> Path:
    """With run/, other/, and files to translate."""
    shutil.copytree(folder / "prepared", tmp_path / "prepared")
    shutil.copytree(folder / "other", tmp_path / "other")
    write(tmp_path / "in.txt", SENTENCE)
    write(tmp_path / "out.txt", "Der Hund sieht den Baum.")
    write(tmp_path / "terms.tsv", "dog\tKater")
    write(tmp_path / "in.po", 'msgid ""', 'msgstr ""', "", f'msgid "{SENTENCE}"', 'msgstr ""')
    return tmp_path


@pytest.mark.slow
def test_the_commands(here: Path) -> None:
    translate = ["translate", "--run", "run"]
    commands = [
        [*translate, SENTENCE],
        [*translate, "--json", "--n-best", "2", "--glossary", "terms.tsv", SENTENCE],
        [*translate, "--run", "other", "--align", "--set", "decoding.method=mbr", SENTENCE],
        [*translate, "--score", f"{SENTENCE}\tDer Hund sieht den Baum."],
        [*translate, "--prefix", "Der", "--attention", "attention.html", SENTENCE],
        [*translate, "--file", "in.po", "-o", "out.po"],
        ["translate-files", "--run", "run", "--file", "in.txt", "-o", "translated"],
        ["check", "in.txt", "out.txt"],
        ["runs", "list", "."],
        ["runs", "show", "run"],
        ["runs", "check", "run"],
        ["evaluate", "run", "--split", "dev", "--data", "prepared"],
        ["--version"],
    ]
    text, details, *_, scores, version = in_one_process(commands, here, BLOCK)
    assert text.startswith("Der ")
    assert "Kater" in json.loads(details)["text"]
    assert "BLEU" in scores
    assert "perplexity of the references" in scores
    assert "torch" not in version
    assert "Der " in (here / "out.po").read_text(encoding="utf-8")
    assert (here / "translated" / "in.txt").read_text(encoding="utf-8") == text


def test_the_server(here: Path) -> None:
    subprocess.run([sys.executable, "-c", SERVE, SENTENCE], cwd=here, check=True)
