"""`nmt prepare` from end to end: its files, its report, and the same result each time."""

import gzip
import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.commands import prepare
from nmt.data import corpus
from nmt.data.corpus import Corpus, read_sentences, restore_texts
from nmt.data.manifest import PREPARED_FILES, load_manifest
from nmt.data.splitting import sentence_key
from nmt.errors import DataError, NmtError
from nmt.extras.runs import check as doctor
from nmt.lines import write_lines
from nmt.text.tokenizers import load_tokenizer
from nmt.text.vocabulary import Vocabulary
from tests.conftest import ROOT, in_one_process
from tests.evaluation.test_scores import has_mecab
from tests.toy import configure, contents, sentence_pairs, write_table

PAIRS = sentence_pairs()
Toy = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """The prepared folder of the table, and what `prepare.run` returns."""
    base = tmp_path_factory.mktemp("base")
    table = write_table(base / "deu.txt", PAIRS)
    return base / "toy", prepare.run(configure(table), base / "toy")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "deu.txt", PAIRS)


def letters(texts: Iterable[str]) -> set[str]:
    """The letters and digits of each text, by which `nmt prepare` compares them."""
    return {"".join(filter(str.isalnum, text.casefold())) for text in texts}


@pytest.mark.parametrize("kind", ["words", "bpe", "unigram", "characters"])
def test_everything_is_there_and_fits_together(tmp_path: Path, table: Path, kind: str) -> None:
    config = configure(table, tokenizer={"kind": kind, "size": 60})
    folder = tmp_path / "toy"
    manifest = prepare.run(config, folder)
    assert {**load_manifest(folder), "folder": str(folder), "already_prepared": False} == manifest
    n_pairs = {name: split["pairs"] for name, split in manifest["splits"].items()}
    assert n_pairs == {"train": 488, "dev": 40, "test": 60}
    for split in ("dev", "test"):
        src, tgt = (read_sentences(folder, split, side) for side in ("src", "tgt"))
        assert set(zip(src, tgt, strict=True)) <= set(PAIRS)
    for side, language in (("src", "en"), ("tgt", "de")):
        tokenizer = load_tokenizer(config.tokenizer, language, side, folder)  # type: ignore[arg-type]
        vocabulary = Vocabulary.load(folder / f"{side}.vocab.txt")
        assert len(vocabulary) == manifest["vocabulary"][side]["size"]
        assert manifest["tokenizers"][side] == tokenizer.signature
        assert manifest["vocabulary"][side]["coverage"] == 1
        texts = [
            letters(restore_texts(getattr(Corpus.load(folder, split), side), tokenizer, vocabulary))
            for split in n_pairs
        ]
        assert sum(map(len, texts)) == len(set().union(*texts))  # no two splits share a sentence
        for split in ("dev", "test"):
            lines = read_sentences(folder, split, side)
            sentences = getattr(Corpus.load(folder, split), side)
            assert [*restore_texts(sentences, tokenizer, vocabulary)] == lines
            assert manifest["splits"][split][side]["tokens"] == sentences.lengths.sum()
            assert manifest["splits"][split][side]["longest"] == sentences.lengths.max()
    assert manifest["ceiling"]["score"] == 100
    assert [*manifest["counts"]] == ["read", "kept", "dropped", "repaired", "unreadable_lines"]
    assert set(contents(folder)) <= PREPARED_FILES


@pytest.mark.parametrize(("direction", "is_told"), [("en-ja", True), ("ja-en", False)])
def test_a_missing_package_for_bleu_is_named(
    tmp_path: Path, table: Path, recwarn: pytest.WarningsRecorder, direction: str, is_told: bool
) -> None:
    prepare.run(configure(table, data={"direction": direction}), tmp_path / "toy")
    told = 'the words of Japanese need MeCab (pip install "nmt[ja]")'
    assert any(told in str(each.message) for each in recwarn) == (is_told and not has_mecab("ja"))


def test_every_pair_is_accounted_for(tmp_path: Path, table: Path) -> None:
    with table.open("ab") as file:
        file.write(
            b"one column\n\xff\n\tx\nx\t \n" + b"a" * 1001 + b"\tx\nHi.\t" + b"a" * 99 + b"\n\n"
        )
        file.write("The king\u200b sees the dog.\t Der Ko\u0308nig sieht den Hund.\n".encode())
    manifest = prepare.run(configure(table, data={"max_pairs": 500}), tmp_path / "toy")
    counts = manifest["counts"]
    nonzero = {reason: count for reason, count in counts["dropped"].items() if count}
    assert nonzero == {
        "too few columns": 1,
        "undecodable": 1,
        "empty source": 1,
        "empty target": 1,
        "too long": 1,
        "length ratio": 1,
        "exact duplicate": 1,
        "beyond max_pairs": 88,
    }
    assert counts["unreadable_lines"] == {
        "too few columns": [589],
        "undecodable": [590],
        "empty source": [591],
        "empty target": [592],
        "too long": [593],
        "length ratio": [594],
    }
    assert counts["repaired"] == {"control characters": 1, "white space": 1, "Unicode NFC": 1}
    assert counts["read"] == counts["kept"] + sum(counts["dropped"].values()) == 595  # one is blank
    assert counts["kept"] == sum(split["pairs"] for split in manifest["splits"].values()) == 500


def test_the_number_of_workers_changes_nothing(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = {"kind": "bpe", "size": 60}
    prepare.run(configure(table, tokenizer=tokenizer), tmp_path / "whole")
    monkeypatch.setattr("nmt.data.reading.CHUNK_ROWS", 50)
    monkeypatch.setattr("nmt.data.encoding.CHUNK_ROWS", 50)
    for workers in (1, 3):
        folder = tmp_path / str(workers)
        prepare.run(configure(table, tokenizer=tokenizer, data={"workers": workers}), folder)
        assert contents(folder) == contents(tmp_path / "whole")


def test_rare_words_are_unknown_and_coverage_says_how_many(tmp_path: Path, table: Path) -> None:
    config = configure(table, tokenizer={"kind": "words"}, vocabulary={"max_size": 10})
    manifest = prepare.run(config, tmp_path / "toy")
    assert manifest["vocabulary"]["src"]["size"] == 10
    dev = Corpus.load(tmp_path / "toy", "dev").src
    unknown = np.mean(np.concatenate([dev[row] for row in range(len(dev))]) == 1)
    assert manifest["vocabulary"]["src"]["coverage"] == pytest.approx(1 - unknown)
    assert 0.3 < unknown < 0.8


def test_lower_casing_keeps_the_references_and_lowers_the_ceiling(
    tmp_path: Path, table: Path
) -> None:
    manifest = prepare.run(
        configure(table, tokenizer={"kind": "characters", "lowercase": True}), tmp_path / "toy"
    )
    assert any("Der" in line for line in read_sentences(tmp_path / "toy", "dev", "tgt"))
    assert manifest["ceiling"]["score"] < manifest["ceiling"]["score_without_case"] == 100
    assert "(100.00 without case)" in prepare.summary(manifest)


@pytest.mark.parametrize("joint", [False, True])
def test_both_directions_can_have_the_same_split_and_vocabularies(
    tmp_path: Path, table: Path, joint: bool
) -> None:
    sections = {"tokenizer": {"kind": "bpe", "size": 60}, "vocabulary": {"joint": joint}}
    prepare.run(configure(table, data={"max_pairs": 400}, **sections), tmp_path / "en-de")
    split = {"dev": 40, "test": 60, "direction": "en-de"}
    data = {"direction": "de-en", "max_pairs": 400, "split": split}
    like = {"vocabulary": {"joint": joint, "like": str(tmp_path / "en-de")}}
    prepare.run(configure(table, data=data, **sections | like), tmp_path / "de-en")
    forward, backward = contents(tmp_path / "en-de"), contents(tmp_path / "de-en")
    opposite = {"src": "tgt", "tgt": "src"}
    renamed = {re.sub("src|tgt", lambda side: opposite[side[0]], name): name for name in backward}
    assert {name: backward[old] for name, old in renamed.items()} == forward
    assert joint == (forward["src.vocab.txt"] == forward["tgt.vocab.txt"])
    data["split"] = {"dev": 40, "test": 60}
    prepare.run(configure(table, data=data, **sections), tmp_path / "other")
    assert contents(tmp_path / "other")["dev.tgt.txt"] != forward["dev.src.txt"]


@pytest.mark.parametrize("joint", [False, True])
def test_vocabularies_of_another_folder_can_be_extended(
    tmp_path: Path, table: Path, joint: bool
) -> None:
    sections = {"tokenizer": {"kind": "bpe", "size": 60}, "vocabulary": {"joint": joint}}
    prepare.run(configure(table, **sections), tmp_path / "old")
    pairs = [(f"{src} {{{{}}}}\u20ac", f"{tgt} %") for src, tgt in PAIRS[:200]]
    write_table(table, [*pairs, *((f"{src} \u00a7", tgt) for src, tgt in PAIRS[200:210])])
    new = (
        {"src": "{}\u20ac", "tgt": "%"} if not joint else dict.fromkeys(("src", "tgt"), "{}%\u20ac")
    )
    for extend, added in ((20, new), (0, {"src": "", "tgt": ""})):
        keys = {"joint": joint, "like": str(tmp_path / "old"), "extend": extend}
        config = configure(table, **{**sections, "vocabulary": keys})
        manifest = prepare.run(config, tmp_path / f"new{extend}")
        for side in ("src", "tgt"):
            name = f"{side}.vocab.txt"
            old, longer = ((tmp_path / each / name).read_text() for each in ("old", f"new{extend}"))
            assert longer.startswith(old)
            tokens = [line.split("\t")[0] for line in longer[len(old) :].splitlines()]
            assert (tokens[:1] == ["{"]) == ("{" in added[side])
            assert sorted(tokens) == sorted(added[side])
            assert manifest["vocabulary"][side].get("new") == (len(tokens) if extend else None)
        assert (f" ({len(added['src'])} new), " in prepare.summary(manifest)) == bool(extend)


def test_dev_and_test_files_are_used_whole_and_their_overlap_is_reported(tmp_path: Path) -> None:
    """dev shares a source with train."""
    stop = ("Stop!", "Halt!")
    sets = {
        "source": [("Hi.", "Hallo!"), ("Run!", "Lauf!"), stop, stop, ("Who?", "")],
        "dev": [("hi", "Guten Tag!"), ("  Who?", "")],
        "test": [("Go.", "Geh."), ("Go.", "Geh.")],
    }
    data: dict[str, Any] = {}
    for name, pairs in sets.items():
        files = {language: tmp_path / f"{name}.{language}" for language in ("en", "de")}
        for path, lines in zip(files.values(), zip(*pairs, strict=True), strict=True):
            write_lines(path, lines)
        data[name] = {"format": "lines", "files": files}
    manifest = prepare.run(configure(Path(), data=data), tmp_path / "toy")
    assert [split["pairs"] for split in manifest["splits"].values()] == [3, 2, 2]
    assert read_sentences(tmp_path / "toy", "dev", "src") == ["hi", "Who?"]
    assert read_sentences(tmp_path / "toy", "dev", "tgt") == ["Guten Tag!", ""]
    assert read_sentences(tmp_path / "toy", "test", "tgt") == ["Geh.", "Geh."]
    assert manifest["overlap"]["train-dev"] == {"src": 1, "tgt": 0}
    assert manifest["naive_leak"] is None
    assert [item["role"] for item in manifest["inputs"]] == [
        f"{name}.{end}" for name in sets for end in ("en", "de")
    ]
    assert "1 between the splits: train-dev 1 source, 0 target" in prepare.summary(manifest)
    assert "read as             a line in each file\n" in prepare.summary(manifest)
    table = {"source": "2 columns", "dev": manifest["read_as"]["dev"]}
    assert "read as             source: 2 columns; dev: a line in each file\n" in prepare.summary(
        {**manifest, "read_as": table}
    )
    assert len(Corpus.load(tmp_path / "toy", "dev").tgt[1]) == 0


def test_the_summary_is_a_short_table(toy: Toy) -> None:
    zero = {"src": 0, "tgt": 0}  # tests/data/test_splitting.py has the property
    assert toy[1]["overlap"] == {"train-dev": zero, "train-test": zero, "dev-test": zero}
    # Every source of this table stands there twice, so a random split puts most twins of test into
    # train.
    assert 0.6 < toy[1]["naive_leak"] < 1
    text = prepare.summary(toy[1])
    assert len(text.splitlines()) < 25
    assert max(map(len, text.splitlines())) < 132
    for part in (
        "pairs read          588",
        "read as             2 columns separated by tabs",
        "shared sentences    0 between the splits",
        "would leak a training sentence into",
        "best possible BLEU  100.00",
        str(toy[0]),
    ):
        assert part in text


def test_text_is_utf8_whatever_the_locale(tmp_path: Path, table: Path, toy: Toy) -> None:
    config = configure(table, data={"prepared": str(tmp_path / "toy")})
    (tmp_path / "c.yaml").write_text(json.dumps(config.to_dict()), encoding="utf-8")
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    in_one_process([["prepare", "-c", "c.yaml"]], tmp_path, PYTHONPATH=str(ROOT), **locale)
    assert contents(tmp_path / "toy") == contents(toy[0])
    assert "König" in (tmp_path / "toy" / "dev.tgt.txt").read_text(encoding="utf-8")


def test_progress_bars_are_optional(
    tmp_path: Path, table: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    prepare.run(configure(table), tmp_path / "quiet", progress=False)
    assert capfd.readouterr() == ("", "")
    prepare.run(configure(table), tmp_path / "loud", progress=True)
    output, errors = capfd.readouterr()
    assert output == ""
    assert "read" in errors
    assert "tokenize" in errors


# Several files, several sources, and many shards


@pytest.fixture
def pair_of_sources(tmp_path: Path) -> dict[str, Any]:
    """A large source, and a small one that repeats a tenth of it and shares sentences with it."""
    small = [
        *PAIRS[:20],
        *((src, f"{tgt} Ja.") for src, tgt in PAIRS[20:40]),
        *((f"{src} Yes.", tgt) for src, tgt in PAIRS[40:60]),
        *((f"Number {number} is free.", f"Nummer {number} ist frei.") for number in range(40)),
    ]
    return write_sources(tmp_path, large=PAIRS[:500], small=small)


def write_sources(folder: Path, **sources: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        name: {"path": str(write_table(folder / f"{name}.txt", pairs))}
        for name, pairs in sources.items()
    }


def mixed(sources: dict[str, Any], **data: Any) -> Any:
    return configure(Path(), data={"source": {}, "sources": sources, **data})


def training_pairs(folder: Path) -> list[tuple[str, str]]:
    train = Corpus.load(folder, "train")
    src, tgt = (Vocabulary.load(folder / f"{side}.vocab.txt") for side in ("src", "tgt"))
    return [
        ("".join(src.tokens(train.src[row])), "".join(tgt.tokens(train.tgt[row])))
        for row in range(len(train))
    ]


def test_parts_of_a_file_are_prepared_as_the_whole(tmp_path: Path, toy: Toy) -> None:
    (tmp_path / "parts").mkdir()
    for number in range(6):
        part = write_table(tmp_path / "part.txt", PAIRS[100 * number : 100 * number + 100])
        (tmp_path / "parts" / f"{number}.gz").write_bytes(gzip.compress(part.read_bytes()))
    pattern = {"format": "manythings", "path": str(tmp_path / "parts" / "*.gz")}
    config = configure(Path(), data={"source": pattern})
    manifest = prepare.run(config, tmp_path / "from-parts")
    assert contents(toy[0]) == contents(tmp_path / "from-parts")
    roles = [f"source {number}" for number in range(1, 7)]
    assert [each["role"] for each in manifest["inputs"]] == roles
    assert prepare.run(config, tmp_path / "from-parts")["already_prepared"]
    (tmp_path / "parts" / "5.gz").unlink()
    with pytest.raises(DataError, match=r"it was made from 6 input files, now there are 5"):
        prepare.run(config, tmp_path / "from-parts")


def test_a_bad_line_of_a_part_is_named_with_its_file(tmp_path: Path) -> None:
    parts = (PAIRS[:200], PAIRS[200:400])
    paths = [write_table(tmp_path / f"{i}.txt", part) for i, part in enumerate(parts)]
    with paths[1].open("ab") as file:
        file.write(b"one column\n")
    source = {"format": "manythings", "path": [str(path) for path in paths]}
    manifest = prepare.run(configure(Path(), data={"source": source}), tmp_path / "toy")
    assert manifest["counts"]["unreadable_lines"] == {"too few columns": [f"{paths[1]}:201"]}
    assert f"(at {paths[1]}:201)" in prepare.summary(manifest)


def test_sources_without_shares_are_one_corpus(tmp_path: Path, toy: Toy) -> None:
    half = len(PAIRS) // 2
    sources = write_sources(tmp_path, a=PAIRS[:half], b=PAIRS[half:])
    manifest = prepare.run(mixed(sources), tmp_path / "two")
    assert contents(toy[0]) == contents(tmp_path / "two")
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
    for temperature in (2, 1000):
        manifest = prepare.run(
            mixed(pair_of_sources, temperature=temperature), tmp_path / str(temperature)
        )
        counts = manifest["counts"]["sources"]
        parts.append(counts["small"]["training"] / manifest["splits"]["train"]["pairs"])
        large, small = counts["large"]["train_pairs"], counts["small"]["train_pairs"]
        weights = [count ** (1 / temperature) for count in (large, small)]
        assert parts[-1] == pytest.approx(weights[1] / sum(weights), abs=0.01)
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
    held_out = {name: (count["dev"], count["test"]) for name, count in counts.items()}
    assert held_out == {"large": (0, 0), "small": (5, 5)}


def test_shards_hold_the_same_data(
    tmp_path: Path, table: Path, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "SHARD_SENTENCES", 100)
    many = prepare.run(configure(table), tmp_path / "many")
    assert len([name for name in many["files"] if name.startswith("train-")]) == 5 * 4
    assert training_pairs(toy[0]) == training_pairs(tmp_path / "many")
    assert toy[1]["splits"] == many["splits"]
    doctor.command(tmp_path / "many")
    assert prepare.run(configure(table), tmp_path / "many")["already_prepared"]
    prepare.run(configure(table), tmp_path / "many", overwrite=True)


def test_doctor_reads_large_files_too(
    tmp_path: Path, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(toy[0], tmp_path / "toy")
    path = folder / "train.src.npy"
    np.save(path, np.load(path)[::-1])
    for module in ("corpus", "manifest"):
        monkeypatch.setattr(f"nmt.data.{module}.MAX_HASHED_BYTES", 1000)
    Corpus.load(folder, "train")
    with pytest.raises(NmtError, match=r"^damaged: contents$"):
        doctor.command(folder)
