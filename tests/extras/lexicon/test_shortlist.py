"""The shortlist: its words, and that search over a shortlist of all words is exact."""

from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from nmt.config.schema import DecodingConfig
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.fast import for_search
from nmt.decoding.search import search
from nmt.errors import ConfigError
from nmt.extras.lexicon import lexicon as module
from nmt.extras.lexicon.command import MAX_TRANSLATIONS
from nmt.extras.lexicon.keys import DecodingKeys
from nmt.extras.lexicon.lexicon import Entry, Lexicon, Shortlist, restrict, with_shortlist
from nmt.model.interface import TranslationModel
from nmt.model.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS, SPECIALS, UNK, Vocabulary
from tests.decoding.test_fast import SECTIONS, log_probs, model_of

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
    monkeypatch.undo()  # a small vocabulary is always there
    assert chosen([], 1) == list(TGT)[len(SPECIALS) :]


class Given(Shortlist):
    """A shortlist of the same words for all sentences."""

    def __init__(self, words: torch.Tensor) -> None:
        self.words = words

    def choose(self, *_: object) -> torch.Tensor:
        return self.words


def with_words(model: TranslationModel, words: torch.Tensor) -> TranslationModel:
    return with_shortlist(model, Given(words)).eval()


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
