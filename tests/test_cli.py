"""The command line, end to end: the commands on a slice of the sample, and the errors that users
make.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from filelock import FileLock
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from nmt import __version__
from nmt.config.load import load
from nmt.config.yaml_text import dump
from nmt.model.seq2seq import Seq2Seq
from nmt.run.checkpoint import load_weights
from nmt.run.folder import find_checkpoint, load_run_config, load_vocabularies
from tests.conftest import Run

PAIRS = 400


def write_config(folder: Path, root: Path) -> Path:
    """A slice of the sample, and a model small enough to train in seconds."""
    lines = (
        (root / "data" / "sample" / "sample.tsv")
        .read_text(encoding="utf-8")
        .splitlines(keepends=True)
    )
    (folder / "pairs.tsv").write_text("".join(lines[:PAIRS]), encoding="utf-8")
    config = {
        "name": "small",
        "data": {
            "prepared": str(folder / "prepared"),
            "source": {"path": str(folder / "pairs.tsv")},
            "split": {"dev": 20, "test": 30},
            "workers": 1,
        },
        "model": {
            "embedding_size": 16,
            "encoder": {"hidden_size": 16},
            "decoder": {"hidden_size": 16},
        },
        "training": {"max_steps": 24, "validate_every": 12, "log_every": 6, "batch": {"size": 16}},
    }
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A folder with small.yaml, prepared/ and runs/small/; tests read it and write elsewhere."""
    folder = tmp_path_factory.mktemp("trained")
    config = write_config(folder, root)
    for words in (["prepare"], ["train"]):
        command = [sys.executable, "-m", "nmt", *words, "-c", str(config)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def inside(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(trained)
    return trained


def test_help_names_the_commands_and_imports_nothing_heavy(nmt: Run) -> None:
    result = nmt("--help")
    assert result.status == 0
    assert all(
        command in result.out
        for command in ("prepare", "train", "translate", "evaluate", "inspect", "runs", "selftest")
    )
    code = (
        "import sys, nmt.cli; sys.exit(bool({'torch', 'numpy', 'spacy', 'pydantic', "
        "'sacrebleu', 'rich'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_help_groups_the_commands_and_shows_whole_sentences(
    nmt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = nmt("--help").out.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options:", "Data:", "Training:", "Translation:", "Results:", "Set-up:"]
    assert not [line for line in lines[1:] if line.endswith("...")]
    assert lines[-7:-5] == ["  First steps:", "    nmt init first"]
    monkeypatch.setenv("COLUMNS", "50")
    narrow = nmt("--help").out
    assert max(map(len, narrow.splitlines())) <= 50
    assert "Train a finished run again and compare the weights." in " ".join(narrow.split())
    assert {
        len(line) - len(line.lstrip())
        for line in lines
        if line.lstrip().startswith(("prepare ", "selftest "))
    } == {2}


def test_help_names_arguments_without_their_types(nmt: Run) -> None:
    assert "  SENTENCE  Sentences, each in quotes.\n" in nmt("translate", "--help").out
    assert (
        "  RUN  Run folder or bundle. Default: the newest in runs/.\n"
        in nmt("runs", "show", "--help").out
    )


def test_version(nmt: Run) -> None:
    lines = nmt("--version").out.splitlines()
    assert [line.split()[0] for line in lines] == ["nmt", "Python", "torch", "device"]
    assert lines[0] == f"nmt {__version__}"
    assert f"{torch.get_num_threads()} thread" in lines[3]


def test_shells_complete_commands_and_options(root: Path) -> None:
    for words, completions in {
        "nmt tr": ["train", "translate", "translate-files"],
        "nmt train --dr": ["--dry-run"],
    }.items():
        shell = {
            "_NMT_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        code = "import sys; sys.argv = ['nmt']; from nmt.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **shell},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.split() == completions


def test_the_schema_is_printed(nmt: Run) -> None:
    assert json.loads(nmt("schema").out)["properties"]["name"]["description"]


def load_model_of(run: Path) -> Seq2Seq:
    src, tgt = load_vocabularies(run)
    model = Seq2Seq(load(run / "config.yaml").model, len(src), len(tgt))
    load_weights(find_checkpoint(run), model)
    return model


def test_a_run_folder_explains_itself(trained: Path) -> None:
    run = trained / "runs" / "small"
    names = {path.name for path in run.iterdir()}
    vocabularies, shown = (
        {"src.vocab.txt", "tgt.vocab.txt"},
        {"journal.jsonl", "curves.png", "tensorboard"},
    )
    assert (
        names
        == {"config.yaml", "manifest.json", "checksums.json", "provenance.json", "checkpoints"}
        | vocabularies
        | shown
    )
    assert {path.name for path in (run / "checkpoints").iterdir()} >= {
        "last.json",
        "best.json",
        "step-00000024",
    }
    events = [
        json.loads(line)
        for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [(event["event"], event["step"]) for event in events] == [
        ("train", 6),
        ("train", 12),
        ("validation", 12),
        ("train", 18),
        ("train", 24),
        ("validation", 24),
        ("choice", 24),
    ]
    assert {
        "loss",
        "perplexity",
        "tokens_per_second",
        "learning_rate",
        "forcing_ratio",
        "gradient_norm",
    } <= events[0].keys()
    assert {"loss", "perplexity", "bleu"} <= events[2].keys()


def test_samples_are_the_same_sentences_at_each_validation(trained: Path) -> None:
    first, second = (
        event["samples"]
        for event in events_of(trained / "runs" / "small")
        if event["event"] == "validation"
    )
    assert [sample.keys() for sample in first] == [{"source", "reference", "output"}] * 3
    for side in ("source", "reference"):
        assert [sample[side] for sample in first] == [sample[side] for sample in second]
    dev = (trained / "prepared" / "dev.src.txt").read_text(encoding="utf-8").splitlines()
    lengths = [len(sample["source"]) for sample in first]
    assert lengths == sorted(lengths)
    assert min(map(len, dev)) <= lengths[0] < lengths[2] <= max(map(len, dev))
    assert {sample["source"] for sample in first} <= set(dev)


def test_training_is_shown_on_tensorboard(trained: Path) -> None:
    run = trained / "runs" / "small"
    shown = EventAccumulator(str(run / "tensorboard")).Reload()
    for event in events_of(run)[:-1]:  # the last is the choice among the checkpoints
        names = event.keys() - {"event", "step", "seconds", "samples"}
        assert {"loss", "perplexity"} <= names
        for name in names:
            curve = {point.step: point.value for point in shown.Scalars(f"{event['event']}/{name}")}
            assert curve[event["step"]] == pytest.approx(event[name], rel=1e-6)
    assert len(shown.Scalars("train/loss")) == 4
    assert [text.step for text in shown.Tensors("samples/3/text_summary")] == [12, 24]
    assert [image.step for image in shown.Images("attention")] == [12, 24]
    for image in shown.Images("attention"):
        assert image.encoded_image_string.startswith(b"\x89PNG")
        assert 100 < image.height < 2000
        assert 100 < image.width < 2000


def test_bfloat16_needs_a_processor_that_has_it(
    nmt: Run, inside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.device.supports_mixed_precision", lambda device: device.type == "cuda")
    result = nmt(
        "train",
        "-c",
        "small.yaml",
        "-o",
        tmp_path / "run",
        "--device",
        "cpu",
        "--set",
        "training.precision=bfloat16",
    )
    assert (result.status, result.err) == (
        1,
        (
            "nmt: training.precision: bfloat16 needs a processor with AVX512-BF16 or AMX, or a "
            "GPU; "
            "set float32\n"
        ),
    )
    assert not (tmp_path / "run").exists()


def test_precision_auto_is_that_of_the_device_and_then_of_the_run(
    nmt: Run, inside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = (
        "train",
        "-c",
        "small.yaml",
        "-o",
        tmp_path / "run",
        "--device",
        "cpu",
        "--set",
        "training.precision=auto",
    )
    monkeypatch.setattr("nmt.device.supports_mixed_precision", lambda _: False)
    assert ", bfloat16" not in nmt(*train, "--set", "training.max_steps=2").err
    assert load_run_config(tmp_path / "run").training.precision == "float32"
    monkeypatch.setattr("nmt.device.supports_mixed_precision", lambda _: True)
    assert ", bfloat16" not in nmt(*train, "--set", "training.max_steps=4", "--resume").err
    assert load_run_config(tmp_path / "run").training.precision == "float32"
    result = nmt(
        "train",
        "-c",
        "small.yaml",
        "-o",
        tmp_path / "other",
        "--device",
        "cpu",
        "--set",
        "training.precision=auto",
    )
    assert (result.status, ", bfloat16" in result.err) == (0, True)
    assert load_run_config(tmp_path / "other").training.precision == "bfloat16"
    monkeypatch.setattr("nmt.device.supports_mixed_precision", lambda _: False)
    result = nmt(
        *(tmp_path / "other" if word == tmp_path / "run" else word for word in train), "--resume"
    )
    assert (
        "training.precision: bfloat16 needs a processor with AVX512-BF16 or AMX, or a GPU; set "
        "float32"
    ) in result.err


def test_the_journal_records_the_teacher_forcing_ratio(
    nmt: Run, inside: Path, tmp_path: Path
) -> None:
    forcing = {"start": 0.9, "end": 0.1, "schedule": "linear", "steps": 12}
    sets = [
        word
        for key, value in forcing.items()
        for word in ("--set", f"training.teacher_forcing.{key}={value}")
    ]
    assert nmt("train", "-c", "small.yaml", "-o", tmp_path / "run", *sets).status == 0
    events = [
        json.loads(line)
        for line in (tmp_path / "run" / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    ratios = {
        event["step"]: event["forcing_ratio"] for event in events if event["event"] == "train"
    }
    assert ratios == {
        step: pytest.approx(max(0.1, 0.9 - 0.8 * (step - 1) / 12)) for step in (6, 12, 18, 24)
    }


def test_translate_gives_a_line_for_each_line(nmt: Run, inside: Path) -> None:
    assert nmt("translate", "The dog sleeps.").out.count("\n") == 1
    assert nmt("translate", "The dog sleeps.", "", "The cat sleeps.").out.split("\n")[1] == ""
    piped = nmt(
        "translate", "--run", "runs/small", stdin="The dog sleeps.\n\nÄh?\r\n   \nThe cat".encode()
    )
    assert piped.status == 0
    lines = piped.out.split("\n")
    assert len(lines) == 6
    assert (lines[1], lines[3], lines[5]) == ("", "", "")
    assert lines[0] == nmt("translate", "The dog sleeps.").out.rstrip("\n")


def test_translate_a_file_into_a_file(nmt: Run, inside: Path, tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("The dog sleeps.\nThe cat sleeps.\n", encoding="utf-8")
    result = nmt("translate", "--file", source, "-o", output, "--beam", 2)
    assert (result.status, result.out) == (0, "")
    assert output.read_text(encoding="utf-8").count("\n") == 2
    assert nmt(
        "translate", "--file", "-", "--beam", 2, stdin=source.read_bytes()
    ).out == output.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--score", "--prefix", "Ja"],
            (
                "--score does not search; remove --n-best, --prefix, --align, --threshold and "
                "--attention"
            ),
        ),
        (["--score", "--json", "--threshold", "0.5"], "--score does not search"),
        (["--threshold", "0.5"], "--threshold needs --align or --json"),
        (
            ["--align", "--n-best", "2"],
            "--align prints one alignment per sentence; remove --n-best",
        ),
        (["--align", "--json"], "--json contains the alignment already; remove --align"),
        (["--device", "tpu"], "'tpu' is not one of 'auto', 'cpu', 'cuda', 'mps'"),
    ],
)
def test_options_of_translate_that_do_not_go_together(
    nmt: Run, words: list[str], message: str
) -> None:
    result = nmt("translate", *words, "Hello.")
    assert (result.status, result.out) == (2, "")
    assert message in result.err


def test_translate_as_json(nmt: Run, inside: Path) -> None:
    value = json.loads(nmt("translate", "--json", "The dog sleeps.").out)
    assert value["source"] == "The dog sleeps."
    assert value["src_tokens"] == ["The", "dog", "sleeps", "￭."]
    assert value["log_prob"] < 0


def test_attention_is_drawn(nmt: Run, inside: Path, tmp_path: Path) -> None:
    picture = tmp_path / "attention.png"
    assert nmt("translate", "The dog sleeps.", "--attention", picture).status == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    two = nmt("translate", "One.", "Two.", "--attention", picture)
    assert (two.status, two.out) == (1, "")
    assert "a picture shows one sentence; give exactly one" in two.err


def test_evaluate_prints_scores_and_keeps_them(nmt: Run, inside: Path) -> None:
    table = nmt("evaluate", "--split", "dev")
    assert table.status == 0
    assert "BLEU" in table.out
    assert "chrF" in table.out
    assert "nrefs:1" in table.out
    value = json.loads(nmt("evaluate", "runs/small", "--json").out)
    assert [score["metric"] for score in value["scores"][:2]] == ["BLEU", "chrF"]
    assert all(
        score["interval"][0] <= score["score"] <= score["interval"][1] for score in value["scores"]
    )
    assert value["step"] in (12, 24)
    assert value["sentences"] == 30
    kept = list((inside / "runs" / "small" / "evaluation").glob("test-*.json"))
    assert [json.loads(path.read_text(encoding="utf-8"))["scores"] for path in kept] == [
        value["scores"]
    ]


def test_evaluate_as_a_gate(nmt: Run, inside: Path) -> None:
    assert nmt("evaluate", "--min-bleu", 0).status == 0
    failed = nmt("evaluate", "--min-bleu", 99.5)
    assert failed.status == 1
    assert "is below 99.5, by " in failed.err


def test_evaluate_files(nmt: Run, tmp_path: Path) -> None:
    hypotheses, references = tmp_path / "hyp.txt", tmp_path / "ref.txt"
    hypotheses.write_text("Der Hund schläft heute im Garten.\nJa, das ist gut.\n", encoding="utf-8")
    references.write_text("Der Hund schläft heute im Garten.\nJa, das ist gut.\n", encoding="utf-8")
    assert json.loads(
        nmt("evaluate", "--hypotheses", hypotheses, "--references", references, "--json").out
    )["scores"][0]["score"] == pytest.approx(100)
    references.write_text("Der Hund schläft heute im Garten.\n", encoding="utf-8")
    result = nmt("evaluate", "--hypotheses", hypotheses, "--references", references)
    assert (result.status, result.out) == (1, "")
    assert "ref.txt has 1 lines, but" in result.err
    assert nmt("evaluate", "--hypotheses", hypotheses).status == 2


def test_train_refuses_a_folder_that_holds_a_run_and_resumes_it(
    nmt: Run, inside: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(inside / "runs" / "small", run)
    refused = nmt("train", "-c", "small.yaml", "-o", run)
    assert refused.status == 1
    assert (
        "contains a run already; continue it with --resume, or train elsewhere with -o"
        in refused.err
    )
    assert (
        nmt("train", "-c", "small.yaml", "-o", "small.yaml").err
        == "nmt: small.yaml: is a file; name a folder with -o\n"
    )
    both = nmt("translate", "--run", run, "--file", "small.yaml", "Hello.")
    assert (both.status, both.out) == (2, "")
    assert "give sentences or --file, not both" in both.err
    assert (
        "already trained, to step 24" in nmt("train", "-c", "small.yaml", "-o", run, "--resume").err
    )
    changed = nmt(
        "train",
        "-c",
        "small.yaml",
        "-o",
        run,
        "--resume",
        "--set",
        "model.dropout=0.5",
        "--set",
        "seed=2",
    )
    assert changed.status == 1
    assert "model.dropout: was 0.2, is 0.5" in changed.err
    assert "seed: was 1, is 2" in changed.err
    longer = nmt(
        "train", "-c", "small.yaml", "-o", run, "--resume", "--set", "training.max_steps=30"
    )
    assert longer.status == 0
    assert "resuming from step 24" in longer.err
    assert (run / "checkpoints" / "step-00000030").is_dir()
    shown = EventAccumulator(str(run / "tensorboard")).Reload()
    assert [point.step for point in shown.Scalars("train/loss")] == [6, 12, 18, 24, 30]
    assert [point.step for point in shown.Scalars("validation/bleu")] == [12, 24, 30]


def test_a_training_whose_rate_follows_its_limits_keeps_them(
    nmt: Run, inside: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(inside / "runs" / "small", run)
    keys = ["training.learning_rate.schedule=linear", "training.learning_rate.steps=null"]
    (run / "config.yaml").write_text(dump(load(run / "config.yaml", keys)), encoding="utf-8")
    words = [word for key in (*keys, "training.max_steps=30") for word in ("--set", key)]
    refused = nmt("train", "-c", "small.yaml", "-o", run, "--resume", *words)
    assert refused.status == 1
    assert refused.err.endswith(
        "train elsewhere with -o, or change it back\n  training.max_steps: was 24, is 30\n"
    )


def test_progress_is_printed_unless_quiet(nmt: Run, inside: Path, tmp_path: Path) -> None:
    spoken = nmt("train", "-c", "small.yaml", "-o", tmp_path / "spoken")
    sample = [event for event in events_of(tmp_path / "spoken") if event["event"] == "validation"][
        -1
    ]["samples"][1]
    lines = spoken.err.splitlines()
    assert [line.split("  ")[0] for line in lines if line.startswith("step ")] == [
        f"step {n}" for n in (6, 12, 12, 18, 24, 24)
    ]
    (number,) = (
        number for number, line in enumerate(lines) if line.startswith("step 24  validation  ")
    )
    shown = [
        f"    {name:<9}  {sample[name]}".rstrip() for name in ("source", "reference", "output")
    ]
    assert [line.rstrip() for line in lines[number + 1 : number + 4]] == shown

    quiet = nmt("train", "-c", "small.yaml", "-o", tmp_path / "quiet", "--quiet")
    assert (quiet.status, quiet.out, quiet.err) == (0, "", "")
    for name in ("journal.jsonl", "curves.png", "tensorboard"):
        assert (tmp_path / "quiet" / name).exists()


def test_training_continues_if_pictures_cannot_be_written(
    nmt: Run, inside: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    (run / "curves.png").mkdir(parents=True)
    (run / "tensorboard").write_text("not a folder")
    done = nmt("train", "-c", "small.yaml", "-o", run, "--quiet")
    assert done.status == 0
    assert (
        f"nmt: {run / 'tensorboard'}: cannot be written (File exists); the training continues "
        "without it\n"
    ) in done.err
    assert f"nmt: {run / 'curves.png'}: cannot write the picture (Is a directory)\n" in done.err
    assert (run / "checkpoints" / "step-00000024").is_dir()


def test_dry_run_trains_nothing(nmt: Run, inside: Path) -> None:
    result = nmt("train", "-c", "small.yaml", "--dry-run", "-o", "runs/none")
    assert result.status == 0
    assert "\ntotal  " in result.out
    assert "embedding_size: 16" in result.out
    assert not (inside / "runs" / "none").exists()


def events_of(run: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def test_train_before_prepare(nmt: Run, inside: Path, tmp_path: Path) -> None:
    result = nmt(
        "train",
        "-c",
        "small.yaml",
        "--set",
        f"data.prepared={tmp_path / 'none'}",
        "-o",
        tmp_path / "run",
    )
    assert result.status == 1
    assert "no prepared data here; run `nmt prepare -c" in result.err
    assert not (tmp_path / "run").exists()


def test_train_on_data_prepared_with_another_configuration(
    nmt: Run, inside: Path, tmp_path: Path
) -> None:
    result = nmt(
        "train", "-c", "small.yaml", "--set", "tokenizer.lowercase=true", "-o", tmp_path / "run"
    )
    assert result.status == 1
    assert (
        "prepared with another configuration (tokenizer.lowercase is false there and true here)"
        in result.err
    )
    other = nmt(
        "train",
        "-c",
        "small.yaml",
        "--set",
        "data.split.seed=9",
        "-o",
        tmp_path / "run",
        "--dry-run",
    )
    assert "data.split.seed is 1 there and 9 here" in other.err


def test_a_run_refuses_data_that_was_prepared_again_differently(
    nmt: Run, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(trained, tmp_path / "all")
    monkeypatch.chdir(tmp_path / "all")
    lines = Path("pairs.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("other.tsv").write_text("".join(lines[:-1]), encoding="utf-8")
    here = ["-c", "small.yaml", "--set", "data.prepared=prepared"]
    assert nmt("prepare", *here, "--set", "data.source.path=other.tsv", "--overwrite").status == 0
    scored = nmt("evaluate", "runs/small", "--data", "prepared")
    assert (scored.status, scored.out) == (1, "")
    assert "is not the data that runs/small was trained on" in scored.err
    config = Path("runs/small/config.yaml").read_text(encoding="utf-8")
    resumed = nmt("train", *here, "--resume", "--set", "training.max_steps=30")
    assert resumed.status == 1
    assert "is not the data that runs/small was trained on" in resumed.err
    assert Path("runs/small/config.yaml").read_text(encoding="utf-8") == config


def test_a_training_that_cannot_start_leaves_no_run(nmt: Run, inside: Path, tmp_path: Path) -> None:
    result = nmt("train", "-c", "small.yaml", "-o", tmp_path / "run", "--device", "mps")
    assert "--device mps: not available here; available: cpu" in result.err
    assert not (tmp_path / "run").exists()


def test_one_training_at_a_time(nmt: Run, inside: Path, tmp_path: Path) -> None:
    with FileLock(tmp_path / ".run.lock"):
        assert (
            "another training is running in it"
            in nmt("train", "-c", "small.yaml", "-o", tmp_path / "run").err
        )


def test_evaluate_a_run_that_was_moved_and_cannot_be_written(
    nmt: Run, inside: Path, tmp_path: Path
) -> None:
    run = tmp_path / "moved"
    shutil.copytree(inside / "runs" / "small", run)
    shutil.rmtree(run / "evaluation", ignore_errors=True)
    (run / "evaluation").write_text("not a folder")
    result = nmt("evaluate", run, "--data", inside / "prepared")
    assert result.status == 0
    assert "BLEU" in result.out
    assert "cannot store the results there" in result.err


def test_translate_before_train(nmt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["translate", "Hello."], ["evaluate"]):
        result = nmt(*words)
        assert (result.status, result.out) == (1, "")
        assert result.err.count("\n") == 1
        assert "no run under runs/ yet: run `nmt train -c CONFIG` first" in result.err
    assert "no run here" in nmt("translate", "--run", "nowhere", "Hello.").err


def test_a_run_without_a_checkpoint(nmt: Run, inside: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(inside / "runs" / "small", run, ignore=shutil.ignore_patterns("checkpoints"))
    assert (
        "has no checkpoint yet; continue with `nmt train"
        in nmt("translate", "--run", run, "Hello.").err
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda run: (run / "src.vocab.txt").unlink(),
            "src.vocab.txt: no such file; `nmt prepare` writes it",
        ),
        (
            lambda run: (run / "config.yaml").write_text("name: [", encoding="utf-8"),
            "config.yaml, line 1, column",
        ),
        (
            lambda run: (run / "tgt.vocab.txt").write_bytes(
                b"".join((run / "tgt.vocab.txt").read_bytes().splitlines(True)[:-1])
            ),
            "tgt.vocab.txt: damaged, its content has changed since nmt wrote it; ",
        ),
        (lambda run: (run / "checkpoints" / "best.json").write_text("{}"), "best.json: damaged"),
    ],
)
def test_a_damaged_run(
    nmt: Run, inside: Path, tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(inside / "runs" / "small", run)
    damage(run)
    result = nmt("translate", "--run", run, "Hello.")
    assert (result.status, result.out, result.err.count("\n")) == (1, "", 1)
    assert message in result.err


def test_output_that_cannot_be_written(nmt: Run, inside: Path, tmp_path: Path) -> None:
    assert "is a folder; name a file" in nmt("translate", "Hello.", "-o", tmp_path).err
    assert "no such folder" in nmt("translate", "Hello.", "-o", tmp_path / "none" / "out.txt").err
    assert nmt("translate", "Hello.", "-o", "/dev/null").status == 0
    assert not Path("/dev/null").is_file()
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "target.txt")
    assert nmt("translate", "Hello.", "-o", link).status == 0
    assert link.is_symlink()
    assert (tmp_path / "target.txt").read_text(encoding="utf-8").count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["translate Hello.", "--help", "schema"])
def test_a_full_disk(trained: Path, words: str, unbuffered: str) -> None:
    command = f"{sys.executable} -m nmt {words} > /dev/full"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=trained,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "nmt: input or output: No space left on device\n"


@pytest.mark.parametrize(
    "words", ["train -c small.yaml", "translate Katze", "evaluate", "average", "lexicon"]
)
def test_nearly_no_memory(
    nmt: Run, inside: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr("nmt.device.MIN_MEMORY", 1 << 62)  # bytes, more than any computer has
    result = nmt(*words.split())
    assert result.status == 1
    assert result.err.splitlines()[-1] == (
        "nmt: out of memory; use smaller batches or a smaller model, or a machine with more memory"
    )


def test_input_that_is_not_utf8(nmt: Run, inside: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"Good.\nSch\xf6n.\n")
    output = tmp_path / "out.txt"
    output.write_text("earlier\n")
    result = nmt("translate", "--file", bad, "-o", output)
    assert result.status == 1
    assert "bad.txt, line 2: not UTF-8" in result.err
    assert output.read_text() == "earlier\n"
    assert {path.name for path in tmp_path.iterdir()} == {"bad.txt", "out.txt", "out.txt.partial"}


@pytest.mark.parametrize("command", ["prepare", "train"])
def test_a_configuration_with_typing_errors(nmt: Run, tmp_path: Path, command: str) -> None:
    path = tmp_path / "typo.yaml"
    path.write_text(
        "name: typo\ndata: {source: {path: x}}\ntraining: {ephocs: 3, patience: many}\n",
        encoding="utf-8",
    )
    result = nmt(command, "-c", path)
    assert result.status == 1
    assert "training.ephocs: unknown key; did you mean training.epochs?" in result.err
    assert 'training.patience: must be a whole number; got "many"' in result.err
    assert "no such file" in nmt(command, "-c", tmp_path / "none.yaml").err
    assert nmt(command).status == 2


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no such signals")
def test_interrupted_training_saves_and_says_how_to_continue(trained: Path, tmp_path: Path) -> None:
    words = [
        "train",
        "-c",
        "small.yaml",
        "-o",
        str(tmp_path),
        "--set",
        "training.max_steps=100000",
        "--set",
        "training.epochs=100000",
    ]
    command = [sys.executable, "-m", "nmt", *words]
    process = subprocess.Popen(command, cwd=trained, stderr=subprocess.PIPE, text=True)
    journal = tmp_path / "journal.jsonl"
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert "is saved in" in err.splitlines()[-1]
    assert (tmp_path / "curves.png").is_file()
    assert EventAccumulator(str(tmp_path / "tensorboard")).Reload().Scalars("train/loss")
    assert "repeat the command with --resume to continue" in err.splitlines()[-1]
    step = json.loads((tmp_path / "checkpoints" / "last.json").read_text())["step"]
    done = subprocess.run(
        [*command, "--resume", "--set", f"training.max_steps={step + 2}"],
        cwd=trained,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"resuming from step {step}" in done.stderr


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(trained: Path) -> None:
    command = (
        f"yes 'The dog sleeps.' | head -5000 | {sys.executable} -m nmt translate --beam 1 | head -1"
    )
    done = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[2]}}"],
        cwd=trained,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    assert done.returncode == 141  # as all that SIGPIPE ends


def test_closed_streams(trained: Path) -> None:
    expected = {
        "<&-": "stdin is closed; give sentences or --file",
        "Hello. >&-": "stdout is closed; write into a file with -o",
    }
    for redirection, text in expected.items():
        command = f"{sys.executable} -m nmt translate {redirection}"
        done = subprocess.run(
            ["bash", "-c", command], cwd=trained, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr
        assert text in done.stderr
