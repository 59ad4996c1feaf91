"""The seams are true: parts from outside of the package in the four commands. A score and a format
are added by `test_add_parts_of_your_own`.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.plugins import extras
from nmt.run.journal import read_events
from tests.conftest import ROOT, Run, in_one_process
from tests.toy import sentence_pairs, write_table

OUTSIDE = ROOT / "tests" / "outside"
CONFIG: dict[str, Any] = {
    "name": "outside",
    "data": {
        "source": {"format": "manythings", "path": "pairs.tsv"},
        "split": {"dev": 20, "test": 20},
        "workers": 1,
    },
    "tokenizer": {"kind": "blanks"},
    "model": {
        "embedding_size": 16,
        "encoder": {"cell": "minimal", "hidden_size": 16, "bidirectional": False},
        "decoder": {"kind": "late", "cell": "minimal", "hidden_size": 16},
    },
    "training": {
        "max_steps": 20,
        "validate_every": 10,
        "validation_pairs": 4,
        "final_pairs": 4,
        "metric": "length",
        "sharpness_loss": 0.1,
    },
    "decoding": {"max_length_ratio": 0.5},
}


@pytest.mark.slow
def test_the_parts_take_part_in_all_commands(tmp_path: Path) -> None:
    """Filter; tokenizer and model; metric and loss term; ranker; format of documents; command."""
    sentence = "The dog sees the river."
    write_table(tmp_path / "pairs.tsv", sentence_pairs())
    (tmp_path / "dog.notes").write_text(f"id: 1\nnote: {sentence}\n", encoding="utf-8")
    (tmp_path / "outside.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    commands = [
        *(f"{command} -c outside.yaml".split() for command in ("prepare", "train -q")),
        ["translate", "--n-best", "5", sentence],
        ["translate", "--set", "decoding.shortest=true", sentence],
        [
            "translate",
            "--set",
            "decoding.shortest=true",
            "--file",
            "dog.notes",
            "-o",
            "notes.notes",
        ],
        *(line.split() for line in ("evaluate --split dev", "--help", "greet you")),
    ]
    paths = os.pathsep.join([str(ROOT), str(OUTSIDE), os.environ.get("PYTHONPATH", "")])
    prepared, _, beam, shortest, _, scores, listing, greeting = in_one_process(
        commands, tmp_path, NMT_EXTRAS="my_extra", PYTHONPATH=paths
    )
    assert "with a yes          294\nkept                294\n" in prepared
    run = tmp_path / "runs" / "outside"
    events = read_events(run / "journal.jsonl")
    (first, second) = [event for event in events if event["event"] == "validation"]
    assert {"bleu", "chrf", "length"} <= {*first, *second}
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    assert config["training"]["sharpness_loss"] == 0.1
    texts = [line.split(" ||| ")[1] for line in beam.splitlines()]
    assert len(shortest.strip()) == min(map(len, texts))
    notes = (tmp_path / "notes.notes").read_text(encoding="utf-8")
    assert notes == f"id: 1\nnote: {shortest}"
    assert "BLEU" in scores
    assert "greet" in listing
    assert greeting == "hello you\n"


def test_a_module_without_rows_is_one_line(nmt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_EXTRAS", "json")
    extras.cache_clear()
    nmt.refuses("nmt: NMT_EXTRAS: json: module 'json' has no attribute 'EXTRA'; name", "--help")
