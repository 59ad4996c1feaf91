"""`nmt export`: what it writes and prints, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.extras.export.translate import Translator
from tests.conftest import Run


def test_the_folder(nmt: Run, run: Path) -> None:
    folder = run.with_name("run-onnx")
    result = nmt("export", run, "--beam", 3, "--set", "decoding.length_penalty=0.5")
    assert (result.status, result.err) == (0, "")
    size, install, command = result.out.splitlines()
    assert size.startswith(f"{folder}: ")
    assert install == f"pip install -r {folder / 'requirements.txt'}"
    assert command == f'python {folder / "translate.py"} "A sentence."'
    names = "encoder.onnx step.onnx settings.json src.vocab.txt tgt.vocab.txt translate.py"
    assert {path.name for path in folder.iterdir()} == {*names.split(), "requirements.txt"}
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    assert (settings["name"], settings["direction"], settings["precision"]) == (
        "toy",
        "en-de",
        "float32",
    )
    assert (settings["decoding"]["beam"], settings["decoding"]["length_penalty"]) == (3, 0.5)
    packages = (folder / "requirements.txt").read_text().split()
    assert packages == [
        "numpy",
        "onnxruntime",
        f"spacy=={settings['tokenizers']['src']['version']}",
    ]
    again = nmt("export", run)
    assert (again.status, again.err) == (
        1,
        f"nmt: {folder}: exists; delete it, or choose another folder with -o\n",
    )


def test_a_bundle(nmt: Run, run: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "model.nmt"
    assert nmt("share", "bundle", run, "-o", bundle).status == 0
    assert nmt("export", bundle).status == 0
    assert Translator(tmp_path / "model-onnx").translate([""]) == [""]


@pytest.mark.parametrize(
    ("key", "value", "only"),
    [
        ("method", "sampling", "beam"),
        ("no_repeat_ngram", 3, "null"),
        ("coverage_penalty", 0.2, 0.0),
        ("shortlist", 20, 0),
        ("neighbors.pairs", 8, 0),
        ("rerank.run", "de-en", "null"),
    ],
)
def test_settings_that_it_refuses(
    nmt: Run, folder: Path, tmp_path: Path, key: str, value: object, only: object
) -> None:
    options = ("-o", tmp_path / "new", "--set", f"decoding.{key}={value}")
    result = nmt("export", folder / "run", *options)
    message = f"decoding.{key}: {value} cannot be exported; add --set decoding.{key}={only}"
    assert (result.status, result.out, result.err) == (1, "", f"nmt: {message}\n")
    assert not (tmp_path / "new").exists()


def test_onnxruntime_sends_no_telemetry(tmp_path: Path) -> None:
    """Otherwise it makes folders in the home of the user as soon as it is imported."""
    silent = ("ORT_", "CI", "GITHUB_ACTIONS", "TF_BUILD", "BUILD_", "XDG_")  # with these anyway
    environment = {name: value for name, value in os.environ.items() if not name.startswith(silent)}
    environment["HOME"] = str(tmp_path)
    code = "import nmt.extras.export.command, onnxruntime.quantization"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert [
        path.name for path in tmp_path.rglob("*") if "icrosoft" in path.name or "onnx" in path.name
    ] == []


def test_a_missing_package_is_named(nmt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("nmt.extras.export.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr(sys.modules["nmt.extras.export"], "translate")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    result = nmt("export")
    message = "nmt: needs onnxruntime, which is not installed: `pip install 'nmt[export]'`\n"
    assert (result.status, result.out, result.err) == (1, "", message)
