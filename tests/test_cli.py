"""The command line, end to end: the commands on a slice of the sample, and the errors that users
make.
"""

import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from nmt import __version__
from nmt.cli import all_commands, main
from nmt.commands import prepare, train
from nmt.config.load import load_config
from nmt.run.folder import load_run_config
from nmt.run.journal import read_events
from tests.conftest import Run

PAIRS = 400
CONFIG = """\
name: small
data:
  prepared: {folder}/prepared
  source: {{path: {folder}/pairs.tsv}}
  split: {{dev: 20, test: 30}}
  workers: 1
model: {{embedding_size: 16, encoder: {{hidden_size: 16}}, decoder: {{hidden_size: 16}}}}
training:
  {{max_steps: 24, validate_every: 12, log_every: 6, batch: {{size: 16}}, teacher_forcing: {{
  start: 0.9, end: 0.1, schedule: linear, steps: 12}}}}
"""
VISIBLE = [name for name, row in all_commands().items() if row.place]


def write_config(folder: Path, root: Path) -> Path:
    """A slice of the sample, and a model small enough to train in seconds."""
    sample = (root / "data" / "sample" / "sample.tsv").read_text(encoding="utf-8")
    lines = sample.splitlines(keepends=True)[:PAIRS]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    path = folder / "small.yaml"
    path.write_text(CONFIG.format(folder=folder), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A folder with small.yaml, prepared/ and runs/small/; tests read it and write elsewhere."""
    folder = tmp_path_factory.mktemp("trained")
    config = load_config(write_config(folder, root))
    prepare.run(config, progress=False)
    train.run(config, folder / "runs" / "small", quiet=True)
    return folder


@pytest.fixture
def inside(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(trained)
    return trained


def test_help_groups_the_commands_and_shows_whole_sentences(
    nmt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = nmt("--help").out.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options:", "Data:", "Training:", "Translation:", "Results:"]
    assert not [line for line in lines[1:] if line.endswith("...")]
    assert {name.split()[0] for name in VISIBLE} <= {line[2:].split(" ")[0] for line in lines}
    assert lines[-7:-5] == ["  First steps:", "    nmt init first"]
    assert "  SENTENCE  Sentences, each in quotes.\n" in nmt("translate", "--help").out
    monkeypatch.setenv("COLUMNS", "50")
    assert max(map(len, nmt("--help").out.splitlines())) <= 50


@pytest.mark.parametrize("name", VISIBLE)
def test_each_command_explains_itself(nmt: Run, name: str) -> None:
    result = nmt(*name.split(), "--help")
    assert result.status == 0
    words = " ".join(result.out.split())
    assert words.startswith(f"Usage: nmt {name} ")
    assert all_commands()[name].sentence in words
    assert nmt(*name.split(), "--nonsense").status == 2


def test_version(nmt: Run) -> None:
    lines = nmt("--version").out.splitlines()
    assert [line.split()[0] for line in lines] == ["nmt", "Python", "torch", "device"]
    assert lines[0] == f"nmt {__version__}"
    assert f"{torch.get_num_threads()} thread" in lines[3]


@pytest.mark.parametrize(
    ("words", "completions"),
    [("nmt tr", ["train", "translate", "translate-files"]), ("nmt train --dr", ["--dry-run"])],
)
def test_shells_complete_commands_and_options(
    nmt: Run, monkeypatch: pytest.MonkeyPatch, words: str, completions: list[str]
) -> None:
    monkeypatch.setenv("_NMT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert nmt().out.split() == completions


def test_a_run_folder_explains_itself(trained: Path) -> None:
    run = trained / "runs" / "small"
    assert {path.name for path in run.iterdir()} == {
        *("config.yaml", "manifest.json", "checksums.json", "provenance.json", "checkpoints"),
        *("src.vocab.txt", "tgt.vocab.txt", "journal.jsonl", "curves.png", "tensorboard"),
    }
    checkpoints = {path.name for path in (run / "checkpoints").iterdir()}
    assert checkpoints >= {"last.json", "best.json", "step-00000024"}
    events = read_events(run / "journal.jsonl")
    assert [(event["event"], event["step"]) for event in events] == [
        *(("train", 6), ("train", 12), ("validation", 12)),
        *(("train", 18), ("train", 24), ("validation", 24)),
    ]
    names = {"loss", "perplexity", "tokens_per_second", "learning_rate", "gradient_norm"}
    assert names <= events[0].keys()
    assert [event["forcing_ratio"] for event in events if event["event"] == "train"] == [
        pytest.approx(max(0.1, 0.9 - 0.8 * (step - 1) / 12)) for step in (6, 12, 18, 24)
    ]
    assert {"loss", "perplexity", "bleu"} <= events[2].keys()
    first, second = (event["samples"] for event in events if event["event"] == "validation")
    assert [sample.keys() for sample in first] == [{"source", "reference", "output"}] * 3
    for side in ("source", "reference"):
        assert [sample[side] for sample in first] == [sample[side] for sample in second]


def test_a_resumed_training_keeps_the_precision_that_auto_chose(
    nmt: Run, inside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tests/training/test_precision.py has the choice."""
    rates = {"float32": 100.0, "bfloat16": 200.0}
    monkeypatch.setattr("nmt.training.precision.supports_mixed_precision", lambda _: True)
    monkeypatch.setattr("nmt.training.precision.measure_rates", lambda _: dict(rates))
    words = f"train -c small.yaml -o {tmp_path / 'run'} --device cpu --resume".split()
    for key in ("precision=auto", "validation_pairs=2", "final_pairs=0"):
        words += ["--set", f"training.{key}"]
    first = nmt(*words, "--set", "training.max_steps=2").err
    assert ", bfloat16 (200 tokens/s without updates; float32: 100)" in first
    rates["bfloat16"] = 50.0
    second = nmt(*words, "--set", "training.max_steps=4").err
    assert "nmt: warning: training.precision: bfloat16 is slower here" in second
    assert load_run_config(tmp_path / "run").training.precision == "bfloat16"
    journal = read_events(tmp_path / "run" / "journal.jsonl")
    events = [event for event in journal if event["event"] == "precision"]
    assert [(each["step"], each["chosen"]) for each in events] == [(0, "bfloat16"), (2, "bfloat16")]
    assert events[0]["tokens_per_second"] == {"float32": 100.0, "bfloat16": 200.0}


def test_translate_gives_a_line_for_each_line(nmt: Run, inside: Path) -> None:
    dog, empty, _, end = nmt("translate", "The dog sleeps.", "", "The cat.").out.split("\n")
    assert (empty, end) == ("", "")
    texts = "The dog sleeps.\n\nÄh?\r\n   \nThe cat".encode()
    lines = nmt("translate", "--run", "runs/small", stdin=texts).out.split("\n")
    assert len(lines) == 6
    assert (lines[0], lines[1], lines[3], lines[5]) == (dog, "", "", "")


TRAIN = "train -c small.yaml -o none --device cpu"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("translate --align --n-best 2 x", 2, "--align prints one alignment per sentence"),
        ("translate --align --json x", 2, "--json contains the alignment already"),
        ("translate --score --align x", 2, "--score does not search"),
        ("translate --score --n-best 2 x", 2, "--score does not search"),
        ("translate --device tpu x", 2, "'tpu' is not one of 'auto', 'cpu', 'cuda', 'mps'"),
        ("translate --file small.yaml x", 2, "give sentences or --file, not both"),
        ("translate One. Two. --attention x.png", 1, "a picture shows one sentence; give exactly"),
        ("translate --run nowhere x", 1, "no run here"),
        ("translate x -o prepared", 1, "is a folder; name a file"),
        ("translate x -o none/out.txt", 1, "no such folder"),
        ("evaluate --hypotheses small.yaml", 2, "--references"),
        ("prepare", 2, "Missing option '--config'"),
        ("evaluate --min-bleu 99.5", 1, "is below 99.5, by "),
        (
            "train -c small.yaml -o small.yaml",
            1,
            "nmt: small.yaml: is a file; name a folder with -o",
        ),
        ("train -c small.yaml -o none --device mps", 1, "mps: not available here; available: cpu"),
        (f"{TRAIN} --set data.prepared=none", 1, "no prepared data here; run `nmt prepare -c"),
        (f"{TRAIN} --set tokenizer.lowercase=true", 1, "lowercase is false there and true here"),
        (f"{TRAIN} --dry-run --set data.split.seed=9", 1, "data.split.seed is 1 there and 9 here"),
    ],
)
def test_an_error_is_one_line_and_leaves_nothing(
    nmt: Run, inside: Path, words: str, status: int, message: str
) -> None:
    result = nmt(*words.split())
    assert result.status == status
    assert message in result.err.splitlines()[-1]
    assert not (inside / "none").exists()


def test_train_resumes_a_run(nmt: Run, inside: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(inside / "runs" / "small", run)
    train = ("train", "-c", "small.yaml", "-o", run)
    text = f"{run}: already trained, to step 24 (training.max_steps=24 is reached)\n"
    assert nmt(*train, "--resume").err == text
    longer = nmt(*train, "--resume", "--set", "training.max_steps=30")
    assert longer.status == 0
    assert "resuming from step 24" in longer.err
    assert (run / "checkpoints" / "step-00000030").is_dir()


def test_training_continues_if_pictures_cannot_be_written(
    nmt: Run, inside: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    (run / "curves.png").mkdir(parents=True)
    (run / "tensorboard").write_text("not a folder")
    words = ("train", "-c", "small.yaml", "-o", run, "--quiet", "--set", "training.max_steps=1")
    done = nmt(*words)
    assert (done.status, done.out) == (0, "")
    assert done.err == (
        f"nmt: {run / 'tensorboard'}: cannot be written (File exists); the training continues "
        "without it\n"
        f"nmt: {run / 'curves.png'}: cannot be written (Is a directory); the training continues "
        "without it\n"
    )
    assert (run / "checkpoints" / "step-00000001").is_dir()


def test_translate_before_train(nmt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "no run under runs/ yet: run `nmt train -c CONFIG` first"
    nmt.refuses(text, "translate", "Hello.")
    nmt.refuses(text, "evaluate")


def test_output_into_a_device(nmt: Run, inside: Path) -> None:
    assert nmt("translate", "Hello.", "-o", "/dev/null").status == 0
    assert not Path("/dev/null").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    ("words", "unbuffered"),
    [("translate Hello.", "1"), ("--help", ""), ("--help", "1"), ("runs list", "")],
)
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


@pytest.mark.parametrize("words", ["train -c small.yaml", "runs average"])
def test_nearly_no_memory(
    nmt: Run, inside: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr("nmt.device.MIN_MEMORY", 1 << 62)  # bytes, more than any computer has
    advice = "use smaller batches or a smaller model, or a machine with more memory"
    nmt.refuses(f"nmt: out of memory; {advice}\n", *words.split())


def test_interrupted_training_saves_and_says_how_to_continue(
    nmt: Run, inside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tests/training/test_interrupt.py has the signals."""
    words = f"train -c small.yaml -o {tmp_path} --set training.log_every=1".split()
    with monkeypatch.context() as patch:
        patch.setattr(train, "stop_on_signal", lambda: nullcontext(lambda: True))
        text = f"interrupted; step 1 is saved in {tmp_path}; repeat the command with --resume to"
        nmt.refuses(f"nmt: {text} continue\n", *words)
    assert (tmp_path / "curves.png").is_file()
    done = nmt(*words, "--resume", "--set", "training.max_steps=2")
    assert done.status == 0, done.err
    assert "resuming from step 1" in done.err


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


@pytest.mark.parametrize(
    ("name", "words", "text"),
    [
        ("stdin", [], "stdin is closed; give sentences or --file"),
        ("stdout", ["Hello."], "stdout is closed; write into a file with -o"),
    ],
)
def test_closed_streams(
    inside: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    words: list[str],
    text: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["nmt", "translate", *words])
    monkeypatch.setattr(sys, name, None)  # as Python does
    with pytest.raises(SystemExit, match="1"):
        main()
    assert capsys.readouterr().err == f"nmt: {text}\n"
