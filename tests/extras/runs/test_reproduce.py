"""`nmt reproduce`: the same weights again, and the errors when that cannot be."""

import json
import shutil
from pathlib import Path

import pytest

from nmt.files import CHECKSUMS_FILE, read_json, write_json
from tests import toy
from tests.conftest import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pairs.tsv, prepared/ and run/, a training that a limit of time could have
    ended.
    """
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
        assert nmt("reproduce", folder / "run", "--device", "cpu").status == 0
    shutil.copytree(folder / "run-reproduced", tmp_path / "run-reproduced")
    return tmp_path / "run"


def test_the_weights_are_equal(nmt: Run, folder: Path, tmp_path: Path) -> None:
    result = nmt(
        "reproduce", folder / "run", "-o", tmp_path / "copy", "--device", "cpu", "--json", "--quiet"
    )
    assert (result.status, result.err) == (0, "")
    value = json.loads(result.out)
    assert (value["equal"], value["step"], value["difference"], value["remarks"]) == (
        True,
        20,
        None,
        [],
    )
    model = "checkpoints/step-00000020/model.safetensors"
    assert (tmp_path / "copy" / model).read_bytes() == (folder / "run" / model).read_bytes()


def test_the_screen_says_equal_and_a_second_call_trains_nothing(nmt: Run, copied: Path) -> None:
    result = nmt("reproduce", copied)
    assert result.status == 0
    assert "run-reproduced: already trained, to step 20" in result.err
    assert result.out.endswith(
        "equal: step 20, the weights of both trainings are the same bit for bit\n"
    )


def test_where_the_journals_first_differ(nmt: Run, copied: Path) -> None:
    copy = copied.with_name("run-reproduced")
    journal, model = (
        copy / "journal.jsonl",
        copy / "checkpoints" / "step-00000020" / "model.safetensors",
    )
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    loss = events[1]["loss"]
    events[1]["loss"] = 9.5
    journal.write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")
    model.write_bytes(model.read_bytes()[:-1] + b"\1")
    (model.parent / CHECKSUMS_FILE).unlink(missing_ok=True)
    provenance = json.loads((copied / "provenance.json").read_text())
    provenance[0]["libraries"]["torch"] = "1.0"
    (copied / "provenance.json").write_text(json.dumps(provenance))
    result = nmt("reproduce", copied)
    assert result.status == 1
    assert result.err.splitlines()[-1] == (
        f"nmt: {copy}: the weights differ from those of {copied}; the journals first differ: "
        f"step 10, train: loss {loss} in {copied}, 9.5 in {copy}"
    )
    assert "torch: 1.0 then, " in result.out
    (copied / "journal.jsonl").write_text(
        "".join(f"{json.dumps(event)}\n" for event in events[:1]), encoding="utf-8"
    )
    assert f"step 10, train: only in {copy}" in nmt("reproduce", copied).err


def test_missing_data_is_prepared_again_from_the_same_inputs(
    nmt: Run, copied: Path, folder: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    shutil.move(folder / "prepared", moved)
    try:
        assert nmt("reproduce", copied, "--data", moved).status == 0
        result = nmt("reproduce", copied)
        assert (result.status, (folder / "prepared").is_dir()) == (0, True)
        shutil.rmtree(folder / "prepared")
        text = (folder / "pairs.tsv").read_text(encoding="utf-8")
        (folder / "pairs.tsv").write_text(text.replace("dog", "cat"), encoding="utf-8")
        result = nmt("reproduce", copied)
        assert result.status == 1
        assert (
            f"prepared again, but it is not the data that {copied} was trained on "
            f"({folder / 'pairs.tsv'} has changed"
        ) in result.err
        assert "is not the data that" in nmt("reproduce", copied).err
        shutil.rmtree(folder / "prepared")
        (folder / "pairs.tsv").unlink()
        assert "pairs.tsv: no such file" in nmt("reproduce", copied).err
        manifest = read_json(copied / "manifest.json")
        write_json(copied / "manifest.json", {**manifest, "augmentation": {}})
        assert "`nmt augment` made it, name its folder with --data" in nmt("reproduce", copied).err
    finally:
        toy.write_table(folder / "pairs.tsv", toy.sentence_pairs())
        shutil.move(moved, folder / "prepared")


def test_runs_that_cannot_be_repeated(nmt: Run, copied: Path) -> None:
    assert (
        "holds the run itself; name another folder with -o"
        in nmt("reproduce", copied, "-o", copied).err
    )
    config = copied / "config.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(
        text.replace("schedule: constant    ", "schedule: linear  ", 1).replace(
            "steps: 10000", "steps: null", 1
        )
    )
    assert "its learning rate follows training.max_minutes" in nmt("reproduce", copied).err
    config.write_text(text)
    provenance = json.loads((copied / "provenance.json").read_text())
    (copied / "provenance.json").write_text(json.dumps([{**provenance[0], "processes": 2}]))
    assert "several processes trained it" in nmt("reproduce", copied).err
    (copied / "provenance.json").unlink()
    result = nmt("reproduce", copied)
    assert "the run does not say which versions and how many threads trained it" in result.out
    progress = copied / "checkpoints" / "step-00000020" / "progress.json"
    write_json(progress, {**read_json(progress), "finished": None})
    command = f"nmt train -c {config} -o {copied} --resume"
    assert (
        nmt("reproduce", copied).err
        == f"nmt: {copied}: its training is not finished; `{command}` continues it\n"
    )
    progress.unlink()
    assert "progress.json: cannot be read" in nmt("reproduce", copied).err
