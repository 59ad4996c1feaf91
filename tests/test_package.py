"""What `import nmt` offers: prepare, train and load, as the commands of the same names do."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import nmt
from nmt.config.yaml_text import dump
from nmt.errors import ConfigError, StopTraining
from nmt.run.journal import read_events
from nmt.training.record import (
    BeginEvent,
    CheckpointEvent,
    EndEvent,
    Event,
    MessageEvent,
    StepEvent,
    ValidationEvent,
)
from tests import toy

# What `nmt COMMAND --help` imports.
HELP = "from nmt.cli import Commands; [Commands().get_command(None, name) for name in {names}]"
HEAVY = {"torch", "numpy", "spacy", "matplotlib", "sacrebleu", "pydantic"}


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import nmt", {*HEAVY, "yaml", "typer"}),
        ("import nmt.cli; nmt.cli.all_commands()", HEAVY),
        (
            HELP.format(names=["prepare", "train", "translate"]),
            {"torch", "spacy", "sentencepiece", "matplotlib", "sacrebleu"},
        ),
        (
            "from nmt.extras.init.languages import guess_language; guess_language(['the dog'])",
            {"spacy"},
        ),
    ],
)
def test_imports_are_cheap(root: Path, code: str, heavy: set[str]) -> None:
    words = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]
    done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=root)
    assert heavy.isdisjoint(done.stdout.split())


def test_what_translating_does_not_import(root: Path, run: Path) -> None:
    code = f"import nmt; nmt.load({str(run)!r}).translate(['The dog sleeps.'])"
    test_imports_are_cheap(
        root, code, {"matplotlib", "sacrebleu", "torch._dynamo", "torch._inductor", "sympy"}
    )


def test_prepare_train_and_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = toy.configure(
        toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()),
        model={"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 8}},
        training={"max_steps": 2},
    )
    Path("toy.yaml").write_text(dump(config), encoding="utf-8")
    assert nmt.prepare("toy.yaml", folder="elsewhere")["already_prepared"] is False
    assert nmt.prepare(config, folder="elsewhere")["already_prepared"] is True

    prepared = ["data.prepared=elsewhere"]
    run = nmt.train("toy.yaml", overrides=prepared, quiet=True)
    assert run == Path("runs/toy")
    assert nmt.train(
        config, overrides=[*prepared, "seed=2"], folder="second", device="cpu", quiet=True
    ) == Path("second")
    (translation,) = nmt.load(run, overrides=["decoding.max_length_ratio=1"]).translate(
        ["The dog sees the man."]
    )
    assert isinstance(translation.text, str)
    with pytest.raises(ConfigError, match="contains a run already"):
        nmt.train(config, overrides=prepared, quiet=True)
    assert nmt.train(config, overrides=prepared, resume=True, quiet=True) == run
    with pytest.raises(
        ConfigError,
        match=r"^configuration with --set: seed: must be a whole number; got \"x\"$",
    ):
        nmt.train(config, overrides=["seed=x"])


def weights(run: Path, step: int) -> dict[str, bytes]:
    folder = run / "checkpoints" / f"step-{step:08}"
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


def journal(run: Path) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in event.items() if key not in ("seconds", "tokens_per_second")}
        for event in read_events(run / "journal.jsonl")
    ]


def test_events_of_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whoever leaves the loop has a saved training, which continues exactly."""
    monkeypatch.chdir(tmp_path)
    config = toy.configure(
        toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()),
        data={"split": {"dev": 20, "test": 40}, "prepared": str(tmp_path / "prepared")},
        tokenizer={"kind": "words"},
        model={"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 8}},
        training={
            "max_steps": 6,
            "validate_every": 3,
            "log_every": 2,
            "final_pairs": 10,
            "keep_last": 5,
        },
    )
    nmt.prepare(config)
    whole = tmp_path / "whole"
    capfd.readouterr()
    events: list[Event] = []
    nmt.train(config, folder=whole, device="cpu", quiet=True, listen=events.append)
    assert capfd.readouterr() == ("", "")
    assert [(type(event), getattr(event, "step", None)) for event in events] == [
        (BeginEvent, 0),
        (MessageEvent, None),  # no word occurs once, so <unk> is not trained
        *((StepEvent, number) for number in (1, 2, 3)),
        (ValidationEvent, 3),
        (CheckpointEvent, 3),
        *((StepEvent, number) for number in (4, 5, 6)),
        (ValidationEvent, 6),
        (CheckpointEvent, 6),
        (MessageEvent, None),
        (EndEvent, None),
    ]
    begin, *_, end = events
    assert isinstance(begin, BeginEvent)
    assert (begin.folder, begin.n_pairs, begin.device, begin.n_processes) == (whole, 528, "cpu", 1)
    assert isinstance(end, EndEvent)
    assert (end.folder, end.progress.step, end.progress.finished) == (
        whole,
        6,
        "training.max_steps=6 is reached",
    )
    steps = [event for event in events if isinstance(event, StepEvent)]
    assert [step.fraction for step in steps] == pytest.approx([n / 6 for n in range(1, 7)])
    logged = [event for event in journal(whole) if event["event"] == "train"]
    assert [(event["step"], event["loss"]) for event in logged] == [
        (step.step, step.loss) for step in steps[1::2]
    ]
    first, _ = [event for event in events if isinstance(event, CheckpointEvent)]
    assert first.path == whole / "checkpoints" / "step-00000003"
    assert first.is_best

    parts = tmp_path / "parts"
    for stop in (3, 4):  # before a validation that is due, and between two

        def listen(event: Event, stop: int = stop) -> None:
            if isinstance(event, StepEvent) and event.step == stop:
                raise StopTraining

        nmt.train(config, folder=parts, resume=True, device="cpu", quiet=True, listen=listen)
        last = json.loads((parts / "checkpoints" / "last.json").read_text(encoding="utf-8"))
        assert last["step"] == stop
    nmt.train(config, folder=parts, resume=True, device="cpu", quiet=True)
    assert weights(parts, 6) == weights(whole, 6) != {}
    # The last is the choice among the kept checkpoints.
    assert journal(parts)[:-1] == journal(whole)[:-1]
    events.clear()
    nmt.train(config, folder=parts, resume=True, quiet=True, listen=events.append)
    assert [*map(type, events)] == [EndEvent]
    with pytest.raises(ConfigError, match="contains a run already"):
        nmt.train(config, folder=parts)


def test_a_listener_that_fails_is_a_warning(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def listen(event: Event) -> None:
        raise ValueError(f"bad {type(event).__name__}")

    config = toy.configure(
        toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs()),
        data={"prepared": str(tmp_path / "prepared")},
        training=toy.ONE_UPDATE,
    )
    nmt.prepare(config)
    nmt.train(config, folder=tmp_path / "run", device="cpu", quiet=True, listen=listen)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("nmt: <function ")
    assert line.endswith("ValueError('bad BeginEvent'); the training continues without it")
