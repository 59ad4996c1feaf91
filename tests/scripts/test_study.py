"""scripts/study.py: random trials, successive halving, the tables; and that a study continues after
an interruption.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.load import load_config
from nmt.errors import ConfigError
from nmt.run.progress import Progress
from scripts import study
from scripts.study import (
    Budget,
    Domain,
    Result,
    Trainer,
    Trial,
    draw_trials,
    finish,
    halve,
    rank,
    to_markdown,
)
from tests import toy
from tests.config.examples import MINIMAL
from tests.conftest import ROOT

# --- Trials


@given(
    st.sampled_from(["range", "log_range"]),
    st.integers(1, 50) | st.floats(1e-6, 1e3),
    st.floats(1.001, 100),
    st.integers(0, 10**6),
)
def test_numbers_are_within_the_range_and_short(
    scale: str, low: float, factor: float, seed: int
) -> None:
    high = int(low * factor) + 1 if isinstance(low, int) else low * factor
    value = Domain.parse("key", {scale: [low, high]}).draw(random.Random(seed))
    assert low <= value <= high
    assert isinstance(value, type(low))
    assert isinstance(value, int) or value in (low, high) or value == float(f"{value:.3g}")


FORM = r"model.dropout: write a list of values, \{range: \[low, high\]\} or"
FIXED = "the study sets it, or scores would not be comparable"


@pytest.mark.parametrize(
    ("key", "form", "message"),
    [
        ("model.dropout", [], FORM),
        ("model.dropout", {"range": [2, 1]}, FORM),
        ("model.dropout", {"log_range": [0, 1]}, FORM),
        ("model.dropout", {"range": [1, 2], "more": 1}, FORM),
        ("seed", [1, 2], f"seed: {FIXED}"),
        ("data", [1, 2], f"data: {FIXED}"),
        ("training.max_steps", [1, 2], f"training.max_steps: {FIXED}"),
    ],
)
def test_wrong_domains_are_errors(key: str, form: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Domain.parse(key, form)


def test_trials_are_valid_and_different_and_more_of_them_begin_alike() -> None:
    forms = {
        "model.encoder.layers": [1, 2, 3],
        "model.encoder.residual": [False, True],
        "model.dropout": {"range": [0.1, 0.4]},
    }
    space = {key: Domain.parse(key, form) for key, form in forms.items()}
    trials = draw_trials(MINIMAL, space, 12, seed=3)
    assert [trial.number for trial in trials] == list(range(1, 13))
    assert all(
        trial.values["model.encoder.layers"] > 1
        for trial in trials
        if trial.values["model.encoder.residual"]
    )
    assert trials[:5] == draw_trials(MINIMAL, space, 5, seed=3)
    assert trials != draw_trials(MINIMAL, space, 12, seed=4)


# --- Successive halving


class Scripted(Trainer):
    """Scores are a function of the trial, the budget and the seed; None is a failure."""

    def __init__(self, score: Any) -> None:
        super().__init__(Path("none"), MINIMAL, jobs=1, threads=1, device="cpu")
        self.score, self.asked = score, list[tuple[str, list[int]]]()

    def measure(self, trials: Iterable[tuple[Trial, int]], budget: Budget) -> list[Result]:
        pairs = list(trials)
        self.asked.append((str(budget), [trial.number for trial, _ in pairs]))
        scores = [self.score(trial.number, budget.amount, seed) for trial, seed in pairs]
        return [
            Result(
                trial.number,
                str(budget),
                seed,
                "run",
                {} if score is None else {"BLEU": score},
                error="" if score else "bad",
            )
            for (trial, seed), score in zip(pairs, scores, strict=True)
        ]


TRIALS = [Trial(number, {"model.dropout": number / 100}) for number in range(1, 10)]
BUDGETS = [Budget(amount, "steps") for amount in (10, 30, 90)]


def test_the_best_third_goes_on_with_each_budget() -> None:
    trainer = Scripted(lambda number, amount, seed: number if amount == 10 else 10.0 - number)
    rungs = halve(trainer, TRIALS, BUDGETS, keep=3, metric="BLEU")
    assert trainer.asked == [
        ("10-steps", list(range(1, 10))),
        ("30-steps", [9, 8, 7]),
        ("90-steps", [7]),
    ]
    assert [[result.trial for result in ranked] for ranked in rungs] == [
        [9, 8, 7, 6, 5, 4, 3, 2, 1],
        [7, 8, 9],
        [7],
    ]


@given(st.lists(st.none() | st.floats(0.1, 100), min_size=9, max_size=9), st.integers(2, 4))
def test_a_failed_trial_ranks_last_and_never_goes_on(scores: list[float | None], keep: int) -> None:
    trainer = Scripted(lambda number, amount, seed: scores[number - 1])
    if not any(scores):
        with pytest.raises(ConfigError, match="all trainings failed; the first one: bad"):
            halve(trainer, TRIALS, BUDGETS, keep=keep, metric="BLEU")
        return
    halve(trainer, TRIALS, BUDGETS, keep=keep, metric="BLEU")
    ranked = sorted((score for score in scores if score is not None), reverse=True)
    for _, numbers in trainer.asked[1:]:
        asked = [scores[number - 1] for number in numbers]
        assert asked == ranked[: len(asked)]


def test_finalists_have_the_mean_and_the_deviation_of_their_seeds() -> None:
    table = {(1, 1): 30.0, (1, 2): 31.0, (1, 3): 35.0, (2, 1): 33.0, (2, 2): 33.5, (2, 3): None}
    trainer = Scripted(lambda number, amount, seed: table[number, seed])
    finalists, results = finish(trainer, TRIALS[:2], BUDGETS[-1], n_seeds=3, metric="BLEU")
    assert [(entry.trial, entry.seeds) for entry in finalists] == [(2, [1, 2]), (1, [1, 2, 3])]
    assert finalists[1].mean["BLEU"] == 32
    assert finalists[1].deviation["BLEU"] == pytest.approx(7**0.5)
    assert len(results) == 6
    markdown = to_markdown(TRIALS[:2], [rank(results, "BLEU")], finalists)
    assert (
        "| trial | model.dropout | seeds | BLEU |\n| --- | --- | --- | --- |\n| 2 | 0.02 | 2 | "
        "33.25 ± 0.35 |\n"
    ) in markdown
    assert markdown.endswith("| 2 | 0.02 | bad | 0 | 0.0 |\n")


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(Budget(500, "steps"), (500, None, None)), (Budget(2.5, "minutes"), (None, 2.5, None))],
)
def test_a_schedule_lasts_as_long_as_the_budget(budget: Budget, expected: tuple[Any, ...]) -> None:
    base = load_config(ROOT / "configs/tatoeba.yaml")
    training = load_config(base, budget.overrides(base)).training
    assert (training.max_steps, training.max_minutes, training.learning_rate.steps) == expected


# --- The whole study

SPACE = {"tokenizer.kind": ["words", "characters"], "training.learning_rate.peak": [0.02, 0.000001]}


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Arguments of a small study of toy data."""
    config = toy.configure(
        toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()[:200]),
        data={"split": {"dev": 20, "test": 20}, "prepared": str(tmp_path / "prepared")},
        model={
            "embedding_size": 12,
            "encoder": {"hidden_size": 12},
            "decoder": {"hidden_size": 12},
        },
        training={
            "batch": {"size": 32},
            "validate_every": 100,
            "validation_pairs": 5,
            "learning_rate": {"schedule": "linear"},
        },
        decoding={"beam": 1},
    )
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(config.to_dict()), encoding="utf-8")
    (tmp_path / "space.yaml").write_text(yaml.safe_dump(SPACE), encoding="utf-8")
    paths = f"-c {tmp_path}/base.yaml --space {tmp_path}/space.yaml -o {tmp_path}/study"
    numbers = "--trials 4 --steps 2 6 --keep 2 --finalists 1 --seeds 2 --device cpu"
    return f"{paths} {numbers}".split()


class Commands:
    """In place of the commands: a training leaves its progress, and the dev scores follow from its
    configuration.
    """

    def __init__(self) -> None:
        self.words: list[str] = []

    def run(self, words: Sequence[str], log_file: Path) -> tuple[int, str]:
        self.words.append(words[0])
        log_file.write_text(f"nmt: {words[0]}\n", encoding="utf-8")
        config = load_config(Path(f"{words[1]}.yaml" if words[0] == "evaluate" else words[2]))
        steps = config.training.max_steps or 0
        if words[0] == "train":
            checkpoints = Path(words[4]) / "checkpoints"
            (checkpoints / f"step-{steps:08d}").mkdir(parents=True)
            progress = json.dumps(asdict(Progress(step=steps, seconds=90)))
            (checkpoints / f"step-{steps:08d}" / "progress.json").write_text(progress)
            last = json.dumps({"checkpoint": f"step-{steps:08d}", "step": steps})
            (checkpoints / "last.json").write_text(last)
        elif words[0] == "prepare":
            config.prepared_folder.mkdir()
            (config.prepared_folder / "manifest.json").touch()
        else:
            assert words[2:4] == ["--split", "dev"]
            bleu = 1000 * config.training.learning_rate.peak + config.seed + steps
            scores = [{"metric": "BLEU", "score": bleu}, {"metric": "chrF", "score": 9.0}]
            return 0, json.dumps({"scores": scores})
        return 0, ""


def test_a_study_from_end_to_end(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    commands = Commands()
    monkeypatch.setattr(
        Trainer, "run_nmt", lambda _, words, log_file: commands.run(words, log_file)
    )
    assert study.main(words) == 0
    markdown, printed = (
        (tmp_path / "study" / "study.md").read_text(encoding="utf-8"),
        capsys.readouterr().out,
    )
    assert printed.startswith(markdown)
    assert printed.endswith("--set training.learning_rate.peak=0.02\n")
    assert " | 2 | 27.50 ± 0.71 | 9.00 ± 0.00 |\n" in markdown
    results = json.loads((tmp_path / "study" / "study.json").read_text())
    assert [[result["scores"]["BLEU"] for result in rung] for rung in results["rungs"]] == [
        [23, 23, 3.001, 3.001],
        [27, 27],
    ]
    assert [
        (result["seed"], result["steps"], result["minutes"]) for result in results["final_results"]
    ] == [
        (1, 6, 1.5),
        (2, 6, 1.5),
    ]
    # 4 short trainings, 2 longer ones, and 1 more seed; both tokenizers need their data.
    assert (
        commands.words.count("prepare"),
        commands.words.count("train"),
        commands.words.count("evaluate"),
    ) == (2, 7, 7)
    config = load_config(tmp_path / "study" / f"{results['final_results'][1]['run']}.yaml")
    assert (config.seed, config.training.learning_rate.steps, config.training.threads) == (
        2,
        None,
        1,
    )

    # Repeated, it trains nothing. More seeds extend it. With another space it is refused.
    commands.words.clear()
    assert study.main(words) == 0
    assert commands.words == []
    assert study.main([*words, "--seeds", "4"]) == 0
    assert commands.words == ["train", "evaluate"] * 2
    capsys.readouterr()
    (tmp_path / "space.yaml").write_text("model.dropout: [0.1, 0.2]", encoding="utf-8")
    assert study.main(words) == 1
    assert (
        "holds a study with another configuration, space or seed; name another folder with -o\n"
        in capsys.readouterr().err
    )


def test_a_failed_command_is_named(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_nmt(self: Trainer, words: Sequence[str], log_file: Path) -> tuple[int, str]:
        log_file.write_text("...\nnmt: the disk is full\n", encoding="utf-8")
        return (0, "") if words[0] == "prepare" else (1, "")

    monkeypatch.setattr(Trainer, "run_nmt", run_nmt)
    assert study.main(words) == 1
    assert capsys.readouterr().err.endswith(
        "study: all trainings failed; the first one: nmt: the disk is full\n"
    )


@pytest.mark.slow
def test_a_killed_study_continues(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(
        "training.learning_rate.peak: {log_range: [0.001, 0.1]}", encoding="utf-8"
    )
    options = ["--trials", "2", "--seeds", "1", "--jobs", "2", "--metric", "chrF"]
    command = [sys.executable, str(ROOT / "scripts/study.py"), *words, *options]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]]),
    }
    process = subprocess.Popen(
        command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while not list((tmp_path / "study").rglob("*.json")) or not list(
        (tmp_path / "study").rglob("checkpoints")
    ):
        time.sleep(0.05)
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert subprocess.run(command, env=environment, check=False).returncode == 0
    results = json.loads((tmp_path / "study" / "study.json").read_text())
    assert [len(rung) for rung in results["rungs"]] == [2, 1]
