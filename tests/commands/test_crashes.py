"""Whatever moment a process is killed at, and whichever write the disk refuses: earlier files are
intact, and the next call works.

The states of the disk are those before each change that Python makes; `scripts/campaign_crash.py`
covers all changes.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from nmt.commands import prepare, train
from nmt.config.schema import Config
from nmt.config.yaml_text import dump
from nmt.data.manifest import check_content_hash, check_files, load_manifest
from nmt.files import recover_folder, write_text
from nmt.run.checkpoint import read_progress, read_tensors
from nmt.run.folder import holds_run, open_checkpoints
from nmt.run.journal import Journal
from tests import toy
from tests.conftest import Run

resource = pytest.importorskip("resource")  # not on Windows

CHANGES = ("fsync", "mkdir", "rename", "replace", "rmdir", "unlink")
LAST = "checkpoints/step-00000004/raw.safetensors"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """The configuration of prepared data; tests read it."""
    folder = tmp_path_factory.mktemp("made")
    config = toy.configure(
        toy.write_table(folder / "pairs.tsv", toy.sentence_pairs()[:100]),
        data={"split": {"dev": 4, "test": 4}, "prepared": str(folder / "prepared")},
        model={"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 8}},
        training={
            "max_steps": 4,
            "validate_every": 2,
            "log_every": 1,
            "validation_pairs": 2,
            "moving_average": 0.5,
        },
    )
    prepare.run(config, progress=False)
    return config


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A folder for the files that a command writes."""
    (tmp_path / "box").mkdir()
    return tmp_path / "box"


@pytest.fixture(autouse=True)
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take most of the time of so small a training."""
    monkeypatch.setattr("nmt.report.curves.draw", lambda *_, **__: None)
    monkeypatch.setattr("nmt.report.heatmap.to_png", lambda *_, **__: b"")
    monkeypatch.setattr("nmt.extras.tensorboard.listener._open", lambda *_, **__: None)


@contextmanager
def copying(box: Path, states: list[Path]) -> Iterator[None]:
    """Copy `box` before each change that this process makes: these are the states that a kill can
    leave.
    """
    originals = {name: getattr(os, name) for name in CHANGES}

    def copy() -> None:
        states.append(box.with_name(f"{len(states):03}"))
        with pytest.MonkeyPatch.context() as patch:
            for name, function in originals.items():
                patch.setattr(os, name, function)
            shutil.copytree(box, states[-1])

    def wrap(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*arguments: Any, **values: Any) -> Any:
            copy()
            return change(*arguments, **values)

        return changed

    with pytest.MonkeyPatch.context() as patch:
        for name, function in originals.items():
            patch.setattr(os, name, wrap(function))
        yield


def restore(state: Path, box: Path) -> None:
    """Replace `box` by a state, two minutes old: the next call may delete what has not changed for
    one.
    """
    shutil.rmtree(box)
    state.rename(box)
    for path in box.rglob("*"):
        os.utime(path, (time.time() - 120,) * 2)


def names(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def test_a_killed_preparation_leaves_the_old_data_or_the_new(made: Config, box: Path) -> None:
    shutil.copytree(made.prepared_folder, box / "prepared")
    other = made.model_copy(
        update={"tokenizer": made.tokenizer.model_copy(update={"lowercase": True})}
    )
    states: list[Path] = []
    with copying(box, states):
        new = prepare.run(other, box / "prepared", overwrite=True, progress=False)["content"]
    expected = names(box)
    for state in states:
        recover_folder(state / "prepared")
        manifest = load_manifest(state / "prepared")
        check_files(state / "prepared", manifest)
        check_content_hash(state / "prepared", manifest)
        assert manifest["content"] in (load_manifest(made.prepared_folder)["content"], new)
    restore(states[len(states) // 2], box)
    prepare.run(other, box / "prepared", overwrite=True, progress=False)
    assert load_manifest(box / "prepared")["content"] == new
    assert names(box) == expected


def test_a_killed_training_leaves_a_whole_checkpoint_and_ends_with_the_same_weights(
    made: Config, box: Path
) -> None:
    states: list[Path] = []
    with copying(box, states):
        train.run(made, box / "run", device="cpu", quiet=True)
    expected, expected_names = load_file(box / "run" / LAST), names(box)
    steps: dict[int, Path] = {}
    for state in states:
        if not holds_run(state / "run"):
            continue
        checkpoint = open_checkpoints(state / "run", made).find("last")
        step = 0 if checkpoint is None else read_progress(checkpoint).step
        assert step >= max(steps, default=0)
        steps[step] = state
        if checkpoint is not None:
            for path in checkpoint.glob("*.safetensors"):
                read_tensors(path)
            assert open_checkpoints(state / "run", made).find("best") is not None
    assert [*steps] == [0, 2, 4]
    restore(steps[2], box)
    train.run(made, box / "run", resume=True, device="cpu", quiet=True)
    weights = load_file(box / "run" / LAST)
    assert all((weights[name] == value).all() for name, value in expected.items())
    assert names(box) == expected_names


def test_the_last_curves_and_the_choice_of_a_checkpoint_are_made_by_the_next_call_if_a_kill_came_before(
    made: Config, box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_killed(*_: object) -> None:
        raise KeyboardInterrupt

    config = made.model_copy(update={"training": made.training.model_copy(update={"keep_last": 2})})
    with monkeypatch.context() as patch:
        patch.setattr("nmt.commands.train.choose_checkpoint", be_killed)
        with pytest.raises(KeyboardInterrupt):
            train.run(config, box / "run", device="cpu", quiet=True)
    (box / "run" / ".curves.png.0123abcd.tmp").write_text("half a pict")
    os.utime(box / "run" / ".curves.png.0123abcd.tmp", (time.time() - 120,) * 2)
    monkeypatch.setattr(
        "nmt.report.curves.draw", lambda events, path, **_: write_text(path, str(len(events)))
    )
    for _ in range(2):  # the second time the choice is made already
        train.run(config, box / "run", resume=True, device="cpu", quiet=True)
        assert [
            event["step"]
            for event in Journal(box / "run" / "journal.jsonl").read()
            if event["event"] == "choice"
        ] == [4]
        assert not [*(box / "run").glob(".*.tmp")]
        assert (box / "run" / "curves.png").exists()


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file may become larger than `size` bytes. Also code that is not Python gets this error."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("size", [0, 1000])
def test_a_preparation_that_cannot_write_leaves_the_old_data(
    nmt: Run, made: Config, box: Path, size: int
) -> None:
    prepared = box / "prepared"
    shutil.copytree(made.prepared_folder, prepared)
    (box / "toy.yaml").write_text(dump(made), encoding="utf-8")
    with full_disk(size):
        result = nmt("prepare", "-c", box / "toy.yaml", "-o", prepared, "--overwrite")
    assert (result.status, result.out, result.err) == (
        1,
        "",
        f"nmt: {prepared}: cannot be written (File too large)\n",
    )
    check_files(prepared, load_manifest(prepared))
    assert sorted(path.name for path in box.iterdir()) == ["prepared", "toy.yaml"]


@pytest.mark.parametrize(
    ("size", "place"),
    [(0, "checksums.json"), (20000, "checkpoints")],
)
def test_a_training_that_cannot_write_says_so_and_can_be_repeated(
    nmt: Run, made: Config, box: Path, size: int, place: str
) -> None:
    (box / "toy.yaml").write_text(dump(made), encoding="utf-8")
    words = (
        "train",
        "-c",
        box / "toy.yaml",
        "-o",
        box / "run",
        "--device",
        "cpu",
        "-q",
        "--resume",
    )
    with full_disk(size):
        result = nmt(*words)
    assert result.status == 1
    assert result.err.startswith(f"nmt: {box / 'run' / place}: ")
    assert "File too large" in result.err
    assert "earlier checkpoints are intact" in result.err
    assert result.err.count("\n") == 1
    assert nmt(*words).status == 0
    assert not list(box.rglob(".*.tmp"))
