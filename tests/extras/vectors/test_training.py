"""Trainings that start from word vectors."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from nmt.config.load import load_config
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import load_weights
from nmt.run.folder import build_model, find_checkpoint, load_vocabularies
from tests import toy
from tests.conftest import Run


@pytest.fixture
def config(nmt: Run, tmp_path: Path) -> Path:
    """Of prepared data."""
    values = toy.configure(
        toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()),
        data={"split": {"dev": 10, "test": 10}, "prepared": str(tmp_path / "prepared")},
        tokenizer={"kind": "words"},
        model={
            "embedding_size": 16,
            "encoder": {"hidden_size": 16},
            "decoder": {"hidden_size": 16},
            "tie_embeddings": "target",
        },
        training={**toy.ONE_UPDATE, "learning_rate": {"peak": 1e-9}, "log_every": 1},
    ).to_dict()
    path = tmp_path / "toy.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    assert nmt("prepare", "-c", path).status == 0
    return path


def write_vectors(path: Path, tokens: list[str], size: int = 16) -> np.ndarray:
    """As fastText writes them: small numbers."""
    rows = np.random.default_rng(len(tokens)).normal(scale=0.01, size=(len(tokens), size))
    lines = [
        f"{token} {' '.join(map(str, row))} \n"
        for token, row in zip(tokens, rows.tolist(), strict=True)
    ]
    path.write_text(f"{len(tokens)} {size}\n{''.join(lines)}", encoding="utf-8")
    return rows


def events_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]


def test_training_starts_from_word_vectors_and_resumes_without_them(
    nmt: Run, config: Path, tmp_path: Path
) -> None:
    src, tgt = load_vocabularies(tmp_path / "prepared")
    known, file, run = list(tgt)[6:], tmp_path / "de.vec", tmp_path / "run"
    rows = write_vectors(file, [*known, "<pad>", "elsewhere"])[: len(known)]
    words = ["train", "-c", config, "-o", run, "--set", f"model.tgt_vectors={file}"]
    dry, done = nmt(*words, "--dry-run"), nmt(*words)
    assert done.status == 0, done.err
    (line,) = [line for line in done.err.splitlines() if "vectors: " in line]
    assert line.startswith(f"tgt vectors: {len(known)} of {len(tgt) - 4} tokens (")
    assert line.endswith(" % of the running words, from de.vec")
    assert line in dry.out.splitlines()
    begun = events_of(run)
    assert begun[0] == {"event": "weights", "step": 0, "text": line}

    model = build_model(run, load_config(run / "config.yaml"))
    load_weights(find_checkpoint(run), model)
    torch.manual_seed(1)
    first = Seq2Seq(load_config(run / "config.yaml").model, len(src), len(tgt)).tgt_embedding.weight
    weight, ids = model.tgt_embedding.weight.detach(), tgt.ids(known)
    others = np.setdiff1d(np.arange(len(tgt)), ids)
    scale = first.std(correction=0).item() / rows.std()
    np.testing.assert_allclose(weight[ids], rows * scale, atol=1e-6)
    torch.testing.assert_close(weight[others], first.detach()[others], atol=1e-6, rtol=0)
    assert model.get_parameter("output.logits.weight") is model.tgt_embedding.weight

    shutil.copytree(run, tmp_path / "ended before a checkpoint")
    shutil.rmtree(tmp_path / "ended before a checkpoint" / "checkpoints")
    again = [*words[:4], tmp_path / "ended before a checkpoint", *words[5:]]
    assert nmt(*again, "--resume").status == 0
    events = events_of(tmp_path / "ended before a checkpoint")
    assert [event["event"] for event in events] == [event["event"] for event in begun]
    file.unlink()
    resumed = nmt(*words, "--set", "training.max_steps=2", "--resume")
    assert (resumed.status, "vectors" in resumed.err) == (0, False)
    assert events_of(run)[: len(begun)] == begun


def test_word_vectors_that_cannot_be_used_leave_no_run(
    nmt: Run, config: Path, tmp_path: Path
) -> None:
    write_vectors(tmp_path / "size.vec", ["The"], size=3)
    for side, name, message in (
        ("src", "none.vec", "none.vec: no such file"),
        ("tgt", "size.vec", "size.vec, line 1: vectors of 3 numbers, but model.embedding_size is"),
    ):
        for option in ("--resume", "--dry-run"):
            key = f"model.{side}_vectors={tmp_path / name}"
            result = nmt("train", "-c", config, "-o", tmp_path / "run", "--set", key, option)
            assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
            assert result.err.startswith(f"nmt: model.{side}_vectors: ")
            assert message in result.err
            assert not (tmp_path / "run").exists()
