"""The lexicon of a run: links against a count by hand, its file, the command, and the shortlist,
whose search over all words is exact.
"""

import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nmt.config.schema import AttentionConfig, DecodingConfig, ModelConfig
from nmt.data.batches import build_batch
from nmt.data.corpus import Corpus
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.fast import for_search
from nmt.decoding.search import search
from nmt.decoding.translation import UNKNOWN
from nmt.errors import ConfigError, DataError
from nmt.extras.lexicon import command as module
from nmt.extras.lexicon import lexicon as lexicon_module
from nmt.extras.lexicon.command import MAX_TRANSLATIONS, LinkCounts, build_lexicon, count_links
from nmt.extras.lexicon.keys import DecodingKeys
from nmt.extras.lexicon.lexicon import (
    HEADER,
    Entry,
    Shortlist,
    load_lexicon,
    restrict,
    save_lexicon,
    with_shortlist,
)
from nmt.model.interface import TranslationModel
from nmt.model.seq2seq import Seq2Seq
from nmt.run.folder import load_run_config, write_run_config
from nmt.text.vocabulary import EOS, SPECIALS, UNK, Vocabulary
from tests.conftest import Run
from tests.decoding.test_fast import SECTIONS, log_probs, model_of
from tests.decoding.test_unknown_words import changed, trained
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
    assert build_lexicon(links, src, tgt) == {
        "<unk>": [Entry("<unk>", 1.0, 1)],
        "dog": [Entry("Hund", 5 / 8, 5), Entry("Tier", 2 / 8, 2)],
        "cat": [Entry("Katze", 1.0, 1)],
    }
    monkeypatch.setattr(module, "MIN_PROBABILITY", 0.5)
    assert build_lexicon(links, src, tgt)["dog"] == [Entry("Hund", 5 / 8, 5)]


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
    save_lexicon(path, ENTRIES)
    assert (
        path.read_text(encoding="utf-8")
        == f"{HEADER}\ndog\tHund\t0.7500\t3\ndog\t<unk>\t0.2500\t1\n￭!\t￭!\t1.0000\t2\n"
    )
    assert load_lexicon(path) == ENTRIES
    path.write_bytes(
        path.read_bytes().replace(b"\n", b"\r\n") + b"dog\tDogge\t0.9\t0\r\n"
    )  # edited by a user
    entries = load_lexicon(path)
    assert (entries["dog"][0].token, "cat" in entries) == ("Dogge", False)


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
    path, advice = tmp_path / "lexicon.tsv", "correct it, or delete it and run `nmt lexicon` again"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=f"^{re.escape(f'{path}, {message}')}.*; {advice}$"):
        load_lexicon(path)


SRC = Vocabulary.build({"dog": 3, "cat": 2, "sees": 1})
TGT = Vocabulary.build(
    {
        word: 99 - index
        for index, word in enumerate(["der", "die", "Hund", "Katze", "Tier", "Hündin", "sieht"])
    }
)
LEXICON = {
    "dog": [Entry("Hund", 0.6, 6), Entry("Hündin", 0.2, 2), Entry("Tier", 0.1, 1)],
    "cat": [Entry("Katze", 0.9, 9), Entry("Kater", 0.1, 1)],  # added to the file by a user
    "<unk>": [Entry("<unk>", 0.5, 5), Entry("Tier", 0.1, 1)],
}


def chosen(sentences: list[list[str]], size: int, needed: tuple[int, ...]) -> list[str]:
    ids = Shortlist(LEXICON, SRC, TGT, size).choose(
        [SRC.ids(sentence) for sentence in sentences], needed
    )
    assert ids.tolist() == sorted(set(ids.tolist()))
    assert ids[: len(SPECIALS)].tolist() == [0, 1, 2, 3]
    return TGT.tokens(ids.tolist())[len(SPECIALS) :]


def test_frequent_words_and_translations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon_module, "N_FREQUENT", 5)
    for sentences, size, needed, words in (
        ([["sees"]], 2, (), ["der"]),
        ([["dog"]], 2, (), ["der", "Hund", "Hündin"]),
        ([["dog", "dog"], ["cat"]], 9, (), ["der", "Hund", "Katze", "Tier", "Hündin"]),
        ([["Zaphod"]], 2, (), ["der", "Tier"]),
        ([["sees"]], 2, (10,), ["der", "sieht"]),
    ):
        assert chosen(sentences, size, needed) == words
    monkeypatch.undo()  # a small vocabulary is always there
    assert chosen([], 1, ()) == list(TGT)[len(SPECIALS) :]


def with_words(model: TranslationModel, words: torch.Tensor) -> TranslationModel:
    """A model with a shortlist of the same words for all sentences."""
    shortlist: Any = SimpleNamespace(choose=lambda *_: words)
    return with_shortlist(model, shortlist).eval()


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("sections", [{}, {"tie_embeddings": "target"}, {"lexical_bias": 3}])
def test_among_all_words_the_search_is_exact(sections: dict[str, Any], beam: int) -> None:
    src, options, everything = [[4, 5, 6], [7], [8, 8, 4, 5]], DecodingConfig(beam=beam), range(30)
    one, two = model_of(sections), model_of(sections)
    for model in (one, for_search(one), Ensemble([one, two]).eval()):
        short = with_words(model, torch.tensor(everything))
        for exact, found in zip(
            search(model, src, options, n_best=beam),
            search(short, src, options, n_best=beam),
            strict=True,
        ):
            assert [one.ids for one in exact] == [one.ids for one in found]
            np.testing.assert_allclose(
                [one.log_prob for one in exact], [one.log_prob for one in found], rtol=1e-5
            )


def test_only_the_words_given_are_written_and_the_weights_stay() -> None:
    model, src, options = model_of({}), [[4, 5, 6], [7]], DecodingConfig(beam=3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    words = torch.tensor([0, UNK, 2, EOS, 9, 17, 29])
    short = search(with_words(model, words), src, options, n_best=3)
    written = {token for hypotheses in short for one in hypotheses for token in one.ids}
    assert written
    assert written <= set(words.tolist())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("sections", [*SECTIONS[:-1], {"lexical_bias": 3}], ids=str)
@torch.inference_mode()
def test_a_restricted_model_gives_the_same_logits_for_its_words(sections: dict[str, Any]) -> None:
    model, ids = model_of(sections), torch.tensor([0, 1, 2, 9, 17, 23, 28])
    scores = log_probs(model)[..., ids].log_softmax(-1)
    for one in (model, for_search(model)):
        short = restrict(one, ids)
        assert isinstance(short, Seq2Seq)
        torch.testing.assert_close(log_probs(short, 2, (3, 4, 5)), scores)


def test_an_adaptive_softmax_is_refused() -> None:
    text = "decoding.shortlist: model.output adaptive does not support a shortlist; set it to 0"
    with pytest.raises(ConfigError, match=text):
        restrict(model_of({"output": "adaptive"}), torch.arange(9))


def test_no_more_can_be_asked_for_than_a_lexicon_keeps() -> None:
    assert DecodingKeys(shortlist=MAX_TRANSLATIONS).shortlist == MAX_TRANSLATIONS
    with pytest.raises(ValidationError, match=f"less than or equal to {MAX_TRANSLATIONS}"):
        DecodingKeys(shortlist=MAX_TRANSLATIONS + 1)


__all__ = ["trained"]  # a fixture


def test_the_lexicon_is_learned(trained: Path, tmp_path: Path, nmt: Run) -> None:
    run = changed(trained, tmp_path)
    result = nmt("lexicon", run, "--pairs", 400)
    assert result.status == 0
    path = run / "lexicon.tsv"
    before, entries = path.read_bytes(), load_lexicon(path)
    number = sum(map(len, entries.values()))
    assert re.fullmatch(
        rf"{path}: {number} translations of {len(entries)} source tokens, from 400 pairs in "
        r"\d+ s\n",
        result.out,
    )
    assert entries[UNKNOWN][0].token == UNKNOWN
    module.command(run, pairs=400)
    assert path.read_bytes() == before
    # A user adds a word by hand.
    path.write_text(path.read_text(encoding="utf-8") + "zaphod\tSafran\t1\t1\n", encoding="utf-8")
    message = f"{path}: is not as nmt wrote it, so it may have lines of yours; rename or delete it"
    nmt.refuses(f"nmt: {message}, then repeat\n", "lexicon", run)


def test_missing_data_and_models_without_attention(trained: Path, tmp_path: Path, nmt: Run) -> None:
    run = changed(trained, tmp_path)
    config = load_run_config(run)
    elsewhere = config.model_copy(
        update={"data": config.data.model_copy(update={"prepared": tmp_path / "none"})}
    )
    write_run_config(run, elsewhere)
    text = f"nmt: {tmp_path / 'none'}: no prepared data here; run `nmt prepare -c ...` first\n"
    nmt.refuses(text, "lexicon", run)
    blind = config.model.model_copy(update={"attention": AttentionConfig(score="none")})
    write_run_config(run, config.model_copy(update={"model": blind}))
    text = (
        f"nmt: {run}: the model has no attention (model.attention.score: none) to learn a lexicon "
        "from; add --aligner\n"
    )
    nmt.refuses(text, "lexicon", run)
    assert nmt("lexicon", run, "--aligner").status == 0
    entries = load_lexicon(run / "lexicon.tsv")
    assert [entries[word][0].token for word in ("dog", "sees", "tree")] == ["hund", "sieht", "baum"]


def test_a_shortlist_needs_the_lexicon_and_then_translates(
    trained: Path, tmp_path: Path, nmt: Run
) -> None:
    run = changed(trained, tmp_path, shortlist=5)
    command = ("translate", "--run", run, "Zaphod sees the dog.", "The tree finds McXyz.")
    text = f"decoding.shortlist: 5 needs the lexicon of the run; `nmt lexicon {run}` makes it\n"
    nmt.refuses(f"nmt: {text}", *command)
    module.command(run)
    expected = ["Zaphod sieht den hund.", "der baum findet McXyz."]
    assert nmt(*command).out.splitlines() == expected
    (run / "lexicon.tsv").write_text("nonsense\n", encoding="utf-8")
    nmt.refuses(f"nmt: {run / 'lexicon.tsv'}, line 1: expected 'source", *command)
