"""`nmt runs reproduce`: the same weights again, and the errors when that cannot be."""

import json
import shutil
from pathlib import Path

import pytest

from nmt.files import CHECKSUMS_FILE, read_json, write_json
from tests import toy
from tests.conftest import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with prepared/ and run/, a training that a limit of time could have ended."""
    folder = tmp_path_factory.mktemp("reproduce")
    toy.train(
        folder,
        training={
            "max_steps": 20,
            "max_minutes": 5,
            "validate_every": 10,
            "log_every": 5,
            "batch": {"size": 16},
        },
    )
    return folder


@pytest.fixture
def copied(folder: Path, nmt: Run, tmp_path: Path) -> Path:
    """Its run, in another folder, with a finished reproduction beside it."""
    shutil.copytree(folder / "run", tmp_path / "run")
    if not (folder / "run-reproduced").exists():
        assert nmt("runs", "reproduce", folder / "run", "--device", "cpu").status == 0
    shutil.copytree(folder / "run-reproduced", tmp_path / "run-reproduced")
    return tmp_path / "run"


def test_the_weights_are_equal(nmt: Run, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.move(folder / "prepared", tmp_path / "moved")
    try:
        absent = nmt("runs", "reproduce", folder / "run")
        options = ("--data", tmp_path / "moved", "--device", "cpu", "--quiet")
        result = nmt("runs", "reproduce", folder / "run", "-o", copy, *options)
    finally:
        shutil.move(tmp_path / "moved", folder / "prepared")
    assert f"{folder / 'prepared'}: no prepared data here" in absent.err
    assert (result.status, result.err) == (0, "")
    assert result.out.endswith("equal: the weights of both trainings are the same bit for bit\n")
    model = "checkpoints/step-00000020/model.safetensors"
    assert (copy / model).read_bytes() == (folder / "run" / model).read_bytes()


def test_a_second_call_trains_nothing_and_finds_a_difference(nmt: Run, copied: Path) -> None:
    copy = copied.with_name("run-reproduced")
    result = nmt("runs", "reproduce", copied)
    assert result.status == 0
    assert "run-reproduced: already trained, to step 20" in result.err
    model = copy / "checkpoints" / "step-00000020" / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1] + b"\1")
    (model.parent / CHECKSUMS_FILE).unlink(missing_ok=True)
    result = nmt("runs", "reproduce", copied)
    assert (result.status, result.err.splitlines()[-1]) == (
        1,
        f"nmt: {copy}: the weights differ from those of {copied}",
    )


def test_other_data_is_refused(nmt: Run, copied: Path) -> None:
    manifest = read_json(copied / "manifest.json")
    write_json(copied / "manifest.json", {**manifest, "content": "other"})
    assert f"is not the data that {copied} was trained on" in nmt("runs", "reproduce", copied).err


def test_runs_that_cannot_be_repeated(nmt: Run, copied: Path) -> None:
    assert (
        "holds the run itself; name another folder with -o"
        in nmt("runs", "reproduce", copied, "-o", copied).err
    )
    config = copied / "config.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(
        text.replace("schedule: constant    ", "schedule: linear  ", 1).replace(
            "steps: 10000", "steps: null", 1
        )
    )
    assert "its learning rate follows training.max_minutes" in nmt("runs", "reproduce", copied).err
    config.write_text(text)
    provenance = json.loads((copied / "provenance.json").read_text())
    (copied / "provenance.json").write_text(json.dumps([{**provenance[0], "processes": 2}]))
    assert "several processes trained it" in nmt("runs", "reproduce", copied).err
    (copied / "provenance.json").unlink()
    progress = copied / "checkpoints" / "step-00000020" / "progress.json"
    write_json(progress, {**read_json(progress), "finished": None})
    command = f"nmt train -c {config} -o {copied} --resume"
    assert (
        nmt("runs", "reproduce", copied).err
        == f"nmt: {copied}: its training is not finished; `{command}` continues it\n"
    )
