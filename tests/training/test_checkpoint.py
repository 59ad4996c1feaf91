"""Checkpoints survive being cut short anywhere, and damage is reported in a line."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import AdamW

from nmt.config import ModelConfig
from nmt.errors import CheckpointError
from nmt.model.seq2seq import Seq2Seq
from nmt.training import checkpoint
from nmt.training.checkpoint import Checkpoints, Progress, load_optimizer, load_weights, read_progress
from nmt.training.journal import Journal


def make() -> tuple[nn.Module, AdamW]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    optimizer = AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def save(run: Path, step: int, *, best: bool = False) -> None:
    Checkpoints(run).save(Progress(step=step), *make(), best=best)


def names(run: Path) -> set[str]:
    return {path.name for path in (run / "checkpoints").iterdir()}


def test_round_trip(tmp_path: Path) -> None:
    model, optimizer = make()
    progress = Progress(step=12, epoch=1, batch=3, best=4.5, stale=2, seconds=6.5)
    Checkpoints(tmp_path).save(progress, model, optimizer, best=True)
    folder = Checkpoints(tmp_path).find("last")
    assert folder == tmp_path / "checkpoints" / "step-00000012" == Checkpoints(tmp_path).find("best")
    other, other_optimizer = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), None
    load_weights(folder, other)
    other_optimizer = AdamW(other.parameters())
    load_optimizer(folder, other, other_optimizer)
    assert read_progress(folder) == progress
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
        for entry, value in optimizer.state[one].items():
            assert torch.equal(value, other_optimizer.state[two][entry])


def test_tied_weights_are_saved(tmp_path: Path) -> None:
    model = nn.ModuleDict({"embedding": nn.Embedding(5, 3), "output": nn.Linear(3, 5)})
    model["output"].weight = model["embedding"].weight
    Checkpoints(tmp_path).save(Progress(step=1), model, AdamW(model.parameters()), best=False)
    load_weights(tmp_path / "checkpoints" / "step-00000001", model)


@pytest.mark.parametrize(
    "options",
    [{"tie_embeddings": "all"}, {"attention": {"kind": "local_p", "heads": 2}}, {"encoder": {"layers": 2, "layer_norm": True}}],
    ids=str,
)
def test_a_model_comes_back_as_it_was(options: dict[str, Any], tmp_path: Path) -> None:
    model, other = (Seq2Seq(ModelConfig.model_validate({"embedding_size": 8, **options}), 9, 9) for _ in range(2))
    optimizer, other_optimizer = AdamW(model.parameters()), AdamW(other.parameters())
    model.output(model(torch.tensor([[5, 6]]), torch.tensor([2]), torch.tensor([[2, 4]])).vectors).sum().backward()
    optimizer.step()
    Checkpoints(tmp_path).save(Progress(step=1), model, optimizer, best=False)
    folder = tmp_path / "checkpoints" / "step-00000001"
    load_weights(folder, other)
    load_optimizer(folder, other, other_optimizer)
    assert len(list(other.parameters())) == len(list(model.parameters()))
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
        assert torch.equal(optimizer.state[one]["exp_avg"], other_optimizer.state[two]["exp_avg"])


def test_only_the_last_and_the_best_are_kept(tmp_path: Path) -> None:
    for step, best in ((1, True), (2, True), (3, False), (4, False)):
        save(tmp_path, step, best=best)
    assert names(tmp_path) == {"step-00000002", "step-00000004", "last.json", "best.json"}


def test_the_same_step_again_only_changes_the_progress(tmp_path: Path) -> None:
    save(tmp_path, 5)
    Checkpoints(tmp_path).save(Progress(step=5, finished="enough"), *make(), best=True)
    assert read_progress(tmp_path / "checkpoints" / "step-00000005").finished == "enough"


@pytest.mark.parametrize("broken", ["save_model", "save_file", "_write_json"])
def test_cut_short_at_any_point_the_previous_checkpoint_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    save(tmp_path, 1, best=True)

    def fail(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, broken, fail)
        with pytest.raises(
            CheckpointError, match=r"step 2 cannot be written \(No space left on device\); earlier checkpoints are intact"
        ):
            save(tmp_path, 2, best=True)
    folder = Checkpoints(tmp_path).find("last")
    assert folder is not None
    assert folder.name == "step-00000001"
    load_weights(folder, make()[0])
    Checkpoints(tmp_path).delete_unnamed()
    assert names(tmp_path) == {"step-00000001", "last.json", "best.json"}


def test_a_crash_between_the_pointers_does_not_lose_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 1, best=True)
    replace_json = checkpoint._write_json

    def fail_at_last(path: Path, value: object) -> None:
        if path.name == "last.json":
            raise OSError("power cut")
        replace_json(path, value)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_write_json", fail_at_last)
        with pytest.raises(CheckpointError, match="power cut"):
            save(tmp_path, 2, best=True)
    Checkpoints(tmp_path).delete_unnamed()
    assert {pointer: find(tmp_path, pointer) for pointer in ("last", "best")} == {"last": "step-00000001", "best": "step-00000002"}
    save(tmp_path, 2, best=True)
    assert find(tmp_path, "last") == "step-00000002"


def find(run: Path, pointer: str) -> str:
    folder = Checkpoints(run).find(pointer)
    assert folder is not None
    return folder.name


def test_damage_is_named(tmp_path: Path) -> None:
    save(tmp_path, 1)
    folder = tmp_path / "checkpoints" / "step-00000001"
    (folder / "model.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(CheckpointError, match=r"model.safetensors: cannot be loaded"):
        load_weights(folder, make()[0])
    (folder / "progress.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"progress.json: cannot be read"):
        read_progress(folder)
    shutil.rmtree(folder)
    with pytest.raises(CheckpointError, match=r"names step-00000001, which is not there"):
        Checkpoints(tmp_path).find("last")
    (tmp_path / "checkpoints" / "last.json").write_text("[]")
    with pytest.raises(CheckpointError, match=r"last.json: damaged"):
        Checkpoints(tmp_path).find("last")


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    save(tmp_path, 1)
    folder = tmp_path / "checkpoints" / "step-00000001"
    with pytest.raises(CheckpointError, match="does not fit the configuration"):
        load_weights(folder, nn.Sequential(nn.Linear(3, 5)))
    with pytest.raises(CheckpointError, match="does not fit the configuration"):
        load_weights(folder, nn.Sequential(nn.Linear(3, 4)))


def test_the_journal_forgets_what_is_written_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    for step in (1, 2, 3):
        journal.write("train", step, loss=1 / step)
    with journal.path.open("a", encoding="utf-8") as file:
        file.write('\0\0\0\n[]\n{"event": "tra')  # what a power cut may leave
    assert [line["step"] for line in journal.read()] == [1, 2, 3]
    journal.rewind(2)
    assert [json.loads(line)["step"] for line in journal.path.read_text().splitlines()] == [1, 2]
