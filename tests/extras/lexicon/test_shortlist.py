"""The shortlist: its words, and that search over a shortlist of all words is exact."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from nmt.config.schema import DecodingConfig, ModelConfig
from nmt.decoding.search import search
from nmt.extras.lexicon import shortlist as module
from nmt.extras.lexicon.lexicon import MAX_TRANSLATIONS, Entry, Lexicon
from nmt.extras.lexicon.shortlist import Shortlist
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, SPECIALS, UNK, Vocabulary

SRC = Vocabulary.build({"dog": 3, "cat": 2, "sees": 1})
TGT = Vocabulary.build(
    {
        word: 99 - index
        for index, word in enumerate(["der", "die", "Hund", "Katze", "Tier", "Hündin", "sieht"])
    }
)
LEXICON = Lexicon(
    {
        "dog": [Entry("Hund", 0.6, 6), Entry("Hündin", 0.2, 2), Entry("Tier", 0.1, 1)],
        "cat": [Entry("Katze", 0.9, 9), Entry("Kater", 0.1, 1)],  # added to the file by a user
        "<unk>": [Entry("<unk>", 0.5, 5), Entry("Tier", 0.1, 1)],
    }
)


def chosen(sentences: list[list[str]], size: int, needed: tuple[int, ...] = ()) -> list[str]:
    ids = Shortlist(LEXICON, SRC, TGT, size).choose(
        [SRC.ids(sentence) for sentence in sentences], needed
    )
    assert ids.tolist() == sorted(set(ids.tolist()))
    assert ids[: len(SPECIALS)].tolist() == [0, 1, 2, 3]
    return TGT.tokens(ids.tolist())[len(SPECIALS) :]


def test_frequent_words_and_translations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "N_FREQUENT", 5)
    assert chosen([["sees"]], 2) == ["der"]
    assert chosen([["dog"]], 2) == ["der", "Hund", "Hündin"]
    assert chosen([["dog", "dog"], ["cat"]], 9) == ["der", "Hund", "Katze", "Tier", "Hündin"]
    assert chosen([["Zaphod"]], 2) == ["der", "Tier"]
    assert chosen([["sees"]], 2, (10,)) == ["der", "sieht"]


def test_a_small_vocabulary_is_always_there() -> None:
    assert chosen([], 1) == list(TGT)[len(SPECIALS) :]


@pytest.mark.parametrize("tie_embeddings", ["none", "target"])
@pytest.mark.parametrize("beam", [1, 3])
def test_among_all_words_the_search_is_exact(tie_embeddings: str, beam: int) -> None:
    torch.manual_seed(3)
    sizes = {"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 16}}
    model = Seq2Seq(
        ModelConfig.model_validate({**sizes, "tie_embeddings": tie_embeddings}), 9, 30
    ).eval()
    src, options = [[4, 5, 6], [7], [8, 8, 4, 5]], DecodingConfig(beam=beam)
    everything = search(model, src, options, n_best=beam)
    for exact, short in zip(
        everything, search(model, src, options, n_best=beam, words=torch.arange(30)), strict=True
    ):
        assert [one.ids for one in exact] == [one.ids for one in short]
        np.testing.assert_allclose(
            [one.log_prob for one in exact], [one.log_prob for one in short], rtol=1e-5
        )


def test_only_the_words_given_are_written_and_the_weights_stay() -> None:
    torch.manual_seed(3)
    sizes = {"embedding_size": 8, "encoder": {"hidden_size": 8}, "decoder": {"hidden_size": 16}}
    model = Seq2Seq(ModelConfig.model_validate(sizes), 9, 30).eval()
    before, src, options = [*model.state_dict().values()], [[4, 5, 6], [7]], DecodingConfig(beam=3)
    words = torch.tensor([0, UNK, 2, EOS, 9, 17, 29])
    full, short = (
        search(model, src, options, n_best=3),
        search(model, src, options, n_best=3, words=words),
    )
    written = {token for hypotheses in short for one in hypotheses for token in one.ids}
    assert written
    assert written <= set(words.tolist())
    assert all(
        torch.equal(one, other)
        for one, other in zip(before, model.state_dict().values(), strict=True)
    )
    assert [one.ids for one in search(model, src, options, n_best=3)[0]] == [
        one.ids for one in full[0]
    ]


def test_no_more_can_be_asked_for_than_a_lexicon_keeps() -> None:
    assert DecodingConfig(shortlist=MAX_TRANSLATIONS).shortlist == MAX_TRANSLATIONS
    with pytest.raises(ValidationError, match=f"less than or equal to {MAX_TRANSLATIONS}"):
        DecodingConfig(shortlist=MAX_TRANSLATIONS + 1)
