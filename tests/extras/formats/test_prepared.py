"""nmt.extras.formats.prepared: a prepared folder gives its training pairs again, and keeps its dev
and test sets from training.
"""

from pathlib import Path
from typing import Any

import pytest

from nmt.commands import prepare
from nmt.config.schema import SourceConfig
from nmt.data.corpus import Corpus, read_sentences
from nmt.data.formats import open_source
from nmt.data.manifest import load_manifest
from nmt.data.splitting import sentence_key
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


def held_out(folder: Path) -> list[tuple[str, str]]:
    return [
        pair
        for split in ("dev", "test")
        for pair in zip(*(read_sentences(folder, split, side) for side in SIDES), strict=True)
    ]


def pairs(folder: Path, src: str = "en", tgt: str = "de") -> list[tuple[str, str]]:
    files = {"": [folder / "manifest.json"]}
    (source,) = open_source(SourceConfig(format="prepared"), files, (src, tgt))
    return [pair for row in source.rows() if (pair := source.pair(row))]


@pytest.mark.parametrize(
    ("kind", "lowercase"), [("words", False), ("bpe", False), ("bpe", True), ("characters", True)]
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
@pytest.mark.parametrize("split_direction", ["en-de", "de-en"])
def test_no_sentence_of_its_dev_or_test_is_trained_on(
    tmp_path: Path, base: Path, direction: str, split_direction: str
) -> None:
    dev, *_, test = held_out(base)
    inside = [
        (dev[0].upper(), "Noch ein Satz."),
        ("Something else", test[1].replace(".", " !")),
        test,
        test,
    ]
    # A source that is the target of a held-out pair is no leak.
    outside = [(f"My {n} cats", f"Meine {n} Katzen") for n in range(50)] + [(test[1], "Ja, genau")]
    table = write_table(tmp_path / "memory.tsv", inside + outside)
    sources = {
        "memory": {"format": "tsv", "path": str(table), "columns": {"en": 1, "de": 2}},
        "general": {"format": "prepared", "path": str(base), "share": 0.5},
    }
    split = {"dev": 5, "test": 5, "source": "memory", "direction": split_direction}
    data = {"source": {}, "sources": sources, "direction": direction, "split": split}
    config = configure(table, data=data)
    manifest = prepare.run(config, tmp_path / "new", progress=False)
    counts = manifest["counts"]
    assert counts["read"] == 55 + 251
    assert {name: n for name, n in counts["dropped"].items() if n} == {
        "in dev or test of another": 4
    }
    assert counts["read"] == counts["kept"] + 4
    assert "4: 4 in dev or test of another" in prepare.summary(manifest)
    assert [counts["sources"][name]["kept"] for name in sources] == [51, 251]
    is_opposite = direction == "de-en"
    known = pairs(tmp_path / "new", "en", "de") + [
        pair[::-1] if is_opposite else pair for pair in held_out(tmp_path / "new")
    ]
    for side in (0, 1):
        keys = {sentence_key(pair[side]) for pair in held_out(base)}
        assert keys.isdisjoint(sentence_key(pair[side]) for pair in known)
    assert manifest["inputs"][1] == {
        "role": "sources.general",
        "path": str(base / "manifest.json"),
        "bytes": (base / "manifest.json").stat().st_size,
        "sha256": sha256_of(base / "manifest.json"),
    }
    assert prepare.run(config, tmp_path / "new")["already_prepared"]
