"""nmt.extras.formats.prepared: a prepared folder gives its training pairs again, and keeps its dev
and test sets from training.
"""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.commands import prepare
from nmt.config.schema import SourceConfig
from nmt.data.corpus import Corpus, read_sentences
from nmt.data.formats import open_source
from nmt.data.manifest import load_manifest
from nmt.data.splitting import sentence_key
from nmt.errors import DataError, NmtWarning
from nmt.files import sha256_of
from nmt.text.tokenizers import SIDES
from nmt.text.vocabulary import UNK
from tests.toy import configure, sentence_pairs, write_table

PAIRS = [*sentence_pairs()[:290], ("İ  ate <b>5 %</b> (twice)!", "Ich aß „5\xa0%“ – zweimal …")]
SPLIT = {"split": {"dev": 20, "test": 20}}


def prepared(folder: Path, **sections: Any) -> Path:
    table = write_table(folder / "pairs.tsv", PAIRS)
    prepare.run(configure(table, data=SPLIT, **sections), folder / "base", progress=False)
    return folder / "base"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("base"))


def source(folder: Path) -> dict[str, str]:
    return {"format": "prepared", "path": str(folder)}


def swap_ids(path: Path) -> None:
    np.save(path, np.load(path)[::-1])


def held_out(folder: Path) -> list[tuple[str, str]]:
    return [
        pair
        for split in ("dev", "test")
        for pair in zip(*(read_sentences(folder, split, side) for side in SIDES), strict=True)
    ]


def pairs(folder: Path, src: str = "en", tgt: str = "de") -> list[tuple[str, str]]:
    files = {"": [folder / "manifest.json"]}
    (opened,) = open_source(SourceConfig(format="prepared"), files, (src, tgt))
    return [pair for row in opened.rows() if (pair := opened.pair(row))]


@pytest.mark.parametrize(
    ("kind", "lowercase"), [("words", False), ("bpe", False), ("characters", True)]
)
def test_the_training_pairs_come_back_as_text(tmp_path: Path, kind: str, lowercase: bool) -> None:
    folder = prepared(tmp_path, tokenizer={"kind": kind, "size": 60, "lowercase": lowercase})
    expected = {(src, tgt) for src, tgt in PAIRS[:-1]} | {
        ("İ ate <b>5 %</b> (twice)!", "Ich aß „5 %“ – zweimal …")
    }
    expected -= {*held_out(folder)}
    if lowercase:
        expected = {(src.lower(), tgt.lower()) for src, tgt in expected}
    found = pairs(folder)
    assert len(found) == len(expected) == load_manifest(folder)["splits"]["train"]["pairs"]
    assert set(found) == expected
    assert set(pairs(folder, "de", "en")) == {(tgt, src) for src, tgt in expected}


def test_pairs_with_unknown_words_are_left_out(tmp_path: Path) -> None:
    folder = prepared(tmp_path, tokenizer={"kind": "words"}, vocabulary={"max_size": 18})
    corpus = Corpus.load(folder, "train")
    n_known = sum(UNK not in (*corpus.src[i], *corpus.tgt[i]) for i in range(len(corpus)))
    assert 0 < n_known < len(corpus)
    found = pairs(folder)
    assert len(found) == n_known
    assert set(found) <= set(PAIRS)


@pytest.mark.parametrize("direction", ["en-de", "de-en"])
def test_no_sentence_of_its_dev_or_test_is_trained_on(
    tmp_path: Path, base: Path, direction: str
) -> None:
    dev, *_, test = held_out(base)
    inside = [(dev[0].upper(), "Ein Satz."), ("A cat", test[1].replace(".", " !")), test, test]
    # A source that is the target of a held-out pair is no leak.
    outside = [(f"My {n} cats", f"Meine {n} Katzen") for n in range(50)] + [(test[1], "Ja, genau")]
    table = write_table(tmp_path / "memory.tsv", inside + outside)
    sources = {
        "memory": {"format": "tsv", "path": str(table), "columns": {"en": 1, "de": 2}},
        "general": {**source(base), "share": 0.5},
    }
    split = {"dev": 5, "test": 5, "source": "memory", "direction": "en-de"}
    data = {"source": {}, "sources": sources, "direction": direction, "split": split}
    config = configure(table, data=data)
    manifest = prepare.run(config, tmp_path / "new", progress=False)
    counts = manifest["counts"]
    assert +Counter(counts["dropped"]) == {"in dev or test of another": 4}
    assert counts["read"] == counts["kept"] + 4 == 55 + 251
    assert "4: 4 in dev or test of another" in prepare.summary(manifest)
    assert [counts["sources"][name]["kept"] for name in sources] == [51, 251]
    for side in (0, 1):
        keys = {sentence_key(pair[side]) for pair in pairs(tmp_path / "new")}
        assert keys.isdisjoint(sentence_key(pair[side]) for pair in held_out(base))
    assert manifest["inputs"][1] == {
        "role": "sources.general",
        "path": str(base / "manifest.json"),
        "bytes": (base / "manifest.json").stat().st_size,
        "sha256": sha256_of(base / "manifest.json"),
    }
    assert prepare.run(config, tmp_path / "new")["already_prepared"]


def test_another_preparation_of_the_folder_is_another_input(tmp_path: Path, base: Path) -> None:
    general = shutil.copytree(base, tmp_path / "general")
    config = configure(general, data={**SPLIT, "source": source(general)})
    assert prepare.run(config, tmp_path / "new")["counts"]["kept"] == 251
    prepare.run(configure(base.parent / "pairs.tsv"), general, overwrite=True)
    with pytest.raises(DataError, match=r"new: .*general/manifest\.json has changed since"):
        prepare.run(config, tmp_path / "new")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "manifest.json: no such file; check the path under"),
        (lambda folder: (folder / "config.yaml").touch(), "general: is a run; give the folder"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "manifest.json: damaged"),
        (lambda folder: (folder / "train.tgt.npy").unlink(), "train.tgt.npy: no such file; run"),
        (lambda folder: swap_ids(folder / "train.src.npy"), "train.src.npy: damaged, its content"),
        (lambda folder: (folder / "tgt.vocab.txt").unlink(), "tgt.vocab.txt: no such file"),
        (lambda folder: (folder / "test.src.txt").write_text("My cat.\n"), "test.src.txt: damaged"),
    ],
)
def test_a_damaged_folder_is_named(
    tmp_path: Path, base: Path, damage: Callable[[Path], object], message: str
) -> None:
    general = shutil.copytree(base, tmp_path / "general")
    damage(general)
    with pytest.raises(DataError, match=re.escape(message)) as error:
        prepare.run(configure(general, data={**SPLIT, "source": source(general)}), tmp_path / "new")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "new").exists()


def test_other_languages_are_an_error(base: Path) -> None:
    with pytest.raises(DataError, match="base: translates en-de, not between en and fr; give"):
        pairs(base, "en", "fr")


def test_some_pairs_must_be_left(tmp_path: Path) -> None:
    table = write_table(tmp_path / "pairs.tsv", PAIRS[:50])
    own = {"format": "manythings", "path": str(table)}
    with pytest.warns(NmtWarning, match="worthless"):
        prepare.run(configure(table, data={"dev": own, "test": own}), tmp_path / "base")
    with pytest.raises(DataError, match="no pair is left, dev and test of a prepared source"):
        prepare.run(configure(table, data={"source": source(tmp_path / "base")}), tmp_path / "new")
