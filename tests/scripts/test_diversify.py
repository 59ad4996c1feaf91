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
    text = "--teachers 2 --seeds 2 3 --more-teachers wide model.encoder.hidden_size=12"
    text += " --set model.dropout=0.2 --set training.threads=1 --set decoding.beam=2"
    options = words(tmp_path, *text.split(), "--set", "training.distillation=0.5")
    assert diversify.main(options) == 0
    learning = ["augment", "train", "train"]
    assert commands == ["prepare"] * 2 + ["train"] * 8 + learning * 2 + ["evaluate", "analyze"] * 4
    table = capsys.readouterr().out.splitlines()[-4:]
    assert [row.split(" | ")[1] for row in table[2:]] == ["2, 3", "2, 3"]

    runs = tmp_path / "runs"
    augmentation = read_json(runs / "data" / "forward" / "manifest.json")["augmentation"]
    groups = [*(part.get("runs", []) for part in augmentation["parts"]), augmentation["teachers"]]
    members = [[Path(member["run"]).name for member in group] for group in groups]
    forward, backward = (
        [f"{side}-1", f"{side}-2", f"{side}-wide-1", f"{side}-wide-2"]
        for side in ("forward", "backward")
    )
    assert members == [[], *([run] for run in forward + backward), forward]
    assert [part["decoding"]["beam"] for part in augmentation["parts"][1:]] == [2] * 8
    config = load_run_config(runs / "students" / "backward-3")
    assert (config.seed, config.model.dropout, config.decoding.beam) == (3, 0.2, 1)
    assert config.prepared_folder.resolve() == (runs / "data" / "backward").resolve()
    wide = load_run_config(runs / "teachers" / "forward-wide-1").model
    assert (wide.dropout, wide.encoder.hidden_size) == (0.1, 12)

    n_commands = len(commands)
    assert diversify.main([*options, "--forward-only"]) == 0  # all is there: only the table is new
    assert capsys.readouterr().out.splitlines()[-3:] == table[:-1]
    assert commands[n_commands:] == ["train"] * 8 + learning


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--more-teachers wide",
            "wide: needs a name, then keys to change, for example wide model.",
        ),
        ("--more-teachers ../wide model.dropout=0.3", "needs a name, then keys to change"),
        ("--more-teachers a seed=2 --more-teachers a seed=3", "the names a a must differ"),
        ("--set model.dropuot=0.2", "model.dropuot: unknown key"),
        ("--more-teachers wide model.dropuot=0.2", "model.dropuot: unknown key"),
    ],
)
def test_an_error_comes_before_the_first_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, message: str
) -> None:
    assert diversify.main(words(tmp_path, *options.split())) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_two_configurations_of_one_direction_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = str(write_config(tmp_path, "en-de"))
    assert diversify.main([config, config, "-o", str(tmp_path / "runs")]) == 1
    assert "the two configurations need opposite directions" in capsys.readouterr().err


def test_a_failed_command_ends_it_with_its_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    options = words(tmp_path)
    (tmp_path / "pairs.tsv").unlink()
    with pytest.raises(SystemExit, match="1"):
        diversify.main(options)
    assert "pairs.tsv" in capfd.readouterr().err
