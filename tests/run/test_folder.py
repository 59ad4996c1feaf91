"""Run folders with missing files or whose data moved; loading a run to translate with."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.config.schema import Precision
from nmt.decoding.model import TranslationModel
from nmt.errors import TrainingError
from nmt.files import read_json, replacing, write_json
from nmt.run import load
from nmt.run.folder import ancestors, find_run, lock_run
from nmt.run.graphs import load_graphs
from tests import toy
from tests.conftest import Run


def test_the_newest_run_is_the_one_trained_or_copied_last(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, age in (("trained", 30), ("weights", 20), ("latest", 10)):
        checkpoints = Path(shutil.copytree(run, tmp_path / "runs" / name)) / "checkpoints"
        pointers = [checkpoints / "best.json", checkpoints / "last.json"]
        if name == "weights":
            pointers.pop().unlink()
        for pointer in pointers:
            os.utime(pointer, (1e9 - age, 1e9 - age))
    assert find_run(None) == Path("runs/latest")
    shutil.rmtree("runs/latest")
    assert find_run(None) == Path("runs/weights")
    os.utime("runs/trained/checkpoints/last.json", (1e9, 1e9))
    assert find_run(None) == Path("runs/trained")


@pytest.mark.parametrize("damage", ["gone", "{", "[]", "{}"])
def test_a_run_without_its_manifest_says_so(nmt: Run, folder: Path, run: Path, damage: str) -> None:
    manifest = run / "manifest.json"
    manifest.unlink() if damage == "gone" else manifest.write_text(damage)
    hint = (
        f"it identifies the training data of the run; if that data is {folder / 'prepared'}, "
        "copy the file from there"
    )
    text = f"nmt: {manifest}: missing or damaged; {hint}\n"
    nmt.refuses(text, "train", "-c", run / "config.yaml", "-o", run, "--resume")
    if damage == "gone":
        nmt.refuses(text, "evaluate", run)
        nmt.refuses(text, "neighbors", run)
        assert nmt("translate", "--run", run, "The dog sees the tree.").status == 0
        shutil.copy(folder / "prepared" / "manifest.json", manifest)
        assert nmt("neighbors", run).status == 0


def test_a_run_of_another_tokenizer_version_warns(nmt: Run, run: Path) -> None:
    words = ["translate", "--run", run, "The dog sees the tree."]
    assert "warning" not in nmt(*words).err
    manifest = read_json(run / "manifest.json")
    manifest["tokenizers"]["tgt"] = "words|spacy:1.0.0|case:mixed"
    write_json(run / "manifest.json", manifest)
    result = nmt(*words)
    assert (result.status, result.err.count("warning")) == (0, 1)
    assert result.err.startswith(
        f"nmt: warning: {run}: made with the tgt tokenizer words|spacy:1.0.0|case:mixed, but "
        "words|spacy"
    )
    assert result.err.splitlines()[0].endswith(
        " is installed here; the tokens may differ, and the translations with them"
    )


def test_a_run_has_one_lock_however_its_path_is_spelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    with (
        lock_run(tmp_path / "run"),
        pytest.raises(TrainingError, match="another training is running in it"),
        lock_run(Path()),
    ):
        pass


@pytest.mark.parametrize("parent", ["/proc", "{tmp_path}/file"])
def test_a_folder_that_cannot_be_made_is_not_in_use(
    nmt: Run, folder: Path, tmp_path: Path, parent: str
) -> None:
    (tmp_path / "file").touch()
    new = Path(parent.format(tmp_path=tmp_path)) / "run"
    for text in (f"nmt: {new}: cannot be written (", "; choose another folder\n"):
        nmt.refuses(text, "train", "-c", folder / "run" / "config.yaml", "-o", new)


def test_training_resumes_after_its_data_moved(
    nmt: Run, folder: Path, run: Path, tmp_path: Path
) -> None:
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    config["data"]["source"]["path"] = str(
        shutil.copy(folder / "pairs.tsv", tmp_path / "moved.tsv")
    )
    config["data"]["prepared"] = str(shutil.copytree(folder / "prepared", tmp_path / "elsewhere"))
    config["training"]["max_steps"] = 62
    path = tmp_path / "moved.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    assert nmt("train", "-c", path, "-o", run, "--resume", "-q").status == 0
    assert (run / "checkpoints" / "step-00000062").is_dir()
    toy.write_table(tmp_path / "moved.tsv", toy.sentence_pairs()[:-1])
    assert nmt("prepare", "-c", path, "--overwrite", "-q").status == 0
    text = f"{tmp_path / 'elsewhere'}: is not the data that {run} was trained on"
    nmt.refuses(text, "train", "-c", path, "-o", run, "--resume")
    nmt.refuses(text, "evaluate", run, "--data", tmp_path / "elsewhere")


def test_a_run_finds_what_its_training_named_from_another_folder(
    nmt: Run, folder: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    shutil.copytree(folder / "prepared", project / "data/prepared/toy")
    for name, parent in (("first", None), ("second", "runs/first")):
        copy = Path(shutil.copytree(run, project / "runs" / name))
        config = yaml.safe_load((copy / "config.yaml").read_text(encoding="utf-8"))
        config["data"]["prepared"] = "data/prepared/toy"
        config["training"]["start_from"] = parent
        (copy / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    for here in (project / "mine", project):
        here.mkdir(exist_ok=True)
        monkeypatch.chdir(here)
        assert nmt("evaluate", os.path.relpath(copy)).status == 0
        assert next(ancestors(copy)).samefile(project / "runs/first")


# Loading a run to translate with


@pytest.mark.parametrize("name", ["src.vocab.txt", "neighbors.tsv", "checkpoints"])
def test_a_run_that_is_replaced_while_it_is_loaded(
    nmt: Run, run: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Old weights do not get a new vocabulary."""
    changed = (
        next(run.glob("checkpoints/*/model.safetensors")) if name == "checkpoints" else run / name
    )

    def load_and_replace(*words: Any) -> TranslationModel:
        model = load_graphs(*words)
        content = changed.read_bytes() if changed.exists() else b"source\ttarget\n"
        with replacing(changed) as new:
            new.write_bytes(content)
        return model

    monkeypatch.setattr(load, "load_graphs", load_and_replace)
    text = f"nmt: {changed}: was changed while the run was loaded; repeat the command\n"
    nmt.refuses(text, "translate", "--run", run, "A dog.")
    monkeypatch.undo()
    changed.unlink() if name == "neighbors.tsv" else None
    assert nmt("translate", "--run", run, "A dog.").status == 0


def test_a_checkpoint_that_a_training_deletes_after_it_was_read(
    nmt: Run, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_and_delete(run: Path, checkpoint: Path, precision: Precision) -> TranslationModel:
        model = load_graphs(run, checkpoint, precision)
        shutil.rmtree(checkpoint)
        return model

    expected = nmt("translate", "--run", run, "A dog.")
    monkeypatch.setattr(load, "load_graphs", load_and_delete)
    assert nmt("translate", "--run", run, "A dog.") == expected
