"""`nmt prepare` from end to end: its files, its report, and the same result each time."""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.commands import prepare
from nmt.data.corpus import Corpus, read_sentences
from nmt.data.manifest import PREPARED_FILES, load_manifest
from nmt.data.splitting import sentence_key
from nmt.text.tokenizers import load_tokenizer
from nmt.text.vocabulary import Vocabulary
from tests.toy import configure, contents, sentence_pairs, write_table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "deu.txt", sentence_pairs())


@pytest.mark.parametrize("kind", ["words", "bpe", "unigram", "characters"])
def test_everything_is_there_and_fits_together(tmp_path: Path, table: Path, kind: str) -> None:
    config = configure(table, tokenizer={"kind": kind, "size": 60})
    folder = tmp_path / "toy"
    manifest = prepare.run(config, folder)
    assert load_manifest(folder) == {
        key: manifest[key] for key in manifest if key not in ("folder", "already_prepared")
    }
    assert {name: split["pairs"] for name, split in manifest["splits"].items()} == {
        "train": 488,
        "dev": 40,
        "test": 60,
    }
    for split in ("dev", "test"):
        src, tgt = (read_sentences(folder, split, side) for side in ("src", "tgt"))
        assert set(zip(src, tgt, strict=True)) <= set(sentence_pairs())
    for side, language in (("src", "en"), ("tgt", "de")):
        tokenizer = load_tokenizer(config.tokenizer, language, side, folder)  # type: ignore[arg-type]
        vocabulary = Vocabulary.load(folder / f"{side}.vocab.txt")
        assert len(vocabulary) == manifest["vocabulary"][side]["size"]
        assert manifest["tokenizers"][side] == tokenizer.signature
        assert manifest["vocabulary"][side]["coverage"] == 1
        for split in ("dev", "test"):
            lines = read_sentences(folder, split, side)
            sentences = getattr(Corpus.load(folder, split), side)
            assert [
                tokenizer.join(vocabulary.tokens(sentences[row])) for row in range(len(sentences))
            ] == lines
            assert manifest["splits"][split][side]["tokens"] == sentences.lengths.sum()
            assert manifest["splits"][split][side]["longest"] == sentences.lengths.max()
    assert manifest["ceiling"]["score"] == 100
    assert [*manifest["counts"]] == ["read", "kept", "dropped", "repaired", "unreadable_lines"]
    assert set(contents(folder)) <= PREPARED_FILES


def test_the_splits_share_no_sentence_and_the_report_says_so(tmp_path: Path, table: Path) -> None:
    folder = tmp_path / "toy"
    manifest = prepare.run(configure(table), folder)
    assert all(count == 0 for pair in manifest["overlap"].values() for count in pair.values())
    assert set(manifest["overlap"]) == {"train-dev", "train-test", "dev-test"}
    held_out = [
        {sentence_key(line) for line in read_sentences(folder, split, "src")}
        for split in ("dev", "test")
    ]
    assert held_out[0].isdisjoint(held_out[1])
    # Every source of this table stands there twice, so a random split puts most twins of test into
    # train.
    assert 0.6 < manifest["naive_leak"] < 1


def test_every_pair_is_accounted_for(tmp_path: Path, table: Path) -> None:
    with table.open("ab") as file:
        file.write(
            "one column\n\xff".encode("latin-1")
            + b"\n\tx\nThe dog sees the dog.\t Der Hund sieht den Hund.\n"
        )
    manifest = prepare.run(configure(table, data={"max_pairs": 500}), tmp_path / "toy")
    counts = manifest["counts"]
    nonzero = {reason: count for reason, count in counts["dropped"].items() if count}
    assert nonzero == {
        "too few columns": 1,
        "undecodable": 1,
        "empty source": 1,
        "exact duplicate": 1,
        "beyond max_pairs": 88,
    }
    assert counts["unreadable_lines"] == {"too few columns": [589], "undecodable": [590]}
    assert counts["repaired"] == {"control characters": 0, "white space": 1, "Unicode NFC": 0}
    assert counts["read"] == counts["kept"] + sum(counts["dropped"].values()) == 592
    assert counts["kept"] == sum(split["pairs"] for split in manifest["splits"].values()) == 500


def test_the_number_of_workers_changes_nothing(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.data.reading.CHUNK_ROWS", 50)
    monkeypatch.setattr("nmt.data.encoding.CHUNK_ROWS", 50)
    for workers in (1, 3):
        prepare.run(
            configure(table, tokenizer={"kind": "bpe", "size": 60}, data={"workers": workers}),
            tmp_path / str(workers),
        )
    assert contents(tmp_path / "1") == contents(tmp_path / "3")
    monkeypatch.undo()
    prepare.run(configure(table, tokenizer={"kind": "bpe", "size": 60}), tmp_path / "whole")
    assert contents(tmp_path / "1") == contents(tmp_path / "whole")


def test_the_order_of_the_input_changes_no_split(tmp_path: Path, table: Path) -> None:
    prepare.run(configure(table, data={"max_pairs": 400}), tmp_path / "one")
    pairs = sentence_pairs()
    random.Random(1).shuffle(pairs)
    prepare.run(configure(write_table(table, pairs), data={"max_pairs": 400}), tmp_path / "other")
    one, other = contents(tmp_path / "one"), contents(tmp_path / "other")
    differing = {name for name in one if one[name] != other[name]}
    assert all(name.startswith("train.") for name in differing), (
        "dev, test and vocabularies are the same byte for byte"
    )
    for side in ("src", "tgt"):
        sentences = [
            getattr(Corpus.load(tmp_path / name, "train"), side) for name in ("one", "other")
        ]
        sets = [sorted(tuple(each[row].tolist()) for row in range(len(each))) for each in sentences]
        assert sets[0] == sets[1]


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
    data = {
        "direction": "de-en",
        "max_pairs": 400,
        "split": {"dev": 40, "test": 60, "direction": "en-de"},
    }
    like = {"vocabulary": {"joint": joint, "like": str(tmp_path / "en-de")}}
    prepare.run(configure(table, data=data, **sections | like), tmp_path / "de-en")
    forward, backward = contents(tmp_path / "en-de"), contents(tmp_path / "de-en")
    opposite = {"src": "tgt", "tgt": "src"}
    assert {
        re.sub("src|tgt", lambda side: opposite[side[0]], name): text
        for name, text in backward.items()
    } == forward
    assert joint == (forward["src.vocab.txt"] == forward["tgt.vocab.txt"])
    data["split"] = {"dev": 40, "test": 60}
    prepare.run(configure(table, data=data, **sections), tmp_path / "other")
    assert read_sentences(tmp_path / "other", "dev", "tgt") != read_sentences(
        tmp_path / "en-de", "dev", "src"
    )


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """Line-aligned files for train, dev and test; dev shares a source with train."""
    sets = {
        "source": [
            ("Hi.", "Hallo!"),
            ("Run!", "Lauf!"),
            ("Stop!", "Halt!"),
            ("Stop!", "Halt!"),
            ("Who?", ""),
        ],
        "dev": [("hi", "Guten Tag!"), ("  Who?", "")],
        "test": [("Go.", "Geh."), ("Go.", "Geh.")],
    }
    for name, pairs in sets.items():
        for language, lines in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            (tmp_path / f"{name}.{language}").write_text(
                "".join(f"{line}\n" for line in lines), encoding="utf-8"
            )
    return {
        name: {
            "format": "lines",
            "files": {language: str(tmp_path / f"{name}.{language}") for language in ("en", "de")},
        }
        for name in sets
    }


def test_dev_and_test_files_are_used_whole_and_their_overlap_is_reported(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    manifest = prepare.run(configure(Path(), data=given), tmp_path / "toy")
    assert [split["pairs"] for split in manifest["splits"].values()] == [3, 2, 2]
    assert read_sentences(tmp_path / "toy", "dev", "src") == ["hi", "Who?"]
    assert read_sentences(tmp_path / "toy", "dev", "tgt") == ["Guten Tag!", ""]
    assert read_sentences(tmp_path / "toy", "test", "tgt") == ["Geh.", "Geh."]
    assert manifest["overlap"]["train-dev"] == {"src": 1, "tgt": 0}
    assert manifest["naive_leak"] is None
    assert [item["role"] for item in manifest["inputs"]] == [
        f"{name}.{end}" for name in given for end in ("en", "de")
    ]
    assert "1 between the splits: train-dev 1 source, 0 target" in prepare.summary(manifest)
    assert len(Corpus.load(tmp_path / "toy", "dev").tgt[1]) == 0


def test_the_summary_is_a_short_table(tmp_path: Path, table: Path) -> None:
    lines = prepare.summary(prepare.run(configure(table), tmp_path / "toy")).splitlines()
    assert len(lines) < 25
    assert max(map(len, lines)) < 132
    text = "\n".join(lines)
    for part in (
        "pairs read          588",
        "shared sentences    0 between the splits",
        "would leak a training sentence into",
        "best possible BLEU  100.00",
        str(tmp_path / "toy"),
    ):
        assert part in text


def test_text_is_utf8_whatever_the_locale(tmp_path: Path, table: Path) -> None:
    script = (
        "from pathlib import Path; from nmt.commands import prepare\n"
        "from nmt.config.load import load_config\n"
        f"prepare.run(load_config(Path({str(tmp_path / 'c.yaml')!r})))"
    )
    config = configure(table, data={"prepared": str(tmp_path / "toy")})
    (tmp_path / "c.yaml").write_text(json.dumps(config.to_dict()), encoding="utf-8")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run(
        [sys.executable, "-c", script], check=True, env=environment, cwd=Path(__file__).parents[2]
    )
    prepare.run(configure(table), tmp_path / "here")
    assert contents(tmp_path / "toy") == contents(tmp_path / "here")
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
