"""scripts/recipes.py: the table of runs."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt.files import read_json, write_json
from nmt.run.checkpoint import Checkpoints, read_progress
from nmt.run.journal import Journal
from scripts import recipes
from tests import toy


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.train(tmp_path_factory.mktemp("recipes"), training={"max_steps": 2})


def copy(
    trained: Path, folder: Path, *, seed: int, bleu: float | None = None, needs: Path | None = None
) -> Path:
    """A copy of the run with another seed. bleu: of its evaluations. needs: the run that translated
    its training data.
    """
    shutil.copytree(trained, folder)
    config = folder / "config.yaml"
    config.write_text(config.read_text("utf-8").replace("\nseed: 1 ", f"\nseed: {seed} "), "utf-8")
    if needs is not None:
        manifest = read_json(folder / "manifest.json")
        half = {"pairs": manifest["splits"]["train"]["pairs"] // 2, "repeat": 1}
        translated = {"origin": "forward", "runs": [{"run": str(needs)}], **half}
        parts = [{"origin": "original", **half}, translated]
        manifest |= {"augmentation": {"parts": parts}, "content": str(needs), "seconds": 60.0}
        write_json(folder / "manifest.json", manifest)
    if bleu is not None:
        (folder / "evaluation").mkdir()
        journal = Journal(folder / "evaluation" / "history.jsonl")
        plain: dict[str, Any] = {"overrides": {}, "provenance": {"model": {}}}
        for split, values, system in (
            ("dev", [bleu], plain),
            ("test", [0.0], plain),
            ("test", [bleu + 1, bleu + 2], plain),  # the last one counts
            ("test", [99.0, 99.0], plain | {"overrides": {"decoding.method": "mbr"}}),
            ("test", [99.0, 99.0], plain | {"provenance": {"members": [{}, {}]}}),
        ):
            named = list(zip(("BLEU", "chrF"), values, strict=False))
            scores, lowercase_scores = (
                [{"metric": name, "score": value + more} for name, value in named]
                for more in (0, 10)
            )
            facts = {"split": split, "sentences": 40, "translation_seconds": 0.5}
            tokenized_scores = [{"metric": "Moses BLEU", "score": 9.0}]
            kinds = {
                "scores": scores,
                "lowercase_scores": lowercase_scores,
                "tokenized_scores": tokenized_scores,
            }
            journal.write("evaluation", 2, **kinds, **facts, **system)
    return folder


def cells(table: str) -> list[list[str]]:
    heading, _, *rows = (line.strip("| ").split(" | ") for line in table.splitlines())
    assert tuple(heading) == recipes.COLUMNS
    return rows


def minutes(run: Path) -> float:
    checkpoint = Checkpoints(run).find("last")
    assert checkpoint is not None
    return read_progress(checkpoint).seconds / 60


def test_runs_that_differ_in_the_seed_share_a_row(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [copy(trained, tmp_path / str(seed), seed=seed, bleu=30.0 + seed) for seed in (1, 2)]
    assert recipes.main([*map(str, runs)]) == 0
    (row,) = cells(capsys.readouterr().out)
    assert row == [
        "toy",
        "1, 2",
        "0.0 M",
        "0",
        "0",
        "31.5 ± 0.7",
        "32.5 ± 0.7",
        "33.5 ± 0.7",
        "9.0 ± 0.0",
        "80",
    ]


def test_the_scores_of_a_lower_case_model_ignore_case(trained: Path, tmp_path: Path) -> None:
    run = copy(trained, tmp_path / "run", seed=1, bleu=30.0)
    config = run / "config.yaml"
    config.write_text(
        config.read_text("utf-8").replace("lowercase: false", "lowercase: true"), "utf-8"
    )
    (row,) = cells(recipes.to_table([recipes.measure(run)]))
    assert row[5:9] == ["40.0", "41.0", "42.0", "9.0"]


def test_the_total_counts_each_run_that_was_needed_once(trained: Path, tmp_path: Path) -> None:
    teacher = copy(trained, tmp_path / "teacher", seed=2)
    middle = copy(trained, tmp_path / "middle", seed=3, needs=teacher)
    student = copy(trained, tmp_path / "student", seed=4, needs=middle)
    start = copy(trained, tmp_path / "start", seed=5, needs=teacher)
    config = student / "config.yaml"
    config.write_text(
        config.read_text("utf-8").replace("start_from: null", f"start_from: {start}"), "utf-8"
    )
    figures = recipes.measure(student)
    assert figures.minutes == pytest.approx(minutes(trained))
    assert figures.total == pytest.approx(
        4 * minutes(trained) + 2
    )  # two augmented data sets, a minute each
    assert recipes.needed_runs(student) == {
        run.resolve() for run in (teacher, middle, student, start)
    }


def test_errors(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert recipes.main([str(tmp_path / "nowhere")]) == 1
    assert "no run here" in capsys.readouterr().err
    run = copy(trained, tmp_path / "run", seed=1, needs=tmp_path / "gone")
    assert recipes.main([str(run)]) == 1
    assert (
        capsys.readouterr().err
        == f"{tmp_path / 'gone'}: missing; its training time is part of the total\n"
    )
