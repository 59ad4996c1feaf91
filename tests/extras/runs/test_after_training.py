"""`nmt runs average`, and averaging at the end of a training; `nmt runs reproduce`: the same
weights again, and the errors when that cannot be.
"""

import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from nmt.files import CHECKSUMS_FILE, read_json, write_json
from nmt.run.folder import lock_run
from nmt.run.journal import Journal
from tests.conftest import Run


def test_a_run_is_averaged_afterwards(nmt: Run, short: Path) -> None:
    result = nmt("runs", "average", short, "--kept", "last")
    assert result.status == 0
    assert result.out.startswith("average of steps 2, 4, 6  dev loss ")
    event = Journal(short / "journal.jsonl").read()[-1]
    assert (event["event"], event["step"], event["members"]) == ("average", 6, [2, 4, 6])
    # In so short a training the last is by far the best.
    assert result.out.rstrip().endswith(": not better than the best checkpoint, which stays in use")
    assert nmt("translate", "--run", short, "The dog sees the tree.").status == 0
    with lock_run(short):
        result = nmt("runs", "average", short)
    assert result.err == f"nmt: {short}: another training is running in it\n"


def test_an_average_that_is_used_has_graphs(nmt: Run, short: Path) -> None:
    path = short / "checkpoints" / "best.json"
    pointer = read_json(path)
    for kept in pointer["kept"]:
        kept |= {"score": -99.0, "loss": 99.0}  # worse than any average
    write_json(path, pointer)
    average = nmt.prints("runs", "average", short, "--kept", "last")
    assert ": the best checkpoint, used from now on\n" in average
    assert nmt.prints("translate", "--run", short, "The dog sees the tree.")


@pytest.mark.slow
def test_training_average_averages_at_the_end(nmt: Run, made: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train = ("train", "-c", made / "run" / "config.yaml", "-o", run, "--set")
    result = nmt(*train, "training.average=best")
    assert result.status == 0
    assert "average of steps 4, 6  dev loss " in result.err
    assert Journal(run / "journal.jsonl").read()[-1]["members"] == [4, 6]
    more = ("--resume", "--set", "training.max_steps=8")
    assert nmt(*train, "training.average=best", *more).status == 0
    assert Journal(run / "journal.jsonl").read()[-1]["members"] == [6, 8]


def test_the_weights_are_equal(nmt: Run, made: Path, short: Path, tmp_path: Path) -> None:
    copy = short.with_name("short-reproduced")
    shutil.move(made / "prepared", tmp_path / "moved")
    try:
        absent = nmt("runs", "reproduce", short)
    finally:
        shutil.move(tmp_path / "moved", made / "prepared")
    assert f"{made / 'prepared'}: no prepared data here" in absent.err
    result = nmt("runs", "reproduce", short)
    assert result.status == 0
    assert result.out.endswith("equal: the weights of both trainings are the same bit for bit\n")
    model = "checkpoints/step-00000006/model.safetensors"
    assert (copy / model).read_bytes() == (made / "run" / model).read_bytes()


def test_a_second_call_trains_nothing_and_finds_a_difference(nmt: Run, short: Path) -> None:
    copy = short.with_name("short-reproduced")
    assert nmt("runs", "reproduce", short).status == 0
    result = nmt("runs", "reproduce", short)
    assert (result.status, "-reproduced: already trained, to step 6" in result.err) == (0, True)
    model = copy / "checkpoints" / "step-00000006" / "model.safetensors"
    (model.parent / CHECKSUMS_FILE).unlink()
    save_file(load_file(model), model, metadata={"another": "header"})
    result = nmt("runs", "reproduce", short)
    assert (result.status, result.out[:6]) == (0, "model."), "the same weights, in another file"
    model.write_bytes(model.read_bytes()[:-1] + b"\1")
    result = nmt("runs", "reproduce", short)
    text = f"nmt: {copy}: the weights differ from those of {short}"
    assert (result.status, result.err.splitlines()[-1]) == (1, text)


def test_runs_that_cannot_be_repeated(
    nmt: Run, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(text: str) -> None:
        nmt.refuses(text, "runs", "reproduce", short)

    def edit(name: str, old: str, new: str) -> None:
        text = (short / name).read_text(encoding="utf-8")
        assert old in text
        (short / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    edit("config.yaml", "schedule: constant    ", "schedule: linear  ")
    edit("config.yaml", "steps: 10000", "steps: null")
    refused("its learning rate follows training.max_minutes")
    edit("config.yaml", "schedule: linear", "schedule: constant")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    edit("provenance.json", '"device": "cpu"', '"device": "NVIDIA H100"')
    refused("NVIDIA H100 trained it, and another device rounds differently; repeat the command")
    edit("provenance.json", '"processes": 1', '"processes": 2')
    refused("several processes trained it")
    (short / "provenance.json").unlink()
    edit("manifest.json", '"content": "', '"content": "other')
    edit("manifest.json", '"checksum"', '"no checksum"')
    refused(f"is not the data that {short} was trained on")
    progress = short / "checkpoints" / "step-00000006" / "progress.json"
    write_json(progress, {**read_json(progress), "finished": None})
    command = f"nmt train -c {short / 'config.yaml'} -o {short} --resume"
    refused(f"nmt: {short}: its training is not finished; `{command}` continues it\n")
