"""The commands of the campaign, on a small project: 400 pairs of the sample, and models that train
in less than a second.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
N_PAIRS = 400
STEPS = 4
CONFIG: dict[str, Any] = {
    "name": "toy",
    "data": {
        "source": {"format": "manythings", "path": "pairs.tsv"},
        "split": {"dev": 12, "test": 12},
        "workers": 2,
        "prepared": "prepared",
    },
    "tokenizer": {"kind": "bpe", "size": 150},
    "model": {
        "embedding_size": 12,
        "encoder": {"hidden_size": 12},
        "decoder": {"hidden_size": 12},
        "dropout": 0.2,
    },
    "training": {
        "max_steps": STEPS,
        "validate_every": 2,
        "log_every": 1,
        "validation_pairs": 4,
        "final_pairs": 4,
        "keep_best": 2,
        "keep_last": 2,
        "moving_average": 0.5,
        "average": "last",
        "batch": {"size": 16},
        "learning_rate": {"peak": 0.01, "schedule": "constant"},
    },
    "decoding": {"beam": 2, "max_length_ratio": 1.0},
}
SENTENCES = ["The dog sleeps.", "She reads a book.", "Tom is here.", "I see the old house."]

Run = Callable[..., None]


@dataclass(frozen=True)
class Scenario:
    """A command of the campaign.

    Attributes:
        words: after `nmt`. again: those of the next call, if they differ.
        missing: files and folders of the project that do not exist yet.
        kept: runs and prepared folders that must be intact, whatever happens.
        whole: files that must have their old or their new content, whatever happens.
        inputs: files that it reads.
        done: what a repeated call says, if it fails because the first one has succeeded.
    """

    name: str
    words: tuple[str, ...]
    again: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    kept: tuple[str, ...] = ("prepared", "run")
    whole: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    done: str = ""

    @property
    def next_words(self) -> tuple[str, ...]:
        """Of the call after the fault."""
        return self.again or self.words


def _scenario(name: str, line: str, again: str = "", **values: Any) -> Scenario:
    return Scenario(name, tuple(line.split()), tuple(again.split()), **values)


OTHER_SPLIT = "--set data.split.seed=2"
TRAIN = "train -c toy.yaml -o new --device cpu"
WEIGHTS = "run/checkpoints/step-00000004/model.safetensors"
REPOSITORY = "me/toy"  # the bench has filled it
SCENARIOS = [
    _scenario("init", "init started", kept=(), done="exists already"),
    _scenario(
        "prepare",
        "prepare -c toy.yaml",
        missing=("prepared", "run"),
        kept=(),
        inputs=("pairs.tsv", "toy.yaml"),
    ),
    _scenario(
        "prepare --overwrite",
        f"prepare -c toy.yaml --overwrite {OTHER_SPLIT}",
        inputs=("pairs.tsv",),
    ),
    _scenario(
        "train",
        TRAIN,
        f"{TRAIN} --resume",
        inputs=("toy.yaml", "prepared/train.src.npy", "prepared/dev.src.txt"),
    ),
    _scenario(
        "train --resume",
        "train -c toy.yaml -o half --device cpu --resume",
        kept=("prepared", "run", "half"),
    ),
    _scenario(
        "translate -o",
        "translate --run run --file input.txt -o output.txt --device cpu",
        whole=("output.txt",),
        inputs=("input.txt", WEIGHTS),
    ),
    _scenario(
        "translate --attention",
        "translate --run run --attention page.html --device cpu Hello.",
        whole=("page.html",),
    ),
    _scenario(
        "evaluate",
        "evaluate run --split test --device cpu",
        inputs=("prepared/test.tgt.txt", WEIGHTS),
    ),
    _scenario("average", "average run --kept last --device cpu", inputs=(WEIGHTS,)),
    _scenario(
        "lexicon",
        "lexicon run --device cpu",
        whole=("run/lexicon.tsv",),
        inputs=("prepared/train.src.npy",),
    ),
    _scenario(
        "augment",
        "augment prepared -o augmented --forward run --set decoding.beam=1 --device cpu",
        inputs=("prepared/train.src.npy", WEIGHTS),
    ),
    _scenario("bundle", "bundle run -o run.nmt", whole=("run.nmt",), inputs=(WEIGHTS,)),
    _scenario("push", "push run me/other"),
    _scenario("pull", f"pull {REPOSITORY} -o pulled", done="exists; choose another"),
    _scenario("export", "export run -o exported", inputs=(WEIGHTS,), done="exists; delete it"),
    _scenario("reproduce", "reproduce run -o again --device cpu"),
]


def make_project(folder: Path, run: Run) -> None:
    """Fill `folder`: configuration, input, prepared data, a finished run, one that is half trained,
    and some outputs.

    Args:
        run: runs `nmt WORDS` in the folder.
    """
    folder.mkdir(parents=True)
    lines = (ROOT / "data" / "sample" / "sample.tsv").read_text("utf-8").splitlines(keepends=True)
    (folder / "pairs.tsv").write_text("".join(lines[:N_PAIRS]), "utf-8")
    (folder / "toy.yaml").write_text(json.dumps(CONFIG, indent=1), "utf-8")  # JSON is YAML
    (folder / "input.txt").write_text("".join(f"{sentence}\n" for sentence in SENTENCES), "utf-8")
    (folder / "output.txt").write_text("an old translation\n", "utf-8")
    run("prepare", "-c", "toy.yaml")
    run("train", "-c", "toy.yaml", "-o", "run", "--device", "cpu")
    run("train", "-c", "toy.yaml", "-o", "half", "--device", "cpu", "--set", "training.max_steps=2")
    run("lexicon", "run", "--pairs", "50", "--device", "cpu")
    run("bundle", "half", "-o", "run.nmt")


def copy_project(template: Path, folder: Path, scenario: Scenario) -> None:
    """Replace `folder` by a copy of the project as it is before the command of a scenario."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder)
    remove_missing(folder, scenario)


def remove_missing(folder: Path, scenario: Scenario) -> None:
    """Delete from a copy of the project what does not exist yet before the command of a
    scenario.
    """
    for name in scenario.missing:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    if scenario.missing:
        for name in ("half", ".half.lock", ".run.lock"):
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
