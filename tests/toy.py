"""A small table of invented sentence pairs, with a configuration to prepare it and to train on
it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nmt.commands import prepare
from nmt.commands import train as train_command
from nmt.config.load import config_from_dict
from nmt.config.schema import Config
from nmt.data.corpus import Sequences
from nmt.data.manifest import MANIFEST
from nmt.data.padding import SentenceIds
from nmt.files import CHECKSUMS_FILE

NOUNS = [
    ("dog", "Hund"),
    ("tree", "Baum"),
    ("table", "Tisch"),
    ("man", "Mann"),
    ("river", "Fluss"),
    ("day", "Tag"),
    ("king", "König"),
]
VERBS = [
    ("sees", "sieht"),
    ("knows", "kennt"),
    ("finds", "findet"),
    ("loves", "liebt"),
    ("wants", "will"),
    ("hears", "hört"),
]

# Another kind of sentences; one word of each side is new.
MEMORY = [
    (f"Now the {man[0]} {verb[0]} the {thing[0]}.", f"Der {man[1]} {verb[1]} den {thing[1]} jetzt.")
    for man in NOUNS
    for verb in VERBS
    for thing in NOUNS
]

# The shortest training, where the weights do not matter.
ONE_UPDATE = {"max_steps": 1, "validate_every": 1, "validation_pairs": 2, "final_pairs": 0}


def sentence_pairs() -> list[tuple[str, str]]:
    """588 pairs; the second half has other translations of the same sources, so that a random split
    leaks.
    """
    pairs = [
        (
            f"The {subject[0]} {verb[0]} the {thing[0]}.",
            f"Der {subject[1]} {verb[1]} den {thing[1]}.",
        )
        for subject in NOUNS
        for verb in VERBS
        for thing in NOUNS
    ]
    return pairs + [(src, tgt.replace("Der", "Ja, der")) for src, tgt in pairs]


def write_table(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    return path


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def replace(path: Path, old: str, new: str) -> None:
    """Edit a file."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def configure(table: Path, **sections: Any) -> Config:
    data = {
        "source": {"format": "manythings", "path": str(table)},
        "split": {"dev": 40, "test": 60},
        "workers": 1,
        **sections.pop("data", {}),
    }
    return config_from_dict(
        {"name": "toy", "data": data, "tokenizer": {"kind": "characters"}, **sections}
    )


def sequences(rows: Sequence[SentenceIds]) -> Sequences:
    ids = np.array([index for row in rows for index in row], np.int32)
    return Sequences.of_blocks([(ids, np.array([*map(len, rows)], np.int32))])


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name not in (MANIFEST, CHECKSUMS_FILE)
    }


def train(folder: Path, **sections: Any) -> Path:
    """Prepare data in `folder`/prepared and train a small run in `folder`/run, in one or two
    seconds; the run folder.
    """
    sections = {
        "data": {"split": {"dev": 20, "test": 40}, "prepared": str(folder / "prepared")},
        "tokenizer": {"kind": "words"},
        "model": {
            "embedding_size": 24,
            "encoder": {"hidden_size": 24},
            "decoder": {"hidden_size": 24},
            "dropout": 0.0,
        },
        "training": {
            "max_steps": 60,
            "validate_every": 60,
            "batch": {"size": 16},
            "learning_rate": {"peak": 0.01},
        },
        **sections,
    }
    config = configure(write_table(folder / "pairs.tsv", sentence_pairs()), **sections)
    prepare.run(config, progress=False)
    train_command.run(config, folder / "run", quiet=True)
    return folder / "run"
