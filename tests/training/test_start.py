"""Fine-tuning: a training that starts with the weights of another run."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

import nmt as package
from nmt.commands import prepare, train
from nmt.config.load import load_config
from nmt.config.schema import Config
from nmt.data import batches as data_batches
from nmt.files import read_json
from nmt.run.folder import find_checkpoint, load_vocabularies
from nmt.run.journal import read_events
from nmt.run.weights import load_model
from nmt.text.vocabulary import UNK
from nmt.training import lexicon
from nmt.training.lexicon import LearnedLexicon
from tests import toy
from tests.conftest import Run

SIZES = {
    "embedding_size": 16,
    "encoder": {"hidden_size": 16},
    "decoder": {"hidden_size": 16},
    "lexical_bias": 2,
}


def write(folder: Path, name: str, pairs: list[tuple[str, str]], **sections: Any) -> Path:
    """A configuration whose data is prepared into `<folder>/<name>`."""
    data = {"split": {"dev": 10, "test": 10}, "prepared": str(folder / name)}
    training = {**toy.ONE_UPDATE, **sections.pop("training", {})}
    table = toy.write_table(folder / f"{name}.tsv", pairs)
    sections = {"model": SIZES, "data": data, "training": training, **sections}
    config: Config = toy.configure(table, **sections)
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(config.to_dict()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was trained on some of the pairs, beside its configuration parent.yaml."""
    folder = tmp_path_factory.mktemp("parent")
    config = load_config(write(folder, "parent", toy.sentence_pairs()[:200]))
    prepare.run(config, progress=False)
    train.run(config, folder / "run", quiet=True)
    return folder / "run"


def test_fine_tuning_starts_with_the_weights_and_vocabularies_of_a_run(
    nmt: Run, parent: Path, tmp_path: Path
) -> None:
    others = [
        (src.replace("dog", "cat"), tgt.replace("Hund", "Kater"))
        for src, tgt in toy.sentence_pairs()[200:330]
    ]
    of_parent = {"vocabulary": {"like": str(parent)}, "training": {"start_from": str(parent)}}
    config = write(tmp_path, "child", others, **of_parent)
    assert nmt("prepare", "-c", config).status == 0
    for side in ("src", "tgt"):
        name = f"{side}.vocab.txt"
        assert (tmp_path / "child" / name).read_bytes() == (parent / name).read_bytes()
    words = ("train", "-c", config, "-o", tmp_path / "tuned")
    result = nmt(*words, "--set", "training.learning_rate.peak=1e-12")
    assert result.status == 0
    assert f"starts from {parent}, step-00000001" in result.err
    assert "(100.0 %)" in result.err
    assert f" source tokens, with those of {parent} as prior" in result.err
    start, _, score, *_ = read_events(tmp_path / "tuned" / "journal.jsonl")
    assert (score["event"], score["step"]) == ("validation", 0)
    assert (start["event"], start["step"], start["new"]) == ("start", 0, [])
    assert start["reused"] == start["parameters"] > 0
    best = json.loads((parent / "checkpoints" / "best.json").read_text())["checkpoint"]
    before = load_file(parent / "checkpoints" / best / "model.safetensors")
    after = load_file(tmp_path / "tuned" / "checkpoints" / "step-00000001" / "model.safetensors")
    lexicon = [name for name in before if name.startswith("lexical_bias.")]
    earlier = {name: before.pop(name) for name in lexicon}
    assert all((before[name] - after[name]).abs().max() < 1e-9 for name in before)
    # The parent has read no unknown character: the table has a row more.
    key = "lexical_bias.probabilities"
    assert not earlier[key][UNK].any()
    assert after[key][UNK].any()
    assert earlier[key].any(1).sum() == after[key].any(1).sum() - 1, "all of the parent is there"


def test_the_start_is_validated_and_stays_the_best_one(
    nmt: Run, parent: Path, tmp_path: Path
) -> None:
    config, run = parent.parent / "parent.yaml", tmp_path / "run"
    sets = (f"start_from={parent}", "max_steps=2", "learning_rate.peak=1", "metric=loss")
    kept = ("keep_last=3", "patience=2", "learning_rate.warmup_steps=0")
    words = [word for key in (*sets, *kept) for word in ("--set", f"training.{key}")]
    result = nmt("train", "-c", config, "-o", run, *words)
    assert result.status == 0, result.err
    lines = result.err.splitlines()
    assert any(line.startswith("step 0  validation  dev loss ") for line in lines)
    assert (
        f"nmt: no update made the model better than its start, {parent}, which stays in use"
    ) in lines
    assert find_checkpoint(run).name == "step-00000000"
    assert "best step     0, checkpoints/step-00000000, " in nmt("runs", "show", run).out
    first, *_ = losses = [(event["step"], event["loss"]) for event in validations(run)]
    assert [step for step, _ in losses] == [0, 1, 2]
    assert first[1] == validations(parent)[-1]["loss"]
    # Cut short before the first update, it goes on from there.
    again = Path(shutil.copytree(run, tmp_path / "again"))
    last = again / "checkpoints" / "last.json"
    (earliest,) = [one for one in read_json(last)["kept"] if not one["step"]]
    last.write_text(json.dumps({**earliest, "kept": [earliest]}), encoding="utf-8")
    assert nmt("train", "-c", config, "-o", again, *words, "--resume").status == 0
    assert [(event["step"], event["loss"]) for event in validations(again)] == losses
    weights = "checkpoints/step-00000002/model.safetensors"
    assert (again / weights).read_bytes() == (run / weights).read_bytes()


def validations(run: Path) -> list[dict[str, Any]]:
    events = read_events(run / "journal.jsonl")
    return [event for event in events if event["event"] == "validation"]


def test_a_model_of_other_sizes_is_refused_with_the_keys(
    nmt: Run, parent: Path, tmp_path: Path
) -> None:
    start = ("--set", f"training.start_from={parent}", "--set")
    words = ("train", "-c", parent.parent / "parent.yaml", "-o", tmp_path / "run", *start)
    other = f"nmt: warning: training.start_from: {parent} has other sizes, so a part of this model"
    for key, texts in {
        "model.embedding_size=24": (
            f"{other} starts at random: model.embedding_size: 16 there, 24 here\n",
        ),
        "model.attention.score=additive": (
            "; new: decoder.attention.score.query_weight.weight, ",
            '; model.attention.score: "general" there, "additive" here\n',
        ),
    }.items():
        warned = nmt(*words, key).err
        assert all(text in warned for text in texts), warned
        shutil.rmtree(tmp_path / "run")
    result = nmt(*words, "model.decoder.hidden_size=64", "--set", "model.dropout=0.3")
    assert (result.status, (tmp_path / "run").exists()) == (1, False)
    assert f"nmt: training.start_from: {parent} has only " in result.err
    end = "give both the same sizes: model.decoder.hidden_size: 16 there, 64 here\n"
    assert result.err.endswith(end)
    text = "has no room (model.lexical_bias: 2 there, 0 here); set it to 2 or more"
    nmt.refuses(text, *words, "model.lexical_bias=0")
    assert not (tmp_path / "run").exists()


def test_an_unsuitable_run_is_refused(nmt: Run, parent: Path, tmp_path: Path) -> None:
    config = parent.parent / "parent.yaml"
    child = write(tmp_path, "child", toy.sentence_pairs()[:150])
    assert nmt("prepare", "-c", child).status == 0
    for path, run, key, message in (
        (
            config,
            parent,
            "model.tie_embeddings=target",
            f"nmt: training.start_from: {parent} was trained with model.tie_embeddings none, so it "
            "has several matrices where target has one; set model.tie_embeddings to none",
        ),
        (
            child,
            parent,
            "training.max_steps=1",
            f"nmt: training.start_from: the vocabularies of {parent} differ from those of "
            f"{tmp_path / 'child'}; prepare it with vocabulary.like: {parent}",
        ),
        (config, "nowhere", "training.max_steps=1", "nmt: nowhere: no run here; `nmt train"),
        (
            config,
            find_checkpoint(parent),
            "training.max_steps=1",
            f"nmt: {find_checkpoint(parent)}: is a checkpoint; name the folder of its run",
        ),
    ):
        sets = ("--set", f"training.start_from={run}", "--set", key)
        for more in ([], ["--dry-run"]):
            nmt.refuses(message, "train", "-c", path, "-o", tmp_path / "tuned", *sets, *more)
            assert not (tmp_path / "tuned").exists()


@pytest.mark.parametrize(
    ("model", "joint"),
    [
        ({"tie_embeddings": "all", "lexical_bias": 2}, True),
        ({}, False),
    ],
)
def test_new_tokens_start_from_what_they_are_made_of(
    nmt: Run, tmp_path: Path, model: dict[str, Any], joint: bool
) -> None:
    training = {"max_steps": 12, "batch": {"size": 16}, "learning_rate": {"peak": 0.02}}
    sections: dict[str, Any] = {
        "tokenizer": {"kind": "words"},
        "model": {**SIZES, "lexical_bias": 0, **model},
    }
    run = toy.train(
        tmp_path,
        **sections,
        training={**toy.ONE_UPDATE, **training},
        vocabulary={"joint": joint},
    )
    pairs = [
        (src.replace("dog", "Dog").replace(".", "\u2026"), tgt.replace("Hund.", "Köter\u2026"))
        for src, tgt in toy.sentence_pairs()[:330]
    ]
    sections |= {
        "vocabulary": {"joint": joint, "like": str(run), "extend": 8},
        "training": {"start_from": str(run), "learning_rate": {"peak": 1e-12}},
    }
    config = write(tmp_path, "child", pairs, **sections)
    assert nmt("prepare", "-c", config).status == 0
    result = nmt("train", "-c", config, "-o", tmp_path / "tuned")
    assert result.status == 0, result.err
    n_new = 3 if joint else 2
    assert f"; {n_new} source and {n_new} target tokens are new\n" in result.err
    start = read_events(tmp_path / "tuned" / "journal.jsonl")[0]
    assert (start["new_tokens"], start["new"]) == ({"src": n_new, "tgt": n_new}, [])
    before, after = (
        load_model(each, find_checkpoint(each)).state_dict() for each in (run, tmp_path / "tuned")
    )
    for name, old in before.items():
        if "lexical" not in name:
            torch.testing.assert_close(after[name][: len(old)], old)
    src, tgt = load_vocabularies(tmp_path / "tuned")
    for side, vocabulary, new, part in (
        ("src", src, "Dog", "dog"),
        ("src", src, "￭…", "￭."),
        ("tgt", tgt, "Köter", "<unk>"),
    ):
        rows = after[f"{side}_embedding.weight"][vocabulary.ids([new, part])]
        torch.testing.assert_close(rows[0], rows[1])
    texts = ("The dog sees the tree.", "The king knows the man.")
    first, second = (package.load(each).translate(texts) for each in (run, tmp_path / "tuned"))
    assert [each.text for each in first] == [each.text for each in second]


def test_the_lexicon_of_a_large_corpus_comes_from_some_of_its_pairs(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config(parent.parent / "parent.yaml", ["model.lexical_bias=4"])

    def count_translations() -> int:
        return int(LearnedLexicon.learn(config).table.probabilities.gt(0).sum())

    whole = count_translations()
    monkeypatch.setattr(data_batches, "PART_PAIRS", 90)  # two parts of 23 ranges
    monkeypatch.setattr(data_batches, "RANGE_PAIRS", 4)
    half = count_translations()
    monkeypatch.setattr(lexicon, "MAX_RANGES", 5)
    assert 0 < count_translations() < half < whole
