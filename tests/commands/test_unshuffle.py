"""A model that sorts numbers attends to the number that it writes: the right attention is known."""

from pathlib import Path

import pytest

from nmt.commands import prepare, train
from nmt.config.load import load_config
from nmt.data.corpus import read_sentences
from nmt.run.load import load_translator


@pytest.mark.slow
def test_attention_is_the_permutation_that_sorts(tmp_path: Path, root: Path) -> None:
    settings = {
        "data.source.path": root / "data/unshuffle/unshuffle.tsv",
        "data.prepared": tmp_path / "prepared",
        "training.max_minutes": 10,
    }
    keys = [f"{key}={value}" for key, value in settings.items()]
    config = load_config(root / "configs/unshuffle.yaml", keys)
    prepare.run(config, progress=False)
    train.run(config, tmp_path / "run", quiet=True)
    sources, references = (
        read_sentences(config.prepared_folder, "test", side) for side in ("src", "tgt")
    )
    translations = load_translator(tmp_path / "run").translate(sources)
    n_numbers = n_right = 0
    for translation in translations:
        numbers = translation.source.split()
        permutation = sorted(range(len(numbers)), key=numbers.__getitem__)  # of two digits each
        attended = translation.attention.argmax(1).tolist()
        n_numbers += len(numbers)
        n_right += sum(a == b for a, b in zip(attended, permutation, strict=False))
    assert n_right / n_numbers >= 0.95
    n_sorted = sum(each.text == text for each, text in zip(translations, references, strict=True))
    assert n_sorted / len(references) >= 0.95
