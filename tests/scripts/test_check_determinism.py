"""Every configuration, with small sizes, trains to the same weights twice."""

from pathlib import Path
from typing import Any

import pytest

from nmt.config.load import config_from_dict, load
from nmt.config.schema import Config
from scripts.check_determinism import cut, digests
from tests import toy
from tests.conftest import ROOT

PATHS = sorted((ROOT / "configs").glob("*.yaml"))
FACTOR = 16  # by which models and batches are smaller


def small(path: Path, folder: Path) -> Config:
    """A configuration with the toy's data, and smaller sizes in the same ratio."""
    values = load(path).to_dict()
    values["data"] = {
        "direction": "en-de",
        "source": {"format": "manythings", "path": str(folder / "pairs.tsv")},
        "workers": 1,
    }
    values["tokenizer"] |= (
        {"kind": "bpe", "size": 60} if values["model"]["lexical_words"] else {"kind": "characters"}
    )
    _shrink(values["model"])
    values["training"]["batch"] |= {"size": values["training"]["batch"]["size"] // FACTOR}
    return cut(config_from_dict(values), pairs=100, steps=2, tatoeba=None, folder=folder)


def _shrink(values: dict[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, dict):
            _shrink(value)
        elif key.endswith("size") and value is not None:
            values[key] = value // FACTOR


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_same_seed_gives_the_same_weights(path: Path, tmp_path: Path) -> None:
    toy.write_table(tmp_path / "pairs.tsv", toy.sentence_pairs())
    config = small(path, tmp_path)
    other = config.model_copy(update={"seed": config.seed + 1})
    first, second, third = (
        digests(each, tmp_path / name)
        for each, name in ((config, "1"), (config, "2"), (other, "3"))
    )
    assert first == second
    assert first[0] == third[0] == 2
    assert first[1] != third[1]
    assert first[2] != third[2]
