"""Translators of several runs and checkpoints, and what of a run may be changed when it
translates.
"""

import shutil
from functools import partial
from pathlib import Path

import pytest
import torch

import nmt
from nmt.commands import prepare
from nmt.config.schema import Config
from nmt.decoding.ensemble import Ensemble
from nmt.errors import CheckpointError
from nmt.files import CHECKSUMS_FILE
from nmt.run.checkpoint import Checkpoints
from nmt.run.folder import create_run
from nmt.run.load import load_translator
from nmt.run.progress import Progress, Rank
from nmt.run.weights import build_model, save_training
from tests import toy

SIZES = {"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 8}}
TEXTS = ["The dog sees the tree.", "The king loves the day."]


def make_run(folder: Path, prepared: Path, config: Config, seed: int) -> Path:
    """A run whose model has its first weights; its best checkpoint is that of step 1."""
    torch.manual_seed(seed)
    create_run(folder, config, prepared)
    model = build_model(folder, config)
    checkpoints = Checkpoints(folder)
    write = partial(save_training, model, torch.optim.SGD(model.parameters()))
    checkpoints.save(Progress(step=1), write, rank=Rank(1.0, -1.0))
    for parameter in model.parameters():
        parameter.data.mul_(3)
    checkpoints.save(Progress(step=2), write, rank=Rank(0.0, -1.0))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs a and b on the same data, c with other words, d with other tokens."""
    folder = tmp_path_factory.mktemp("runs")
    table = toy.write_table(folder / "pairs.tsv", toy.sentence_pairs()[:200])
    sections = {
        "a": {"model": SIZES, "decoding": {"beam": 2}},
        "b": {
            "model": {**SIZES, "decoder": {"hidden_size": 16, "cell": "gru"}},
            "decoding": {"beam": 4},
        },
        "c": {"model": SIZES, "vocabulary": {"max_size": 12}},
        "d": {"model": SIZES, "tokenizer": {"kind": "words"}},
    }
    for seed, (name, values) in enumerate(sections.items()):
        config = toy.configure(table, **values)
        prepared = folder / f"prepared-{'a' if name == 'b' else name}"
        if not prepared.exists():
            prepare.run(config, prepared, progress=False)
        make_run(folder / name, prepared, config, seed)
    return folder


def log_probs(*members: Path) -> list[float]:
    translator = load_translator(
        list(members), overrides=["decoding.beam=1", "decoding.max_length_ratio=0.1"]
    )
    return [translation.log_prob for translation in translator.translate(TEXTS)]


def test_runs_and_checkpoints_go_together(folder: Path) -> None:
    translator = nmt.load(
        folder / "a", folder / "b", folder / "a" / "checkpoints" / "step-00000002"
    )
    assert isinstance(translator.model, Ensemble)
    assert len(translator.model.models) == 3
    assert translator.options.beam == 2  # that of the first
    assert all(translation.tokens for translation in translator.translate(TEXTS))


def test_a_checkpoint_is_found_by_its_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    best, last = (folder / "a" / "checkpoints" / f"step-0000000{step}" for step in (1, 2))
    assert log_probs(best) == log_probs(folder / "a") != log_probs(last)
    monkeypatch.chdir(last)
    assert log_probs(Path()) == log_probs(last)


def test_other_vocabularies_and_tokens_are_refused(folder: Path, tmp_path: Path) -> None:
    a, c, d = (folder / name for name in "acd")
    for other, what in ((c, "source vocabulary"), (d, "source tokenizer")):
        text = (
            f"{other}: its {what} differs from that of {a}; an ensemble needs runs on the same "
            "prepared data"
        )
        with pytest.raises(CheckpointError) as fault:
            nmt.load(a, other)
        assert str(fault.value) == text
    changed = shutil.copytree(a, tmp_path / "a")
    shutil.copy(c / "tgt.vocab.txt", changed)
    (changed / CHECKSUMS_FILE).unlink()
    with pytest.raises(CheckpointError, match="its target vocabulary differs from that of"):
        nmt.load(a, changed)
