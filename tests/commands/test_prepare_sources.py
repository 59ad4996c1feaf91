"""`nmt prepare` with several files, several sources, and many shards."""

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.commands import prepare
from nmt.data import corpus
from nmt.data.corpus import Corpus, read_sentences
from nmt.data.splitting import sentence_key
from nmt.errors import DataError, NmtError
from nmt.extras.runs import check as doctor
from nmt.text.vocabulary import Vocabulary
from tests.toy import configure, contents, sentence_pairs, write_table

PAIRS = sentence_pairs()
Pairs = list[tuple[str, str]]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "deu.txt", PAIRS)


@pytest.fixture
def pair_of_sources(tmp_path: Path) -> dict[str, Any]:
    """A large source, and a small one that repeats a tenth of it and shares sentences with it."""
    small = [
        *PAIRS[:20],
        *((src, f"{tgt} Ja.") for src, tgt in PAIRS[20:40]),
        *((f"{src} Yes.", tgt) for src, tgt in PAIRS[40:60]),
    ]
    small += [(f"Number {number} is free.", f"Nummer {number} ist frei.") for number in range(40)]
    paths = (
        write_table(tmp_path / "large.txt", PAIRS[:500]),
        write_table(tmp_path / "small.txt", small),
    )
    return {path.stem: {"path": str(path), "format": "manythings"} for path in paths}


def mixed(sources: dict[str, Any], **data: Any) -> Any:
    return configure(
        Path(), data={"source": {}, "sources": sources, **data}, tokenizer={"kind": "characters"}
    )


def training_pairs(folder: Path) -> Pairs:
    train, (src, tgt) = (
        Corpus.load(folder, "train"),
        (Vocabulary.load(folder / f"{side}.vocab.txt") for side in ("src", "tgt")),
    )
    return [
        ("".join(src.tokens(train.src[row])), "".join(tgt.tokens(train.tgt[row])))
        for row in range(len(train))
    ]


def test_parts_of_a_file_are_prepared_as_the_whole(tmp_path: Path, table: Path) -> None:
    prepare.run(configure(table), tmp_path / "whole")
    lines = table.read_bytes().splitlines(keepends=True)
    (tmp_path / "parts").mkdir()
    for number, start in enumerate(range(0, len(lines), 100)):
        (tmp_path / "parts" / f"{number}.gz").write_bytes(
            gzip.compress(b"".join(lines[start : start + 100]))
        )
    pattern = {"format": "manythings", "path": str(tmp_path / "parts" / "*.gz")}
    manifest = prepare.run(configure(table, data={"source": pattern}), tmp_path / "from-parts")
    assert contents(tmp_path / "whole") == contents(tmp_path / "from-parts")
    assert [each["role"] for each in manifest["inputs"]] == [
        f"source {number}" for number in range(1, len(lines) // 100 + 2)
    ]
    assert prepare.run(configure(table, data={"source": pattern}), tmp_path / "from-parts")[
        "already_prepared"
    ]
    (tmp_path / "parts" / "5.gz").unlink()
    with pytest.raises(DataError, match=r"it was made from 6 input files, now there are 5"):
        prepare.run(configure(table, data={"source": pattern}), tmp_path / "from-parts")


def test_a_bad_line_of_a_part_is_named_with_its_file(tmp_path: Path) -> None:
    paths = [
        write_table(tmp_path / f"{number}.txt", PAIRS[number * 200 : number * 200 + 200])
        for number in (0, 1)
    ]
    with paths[1].open("ab") as file:
        file.write(b"one column\n")
    source = {"format": "manythings", "path": [str(path) for path in paths]}
    manifest = prepare.run(configure(Path(), data={"source": source}), tmp_path / "toy")
    assert manifest["counts"]["unreadable_lines"] == {"too few columns": [f"{paths[1]}:201"]}
    assert f"(line {paths[1]}:201)" in prepare.summary(manifest)
    paths[0].write_bytes(gzip.compress(paths[0].read_bytes())[:-9])
    with pytest.raises(DataError, match=r"0\.txt: is truncated or damaged"):
        prepare.run(configure(Path(), data={"source": source}), tmp_path / "other")


@pytest.mark.parametrize("kind", ["jsonl", "lines"])
def test_other_formats_give_the_same_data(tmp_path: Path, table: Path, kind: str) -> None:
    prepare.run(configure(table), tmp_path / "table")
    source: dict[str, Any] = {"format": kind}
    if kind == "jsonl":
        source["path"] = str(tmp_path / "pairs.jsonl")
        lines = (json.dumps({"translation": {"en": src, "de": tgt}}) for src, tgt in PAIRS)
        (tmp_path / "pairs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    else:
        source["files"] = {
            language: [str(tmp_path / f"{part}.{language}") for part in "ab"]
            for language in ("en", "de")
        }
        for part, pairs in (("a", PAIRS[:100]), ("b", PAIRS[100:])):
            for language, texts in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
                (tmp_path / f"{part}.{language}").write_text(
                    "".join(f"{text}\n" for text in texts), encoding="utf-8"
                )
    prepare.run(configure(Path(), data={"source": source}), tmp_path / kind)
    assert contents(tmp_path / "table") == contents(tmp_path / kind)


def test_sources_without_shares_are_one_corpus(tmp_path: Path, table: Path) -> None:
    half = len(PAIRS) // 2
    paths = (
        write_table(tmp_path / "a.txt", PAIRS[:half]),
        write_table(tmp_path / "b.txt", PAIRS[half:]),
    )
    manifest = prepare.run(
        mixed({path.stem: {"path": str(path)} for path in paths}), tmp_path / "two"
    )
    prepare.run(configure(table, tokenizer={"kind": "characters"}), tmp_path / "one")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    counts = manifest["counts"]["sources"]
    assert [counts[name]["read"] for name in "ab"] == [half, len(PAIRS) - half]
    for split, key in (("train", "training"), ("dev", "dev"), ("test", "test")):
        assert sum(source[key] for source in counts.values()) == manifest["splits"][split]["pairs"]
    assert [each["role"] for each in manifest["inputs"]] == ["sources.a", "sources.b"]
    assert "  a                 294 read, 294 kept; " in prepare.summary(manifest)


def test_shares_repeat_small_sources_and_sample_large_ones(
    tmp_path: Path, pair_of_sources: dict[str, Any]
) -> None:
    prepare.run(mixed(pair_of_sources), tmp_path / "plain")
    plain = training_pairs(tmp_path / "plain")
    pair_of_sources["small"]["share"] = 0.5
    manifest = prepare.run(mixed(pair_of_sources), tmp_path / "mixed")
    counts = manifest["counts"]["sources"]
    pairs = training_pairs(tmp_path / "mixed")
    assert len(pairs) == len(plain) == manifest["splits"]["train"]["pairs"]
    assert set(pairs) < set(plain)
    assert abs(counts["small"]["training"] - len(pairs) / 2) <= 1
    copies = [pairs.count(pair) for pair in dict.fromkeys(plain)][-counts["small"]["train_pairs"] :]
    assert max(copies) - min(copies) <= 1
    assert sum(copies) == counts["small"]["training"]
    assert re.search(
        r"training pairs \((50.0|49.9|50.1)%, each [\d.]+ times on average\)",
        prepare.summary(manifest),
    )
    prepare.run(mixed(pair_of_sources), tmp_path / "again")
    assert contents(tmp_path / "mixed") == contents(tmp_path / "again")


def test_a_temperature_makes_sources_more_equal(
    tmp_path: Path, pair_of_sources: dict[str, Any]
) -> None:
    parts = []
    for temperature in (1, 2, 1000):
        manifest = prepare.run(
            mixed(pair_of_sources, temperature=temperature), tmp_path / str(temperature)
        )
        counts = manifest["counts"]["sources"]
        parts.append(counts["small"]["training"] / manifest["splits"]["train"]["pairs"])
        large, small = counts["large"]["train_pairs"], counts["small"]["train_pairs"]
        expected = small ** (1 / temperature) / (
            large ** (1 / temperature) + small ** (1 / temperature)
        )
        assert parts[-1] == pytest.approx(expected, abs=0.01)
    assert parts == sorted(parts)


def test_no_sentence_leaks_across_sources(tmp_path: Path, pair_of_sources: dict[str, Any]) -> None:
    for name, split in (("all", {}), ("small", {"source": "small", "dev": 5, "test": 5})):
        config = mixed(pair_of_sources, temperature=3, split={"dev": 20, "test": 20, **split})
        manifest = prepare.run(config, tmp_path / name)
        assert all(count == 0 for pair in manifest["overlap"].values() for count in pair.values())
        keys = [
            {sentence_key(text) for text in read_sentences(tmp_path / name, part, "src")}
            for part in ("dev", "test")
        ]
        assert keys[0].isdisjoint(keys[1])
    counts = manifest["counts"]["sources"]
    assert (
        counts["large"]["dev"],
        counts["large"]["test"],
        counts["small"]["dev"],
        counts["small"]["test"],
    ) == (0, 0, 5, 5)


def test_a_source_of_nothing_new_cannot_have_a_share(tmp_path: Path) -> None:
    paths = write_table(tmp_path / "a.txt", PAIRS), write_table(tmp_path / "b.txt", PAIRS[:50])
    sources: dict[str, Any] = {path.stem: {"path": str(path)} for path in paths}
    sources["b"]["share"] = 0.1
    with pytest.raises(
        DataError,
        match=r"data\.sources\.b\.share: none of its pairs is left for training; remove the source",
    ):
        prepare.run(mixed(sources), tmp_path / "toy")


def test_shards_hold_the_same_data(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = prepare.run(configure(table), tmp_path / "one")
    monkeypatch.setattr(corpus, "SHARD_SENTENCES", 100)
    many = prepare.run(configure(table), tmp_path / "many")
    assert len([name for name in many["files"] if name.startswith("train-")]) == 5 * 4
    assert training_pairs(tmp_path / "one") == training_pairs(tmp_path / "many")
    assert one["splits"] == many["splits"]
    doctor.command(tmp_path / "many")
    assert prepare.run(configure(table), tmp_path / "many")["already_prepared"]
    prepare.run(
        configure(table, tokenizer={"kind": "characters"}), tmp_path / "many", overwrite=True
    )


def test_doctor_reads_large_files_too(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare.run(configure(table), tmp_path / "toy")
    path = tmp_path / "toy" / "train.src.npy"
    ids = np.load(path)
    random.Random(1).shuffle(ids)
    np.save(path, ids)
    for module in ("corpus", "manifest"):
        monkeypatch.setattr(f"nmt.data.{module}.MAX_HASHED_BYTES", 1000)
    Corpus.load(tmp_path / "toy", "train")
    with pytest.raises(NmtError, match=r"^damaged: contents$"):
        doctor.command(tmp_path / "toy")
