"""scripts/diversify.py: teachers, their translations and the models that learn from them."""

from pathlib import Path

import pytest
import yaml

from nmt.files import read_json
from nmt.run.folder import load_run_config
from scripts import diversify
from tests import toy
from tests.conftest import Run


def write_config(folder: Path, direction: str) -> Path:
    """The configuration FOLDER/DIRECTION.yaml of a tiny model of toy data."""
    config = toy.configure(
        toy.write_table(folder / "pairs.tsv", toy.sentence_pairs()[:100]),
        data={
            "direction": direction,
            "split": {"dev": 10, "test": 10, "direction": "en-de" if "de" in direction else None},
            "prepared": str(folder / f"prepared-{direction}"),
        },
        tokenizer={"kind": "words"},
        model={
            "embedding_size": 8,
            "encoder": {"hidden_size": 8},
            "decoder": {"hidden_size": 8},
            "dropout": 0.1,
        },
        training={"max_steps": 3, "batch": {"size": 16}, "validation_pairs": 2},
        decoding={"beam": 1, "max_length_ratio": 0.5},
    )
    file = folder / f"{direction}.yaml"
    file.write_text(yaml.safe_dump(config.to_dict()), encoding="utf-8")
    return file


def words(folder: Path, *options: str) -> list[str]:
    paths = [str(write_config(folder, direction)) for direction in ("en-de", "de-en")]
    return [*paths, "-o", str(folder / "runs"), *options]


class Commands(list[str]):
    """Runs the commands in this process, and keeps their names."""

    def __init__(self, nmt: Run) -> None:
        super().__init__()
        self.nmt = nmt

    def run(self, *arguments: str | Path) -> None:
        self.append(str(arguments[0]))
        result = self.nmt(*arguments)
        assert result.status == 0, result.err


@pytest.mark.slow
def test_students_learn_from_all_teachers(
    tmp_path: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands(nmt)
    monkeypatch.setattr(diversify, "_nmt", commands.run)
    options = words(
        tmp_path,
        "--teachers",
        "2",
        "--seeds",
        "2",
        "3",
        "--set",
        "model.dropout=0.2",
        "--set",
        "training.threads=1",
    )
    options += ["--set", "training.distillation=0.5", "--set", "decoding.beam=2"]
    assert diversify.main(options) == 0
    once = (
        ["prepare"] * 2
        + ["train"] * 4
        + ["augment", "train", "train"] * 2
        + ["evaluate", "analyze"] * 4
    )
    assert commands == once
    table = capsys.readouterr().out.splitlines()[-4:]
    assert [row.split(" | ")[1] for row in table[2:]] == ["2, 3", "2, 3"]

    runs = tmp_path / "runs"
    augmentation = read_json(runs / "data" / "forward" / "manifest.json")["augmentation"]
    groups = [*(part.get("runs", []) for part in augmentation["parts"]), augmentation["teachers"]]
    members = [
        [str(Path(member["run"]).relative_to(runs.resolve())) for member in group]
        for group in groups
    ]
    forward, backward = (
        [f"teachers/{side}-{seed}" for seed in (1, 2)] for side in ("forward", "backward")
    )
    assert members == [[], *([run] for run in forward + backward), forward]
    assert [part["decoding"]["beam"] for part in augmentation["parts"][1:]] == [2] * 4
    config = load_run_config(runs / "students" / "backward-3")
    assert (config.seed, config.model.dropout, config.decoding.beam) == (3, 0.2, 1)
    assert config.prepared_folder.resolve() == (runs / "data" / "backward").resolve()
    assert load_run_config(runs / "teachers" / "forward-1").model.dropout == 0.1

    assert diversify.main([*options, "--forward-only"]) == 0  # all is there: only the table is new
    assert capsys.readouterr().out.splitlines()[-3:] == table[:-1]
    assert commands[len(once) :] == ["train"] * 4 + ["augment", "train", "train"]


@pytest.mark.slow
def test_more_teachers_of_another_size(
    tmp_path: Path, nmt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands(nmt)
    monkeypatch.setattr(diversify, "_nmt", commands.run)
    options = [
        "--more-teachers",
        "wide",
        "model.encoder.hidden_size=12",
        "--forward-only",
        "--set",
        "training.distillation=0.5",
    ]
    assert diversify.main(words(tmp_path, *options)) == 0
    assert commands == ["prepare"] * 2 + ["train"] * 4 + [
        "augment",
        "train",
        "evaluate",
        "analyze",
    ]
    runs = tmp_path / "runs"
    augmentation = read_json(runs / "data" / "forward" / "manifest.json")["augmentation"]
    members = [part["runs"][0]["run"] for part in augmentation["parts"][1:]]
    assert [Path(run).name for run in members] == [
        "forward-1",
        "forward-wide-1",
        "backward-1",
        "backward-wide-1",
    ]
    assert [Path(teacher["run"]).name for teacher in augmentation["teachers"]] == [
        "forward-1",
        "forward-wide-1",
    ]
    sizes = [
        load_run_config(Path(run)).model.encoder.hidden_size
        for run in (*members, runs / "students" / "forward-1")
    ]
    assert sizes == [8, 12, 8, 12, 8]


@pytest.mark.parametrize(
    "words_given", [["model.dropout=0.3"], ["wide"], ["../wide", "model.dropout=0.3"]]
)
def test_more_teachers_need_a_name_and_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words_given: list[str]
) -> None:
    assert diversify.main(words(tmp_path, "--more-teachers", *words_given)) == 1
    message = "needs a name, then keys to change, for example wide model.dropout=0.3"
    assert capsys.readouterr().err == f"--more-teachers {' '.join(words_given)}: {message}\n"
    assert not (tmp_path / "runs").exists()


def test_two_teachers_of_one_name_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teacher = ["--more-teachers", "wide", "model.encoder.hidden_size=12"]
    assert diversify.main(words(tmp_path, *teacher, *teacher)) == 1
    assert capsys.readouterr().err == "--more-teachers: the names wide wide must differ\n"
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("option", [["--set"], ["--more-teachers", "wide"]])
def test_a_wrong_key_is_an_error_before_the_first_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    assert diversify.main(words(tmp_path, *option, "model.dropuot=0.2")) == 1
    assert "model.dropuot: unknown key" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_two_configurations_of_one_direction_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = str(write_config(tmp_path, "en-de"))
    assert diversify.main([config, config, "-o", str(tmp_path / "runs")]) == 1
    message = f"{config}: the two configurations need opposite directions, not en-de and en-de\n"
    assert capsys.readouterr().err == message


def test_zero_teachers_are_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        diversify.main(words(tmp_path, "--teachers", "0"))
    assert "--teachers must be at least 1" in capsys.readouterr().err


def test_a_failed_command_ends_it_with_its_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    options = words(tmp_path)
    (tmp_path / "pairs.tsv").unlink()
    with pytest.raises(SystemExit, match="1"):
        diversify.main(options)
    assert "pairs.tsv" in capfd.readouterr().err
