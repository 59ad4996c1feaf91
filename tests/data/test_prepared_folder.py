"""The prepared folder: `nmt prepare` never loses data, whatever the folder holds and however the
command ends.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nmt.commands import prepare
from nmt.data.manifest import FORMAT, load_manifest, original_ranges, training_parts
from nmt.errors import DataError
from nmt.files import read_json, write_json
from tests.toy import configure, contents, sentence_pairs, write_table


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("complete")
    prepare.run(configure(write_table(base / "deu.txt", sentence_pairs())), base / "toy")
    return base / "toy"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "deu.txt", sentence_pairs())


@pytest.fixture
def folder(complete: Path, tmp_path: Path) -> Path:
    return shutil.copytree(complete, tmp_path / "toy")


def test_a_second_run_has_nothing_to_do(tmp_path: Path, table: Path) -> None:
    config, folder = configure(table), tmp_path / "toy"
    folder.mkdir()
    first = prepare.run(config, folder)
    assert not first["already_prepared"]
    moved = table.rename(tmp_path / "moved.txt")
    again = prepare.run(configure(moved, data={"workers": 2}, model={"embedding_size": 7}), folder)
    assert again == {**first, "already_prepared": True}
    assert f"already prepared    {folder}" in prepare.summary(again)


def test_another_preparation_is_refused_and_the_difference_named(folder: Path, table: Path) -> None:
    before = contents(folder)
    with pytest.raises(
        DataError,
        match=r"toy: contains other prepared data \(data\.split\.dev is 40 there and 41 here\); --",
    ):
        prepare.run(configure(table, data={"split": {"dev": 41, "test": 60}}), folder)
    write_table(table, sentence_pairs()[:-1])
    with pytest.raises(
        DataError,
        match=r"toy: contains other prepared data \(.*deu\.txt has changed since\); --overwrite",
    ):
        prepare.run(configure(table), folder)
    assert contents(folder) == before
    prepare.run(configure(table), folder, overwrite=True)
    assert load_manifest(folder)["counts"]["read"] == 587


def test_a_folder_with_other_files_is_never_touched(
    tmp_path: Path, folder: Path, table: Path
) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.txt").write_text("dear")
    for overwrite in (False, True):
        with pytest.raises(
            DataError, match=r"papers: is not empty and holds no prepared data; nothing was changed"
        ):
            prepare.run(configure(table), tmp_path / "papers", overwrite=overwrite)
    assert (tmp_path / "papers" / "thesis.txt").read_text() == "dear"
    (folder / "notes.txt").write_text("dear")
    with pytest.raises(
        DataError, match=r"toy: also holds notes\.txt, not written by `nmt prepare`"
    ):
        prepare.run(configure(table), folder, overwrite=True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "train.src.npy",
            b"x" * 200,
            r"train\.src\.npy has 200 bytes instead of [\d,]+; --overwrite",
        ),
        ("train.src.npy", None, r"train\.src\.npy is missing; --overwrite"),
        ("manifest.json", b"{", ""),
    ],
)
def test_a_damaged_preparation_is_noticed_and_can_be_replaced(
    folder: Path, table: Path, name: str, content: bytes | None, message: str
) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"(?:toy|manifest\.json): damaged.*{message}"):
        prepare.run(configure(table), folder)
    prepare.run(configure(table), folder, overwrite=True)
    assert prepare.run(configure(table), folder)["already_prepared"]


def test_a_preparation_of_another_version_is_refused(folder: Path, table: Path) -> None:
    manifest = read_json(folder / "manifest.json")
    manifest["config"]["data"]["abolished"] = 1
    write_json(folder / "manifest.json", manifest)
    with pytest.raises(
        DataError, match=r"contains other prepared data \(the configuration is of another version\)"
    ):
        prepare.run(configure(table), folder)


def test_a_full_disk_is_reported_in_one_line(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prepare, "run_pipeline", fill)
    with pytest.raises(DataError, match=r"toy: cannot be written \(No space left on device\)"):
        prepare.run(configure(table), tmp_path / "toy")
    assert [path.name for path in tmp_path.iterdir()] == ["deu.txt"]


@pytest.mark.skipif(sys.platform != "linux", reason="signals")
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_overwrite_leaves_the_old_one_and_the_next_clears_up(
    tmp_path: Path, folder: Path, table: Path, stop: signal.Signals
) -> None:
    before = contents(folder)
    # Holds still in the middle, with workers running and files half written.
    script = f"""
import time
from pathlib import Path
from typing import Any
from nmt.commands import prepare
from nmt.config.load import load_config
from nmt.data import pipeline
pipeline._encode = lambda *arguments: (print("here", flush=True), time.sleep(60))
prepare.run(load_config(Path({str(tmp_path / "c.yaml")!r})), overwrite=True)
"""
    config = configure(table, data={"prepared": str(folder)})
    (tmp_path / "c.yaml").write_text(json.dumps(config.to_dict()), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"
    os.kill(process.pid, stop)
    process.communicate(timeout=10)
    assert contents(folder) == before
    left = [path for path in tmp_path.iterdir() if "building" in path.name]
    assert bool(left) == (stop != signal.SIGINT)
    time.sleep(0.2)  # the workers notice, and let go of the lock
    assert prepare.run(configure(table), folder)["already_prepared"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.yaml", "deu.txt", "toy"]


def part(origin: str, pairs: int, repeat: int = 1, runs: Any = ()) -> dict[str, Any]:
    return {"origin": origin, "pairs": pairs, "repeat": repeat, "runs": [*runs]}


def with_files(files: object, **values: object) -> str:
    sides = {
        "vocabulary": {side: {"size": 9} for side in ("src", "tgt")},
        "tokenizers": {"src": "x", "tgt": "x"},
    }
    rest = {"inputs": [], "config": {}, "content": "", "splits": {}, **sides, **values}
    return json.dumps({"format": FORMAT, "format_version": 1, "files": files, **rest})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format": ', "damaged .*--overwrite"),
        ("[]", r"damaged \(no JSON object\)"),
        ('{"format": "of another tool"}', "not written by `nmt prepare`"),
        (json.dumps({"format": FORMAT, "format_version": 99}), "format 99, but this nmt reads 1"),
        (
            with_files(None),
            r"damaged \(files: Input should be a valid dictionary\); run `nmt .* --overwrite`",
        ),
        (
            with_files({"train.src.npy": "many"}),
            r"damaged \(files\.train\.src\.npy: Input should be a valid integer\)",
        ),
        (with_files({"../x": 3}), r"damaged \('\.\./x' is no file of prepared data\)"),
        (
            with_files(
                {}, splits={"train": {"pairs": 9}}, augmentation={"parts": [part("original", 3)]}
            ),
            r"damaged \(its parts of the training data have 3 pairs",
        ),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_manifest(tmp_path)


# What the training pairs are, also in a manifest of an older version

RUN = {"run": "runs/forward"}
ORIGINAL, FORWARD = part("original", 10, 2), part("forward", 7, 3, [RUN])


@pytest.mark.parametrize(
    ("n_pairs", "augmentation", "ranges"),
    [
        (10, None, [(0, 10)]),
        (41, {"parts": [ORIGINAL, FORWARD]}, [(0, 10)]),
        (31, {"parts": [FORWARD, part("original", 10)]}, [(21, 31)]),
        (20, {"parts": [part("original", 10), part("original", 10)]}, [(0, 10), (10, 20)]),
        (7, {"parts": [part("original", 10, 0), part("forward", 7)]}, None),
        (17, {"parts": [part("original", 10, 1, [RUN]), part("forward", 7)]}, None),
    ],
)
def test_original_pairs_are_found(
    n_pairs: int, augmentation: Any, ranges: list[tuple[int, int]] | None
) -> None:
    manifest = {"splits": {"train": {"pairs": n_pairs}}}
    manifest |= {} if augmentation is None else {"augmentation": augmentation}
    parts = training_parts(manifest)
    assert sum(part["pairs"] * part["repeat"] for part in parts) == n_pairs
    if ranges is not None:
        assert original_ranges(Path("data"), manifest) == ranges
        return
    with pytest.raises(DataError, match="data: has no pairs that are recorded as original"):
        original_ranges(Path("data"), manifest)
