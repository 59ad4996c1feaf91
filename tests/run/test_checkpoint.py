"""Checkpoints survive a crash at any point, and damaged files are reported."""

from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.optim import AdamW

from nmt.config.parts import PointerName
from nmt.errors import CheckpointError, NmtWarning
from nmt.files import read_json, write_json
from nmt.run.checkpoint import Checkpoints, read_progress
from nmt.run.progress import Progress, Rank
from nmt.run.provenance import read_training, record_training
from nmt.run.weights import load_optimizer, load_weights, save_training, save_weights


def make() -> tuple[nn.Module, AdamW]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    optimizer = AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def save(run: Path, step: int, score: float | None = None, loss: float = 1.0, **keep: int) -> None:
    rank = None if score is None else Rank(score, -loss)
    Checkpoints(run, **keep).save(Progress(step=step), partial(save_training, *make()), rank=rank)


def find(run: Path, pointer: PointerName) -> str:
    folder = Checkpoints(run).find(pointer)
    assert folder is not None
    return folder.name


def names(run: Path) -> set[str]:
    return {path.name for path in (run / "checkpoints").iterdir()}


@pytest.mark.parametrize(
    ("saved", "keep", "best", "last"),
    [
        # The step, score and loss of each; which are kept as the best and as the last, in order.
        (
            [(1, 1.0, 1), (2, 5.0, 1), (3, 3.0, 1), (4, 5.0, 1), (5, 2.0, 1)],
            {"keep_best": 3, "keep_last": 2},
            [2, 4, 3],
            [5, 4],
        ),
        # Of equal scores, the lower loss is better: BLEU is 0 in all validations of a model whose
        # targets are single words.
        (
            [(1, 0.0, 3.0), (2, 0.0, 2.0), (3, 0.0, 1.5), (4, 0.0, 1.5), (5, 0.0, 2.5)],
            {"keep_best": 3},
            [3, 4, 2],
            [5],
        ),
        # A checkpoint without a validation displaces no other for good. So a training that was
        # stopped, or that saves by the clock, ends with the same checkpoints as another.
        (
            [(1, 1.0, 1), (2, 2.0, 1), (3, None, 1), (4, None, 1), (5, 3.0, 1)],
            {"keep_last": 3},
            [5],
            [5, 2, 1],
        ),
        # A training that was cut short at step 4 and goes on from step 2 does not keep a best that
        # it has yet to make.
        ([(2, 1.0, 1), (4, 9.0, 1), (3, 2.0, 1)], {"keep_last": 3}, [3], [3, 2]),
    ],
)
def test_which_checkpoints_are_kept(
    tmp_path: Path,
    saved: list[tuple[int, float | None, float]],
    keep: dict[str, int],
    best: list[int],
    last: list[int],
) -> None:
    for step, score, loss in saved:
        save(tmp_path, step, score, loss, **keep)
    checkpoints = Checkpoints(tmp_path)
    assert [kept.step for kept in checkpoints.kept("best")] == best
    assert [kept.step for kept in checkpoints.kept("last")] == last
    folders = {f"step-{step:08}" for step in (*best, *last)}
    assert names(tmp_path) == {*folders, "last.json", "best.json"}


def test_a_checkpoint_of_an_earlier_version_has_no_loss(tmp_path: Path) -> None:
    for step, score in ((1, 2.0), (2, 1.0)):
        save(tmp_path, step, score, keep_best=2)
    path = tmp_path / "checkpoints" / "best.json"
    value = read_json(path)
    write_json(path, {**value, "kept": [{**kept, "loss": None} for kept in value["kept"]]})
    save(tmp_path, 3, 1.0, keep_best=3)
    assert [kept.step for kept in Checkpoints(tmp_path).kept("best")] == [1, 3, 2]


@pytest.mark.parametrize(
    ("score", "loss", "best"),
    [
        (9.0, 1.0, "average-00000003"),
        (1.5, 1.0, "step-00000002"),
        (3.0, 1.1, "step-00000002"),
        (3.0, 0.9, "average-00000003"),
    ],
)
def test_the_average_is_used_if_it_is_better(
    tmp_path: Path, score: float, loss: float, best: str
) -> None:
    for step, its_score in ((1, 1.0), (2, 3.0), (3, 2.0)):
        save(tmp_path, step, its_score, keep_best=3)
    write = partial(save_weights, make()[0])
    is_best = Checkpoints(tmp_path, keep_best=3).add_average(3, write, Rank(score, -loss))
    assert is_best == best.startswith("average")
    assert find(tmp_path, "best") == best
    assert find(tmp_path, "last") == "step-00000003"


@pytest.mark.parametrize(
    ("score", "is_best", "weight"), [(0.5, False, 5.0), (9.0, False, 5.0), (9.5, True, 6.0)]
)
def test_a_second_average_replaces_the_first_only_if_it_is_better(
    tmp_path: Path, score: float, is_best: bool, weight: float
) -> None:
    checkpoints, (model, _) = Checkpoints(tmp_path, keep_best=3), make()
    for step in (1, 2):
        save(tmp_path, step, float(step), keep_best=3)
    bias = model.get_parameter("0.bias")
    for value, its_score, expected in ((5.0, 9.0, True), (6.0, score, is_best)):
        bias.data.fill_(value)
        write, rank = partial(save_weights, model), Rank(its_score, -1.0)
        assert checkpoints.add_average(2, write, rank) == expected
    assert [kept.score for kept in checkpoints.kept("best")] == [max(score, 9.0), 2.0, 1.0]
    load_weights(tmp_path / "checkpoints" / find(tmp_path, "best"), model)
    assert (bias == weight).all()


def test_damaged_files_are_named(tmp_path: Path) -> None:
    """tests/test_mistakes.py has those that a translation reads."""
    save(tmp_path, 1)
    folder = tmp_path / "checkpoints" / "step-00000001"
    with pytest.raises(CheckpointError, match="holds the state of another model"):
        load_optimizer(folder, nn.Sequential(nn.Linear(3, 4)), make()[1])
    for content, reason in (
        ("{", "Expecting"),
        ('{"step": 5, "two\\nlines": 1}', r"two\\nlines: Unexpected.*$"),
        ('{"step": 5, "interval": {"n_tokens": []}}', r"interval\.n_tokens: Input should be .*$"),
    ):
        (folder / "progress.json").write_text(content)
        with pytest.raises(CheckpointError, match=rf"progress\.json: cannot be read \({reason}"):
            read_progress(folder)
    pointer = tmp_path / "checkpoints" / "last.json"
    pointer.write_text('{"checkpoint": "step-00000002", "step": 2}')  # as older versions did
    with pytest.raises(CheckpointError, match=r"names step-00000002, which is missing"):
        Checkpoints(tmp_path).find("last")


def test_an_optimizer_with_another_entry_is_damaged(tmp_path: Path) -> None:
    save(tmp_path, 1)
    folder = tmp_path / "checkpoints" / "step-00000001"
    (folder / "checksums.json").unlink()
    tensors = load_file(folder / "optimizer.safetensors")
    tensors["0.weight.exp_avh"] = tensors.pop("0.weight.exp_avg")
    save_file(tensors, folder / "optimizer.safetensors")
    with pytest.raises(CheckpointError, match="the name of an entry has changed"):
        load_optimizer(folder, *make())


def test_a_damaged_record_of_trainings_is_not_replaced_without_a_word(tmp_path: Path) -> None:
    for content in ("[", "{}x", '[{"step": "1"}]', "[" * 100_000):
        (tmp_path / "provenance.json").write_text(content)
        with pytest.warns(NmtWarning, match=r"provenance\.json: damaged, and left out"):
            record_training(tmp_path, 0, torch.device("cpu"), 1)
        assert len(read_training(tmp_path)) == 1


def test_files_of_a_killed_process_are_deleted(tmp_path: Path) -> None:
    save(tmp_path, 1)
    for name in (
        ".last.json.0123abcd.tmp",
        "step-00000001/.tmpQ3xY7a",
        "step-00000001/.progress.json.0123abcd.tmp",
    ):
        (tmp_path / "checkpoints" / name).touch()
    (tmp_path / "checkpoints" / ".step-00000002.0123abcd.tmp").mkdir()
    Checkpoints(tmp_path).delete_unreferenced()
    assert [path.name for path in tmp_path.rglob(".*")] == []


def test_a_preferred_checkpoint_is_used_until_a_better_one_is_saved(tmp_path: Path) -> None:
    for step, score in ((1, 3.0), (2, 1.0)):
        save(tmp_path, step, score)
    Checkpoints(tmp_path).prefer("step-00000002")
    assert find(tmp_path, "best") == "step-00000002"
    Checkpoints(tmp_path).delete_unreferenced()
    assert names(tmp_path) >= {"step-00000001", "step-00000002"}
    save(tmp_path, 3, 2.0)
    assert find(tmp_path, "best") == "step-00000001"  # as without the choice
    assert names(tmp_path) == {"step-00000001", "step-00000003", "last.json", "best.json"}
