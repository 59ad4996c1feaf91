"""The lexicon: links against a count by hand, and its file."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import ModelConfig
from nmt.data.batches import build_batch
from nmt.data.corpus import Corpus
from nmt.errors import DataError
from nmt.extras.lexicon import command as module
from nmt.extras.lexicon.command import LinkCounts, build_lexicon, count_links
from nmt.extras.lexicon.lexicon import (
    HEADER,
    Entry,
    Lexicon,
)
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, Vocabulary
from tests.toy import sequences

ENTRIES = {"dog": [Entry("Hund", 0.75, 3), Entry("<unk>", 0.25, 1)], "￭!": [Entry("￭!", 1.0, 2)]}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), max_size=60), st.integers(1, 7))
def test_links_are_counted_in_any_portions(pairs: list[tuple[int, int]], portion: int) -> None:
    links = LinkCounts(7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_PENDING", 10)
        for start in range(0, len(pairs), portion):
            links.add(*np.array(pairs[start : start + portion], np.int64).T)
    src, tgt, counts = (column.tolist() for column in links.triples())
    assert dict(zip(zip(src, tgt, strict=True), counts, strict=True)) == Counter(pairs)
    assert list(zip(src, [-count for count in counts], tgt, strict=True)) == sorted(
        (one, -count, other) for (one, other), count in Counter(pairs).items()
    )


def test_probabilities_are_relative_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    src, tgt = (
        Vocabulary.build({"dog": 3, "cat": 2}),
        Vocabulary.build({"Hund": 4, "Katze": 3, "Tier": 2}),
    )
    links = LinkCounts(len(tgt))
    dog, cat = src.ids(["dog", "cat"])
    hund, katze, tier = tgt.ids(["Hund", "Katze", "Tier"])
    links.add(np.array([dog] * 8), np.array([hund] * 5 + [tier] * 2 + [katze]))
    links.add(np.array([cat, 1]), np.array([katze, 1]))
    monkeypatch.setattr(module, "MAX_TRANSLATIONS", 2)
    assert build_lexicon(links, src, tgt).entries == {
        "<unk>": [Entry("<unk>", 1.0, 1)],
        "dog": [Entry("Hund", 5 / 8, 5), Entry("Tier", 2 / 8, 2)],
        "cat": [Entry("Katze", 1.0, 1)],
    }
    monkeypatch.setattr(module, "MIN_PROBABILITY", 0.5)
    assert build_lexicon(links, src, tgt).entries["dog"] == [Entry("Hund", 5 / 8, 5)]


def test_a_token_is_linked_to_the_most_attended_source_token() -> None:
    torch.manual_seed(1)
    config = {"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 16}}
    model = Seq2Seq(ModelConfig.model_validate(config), 9, 11).eval()
    random = np.random.default_rng(1)
    pairs = [
        (random.integers(4, 9, int(n)).tolist(), random.integers(4, 11, int(n) + 1).tolist())
        for n in (3, 1, 4, 3, 6)
    ]
    expected: Counter[tuple[int, int]] = Counter()
    for src, tgt in pairs:  # one at a time, so that nothing is padded
        batch = build_batch([src], [tgt])
        weights = model(batch.src, batch.src_lengths, batch.tgt_in).attention[0].detach().numpy()
        read = [*src, EOS]
        expected.update(
            (read[row.argmax()], token)
            for row, token in zip(weights, tgt, strict=False)
            if row.argmax() < len(src)
        )
    corpus = Corpus(*map(sequences, zip(*pairs, strict=True)))
    links = LinkCounts(11)
    count_links(model, corpus, np.arange(len(pairs)), links, 1)
    src_ids, tgt_ids, counts = (column.tolist() for column in links.triples())
    assert dict(zip(zip(src_ids, tgt_ids, strict=True), counts, strict=True)) == expected
    assert expected


def test_file(tmp_path: Path) -> None:
    path = tmp_path / "lexicon.tsv"
    Lexicon(ENTRIES).save(path)
    assert (
        path.read_text(encoding="utf-8")
        == f"{HEADER}\ndog\tHund\t0.7500\t3\ndog\t<unk>\t0.2500\t1\n￭!\t￭!\t1.0000\t2\n"
    )
    assert Lexicon.load(path).entries == ENTRIES
    path.write_bytes(
        path.read_bytes().replace(b"\n", b"\r\n") + b"dog\tDogge\t0.9\t0\r\n"
    )  # edited by a user
    assert Lexicon.load(path).best("dog") == "Dogge"
    assert Lexicon.load(path).best("cat") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected 'source\\ttarget"),
        (
            f"{HEADER}\ndog\tHund\t0.5\t1\ndog\tHund",
            "line 3: expected source, target, probability and count with tabs between",
        ),
        (f"{HEADER}\ndog\tHund\tmuch\t1\n", "line 2: expected source"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "lexicon.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as raised:
        Lexicon.load(path)
    assert str(raised.value).startswith(f"{path}, {message}")
    assert str(raised.value).endswith("run `nmt lexicon` again")
