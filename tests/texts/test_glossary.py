"""Terms of a glossary in translations."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from nmt.config.schema import DecodingConfig, ModelConfig, TokenizerConfig
from nmt.decoding.alignment import align
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.model import TranslationModel
from nmt.decoding.translation import Translation
from nmt.decoding.translator import Translator
from nmt.errors import DataError, TooLargeError
from nmt.model.seq2seq import Seq2Seq
from nmt.text.tokenizers import SIDES, load_tokenizer
from nmt.text.vocabulary import SPECIALS, Vocabulary
from nmt.texts.glossary import Glossary, Term, missing
from nmt.texts.terms import bring_terms
from nmt.texts.translator import TextTranslator
from tests.model.test_graphs import onnx_model
from tests.toy import NOUNS, VERBS

TEXTS = ["The dog sees the king.", "The man knows the dog.", "The river loves the man."]
PLAIN = ["Der Hund sieht den König.", "Der Mann kennt den Hund.", "Der Fluss liebt den Mann."]
NEW = "Xylotrop"  # a word of no vocabulary
LEXICON = [*NOUNS, *VERBS, ("The", "Der"), ("the", "den"), ("￭.", "￭."), ("Tom", "Tom")]


def with_model(translator: Translator, model: TranslationModel) -> Translator:
    other = copy(translator)
    other.model = model
    return other


@cache
def dictionary_translator(*, lowercase: bool = False) -> Translator:
    """It translates word by word: its model is not trained, and only has a lexical bias."""
    lexicon = {src.lower(): tgt.lower() for src, tgt in LEXICON} if lowercase else dict(LEXICON)
    src, tgt = (
        Vocabulary([*words], [0] + [1] * len(words)) for words in zip(*lexicon.items(), strict=True)
    )
    torch.manual_seed(1)
    model = Seq2Seq(
        ModelConfig.model_validate(
            {
                "embedding_size": 4,
                "encoder": {"hidden_size": 4},
                "decoder": {"hidden_size": 4},
                "attention": {"kind": "local_m", "window": 1},
                "lexical_bias": 1,
            }
        ),
        len(src),
        len(tgt),
    ).eval()
    assert model.lexical_bias is not None
    vars(model.decoder.attention)["window"] = (
        0.5  # attention is on the word of the same number alone
    )
    ids = torch.arange(len(src)).unsqueeze(1)
    model.lexical_bias.fill(ids, (ids >= len(SPECIALS)).float())
    config = TokenizerConfig(kind="words", lowercase=lowercase)
    words = [load_tokenizer(config, "en", side, Path()) for side in SIDES]
    return Translator(
        onnx_model(model),
        tokenizers=(words[0], words[1]),
        vocabularies=(src, tgt),
        options=DecodingConfig(),
    )


@pytest.fixture
def translator() -> Translator:
    return dictionary_translator()


@pytest.fixture
def unbiased(translator: Translator) -> Translator:
    """Terms can only take the place of words."""
    model = copy(translator.model)
    vars(model)["with_terms"] = lambda *_: None
    return with_model(translator, model)


def texts_of(results: Sequence[Sequence[Translation]]) -> list[str]:
    return [best[0].text for best in results]


def translate(
    glossary: Glossary,
    translator: Translator,
    texts: Sequence[str],
    n: int,
    protected: Collection[str] = (),
) -> list[list[Translation]]:
    results = translator.translate_n_best(texts, n)
    bring_terms(results, glossary, translator, texts, n, [{*protected}] * len(texts))
    return results


def found(glossary: Glossary, text: str) -> list[tuple[str, str]]:
    return [(term.source, term.target) for term in glossary.terms_in(text)]


# Reading


def test_a_file_of_terms(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes("\ufeff# Animals\r\n\r\ndog|dogs\tHund \r\n New  York\tNeu-York\r\n".encode())
    glossary = Glossary.read(path)
    text = "Dogs like New York, a dog too."
    expected = [("Dogs", "Hund"), ("New York", "Neu-York"), ("dog", "Hund")]
    assert found(glossary, text) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("dog Hund", "expected a term, a tab and its translation, found 'dog Hund'"),
        ("dog\tHund\tn", "expected a term, a tab and its translation, found 'dog\\tHund\\tn'"),
        ("dog\t ", "a side of the term is empty"),
        ("dog|\tHund", "a side of the term is empty"),
        ("CAT\tKater", "'CAT' has"),
        ("Cat\tKater", "'Cat' has two translations, 'Katze' and 'Kater'; keep one"),
    ],
)
def test_a_line_that_is_no_term(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(f"# Terms\ncat\tKatze\nCAT\tRaupe\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError) as error:
        Glossary.read(path)
    assert str(error.value).startswith(f"{path}, line 4: {message}")
    assert "\n" not in str(error.value)


def test_terms_of_a_request() -> None:
    assert found(Glossary.of({"cat": "Katze"}), "A cat") == [("cat", "Katze")]
    assert found(Glossary.of({}), "A cat") == []
    with pytest.raises(DataError, match="glossary, 'cat': a side of the term is empty"):
        Glossary.of({"cat": " "})


# Terms in a source


@pytest.mark.parametrize(
    ("terms", "text", "expected"),
    [
        ("dog", "My DOG's dogma, hot-dog. Dog!", ["DOG", "Dog"]),
        ("IT", "It is it: IT", ["IT"]),
        ("I", "Am i I?", ["i", "I"]),
        ("York,New York,New York City Hall", "York, New York City, New York City Hall",
         ["York", "New York", "New York City Hall"]),
        ("New York,York City Hall", "New York City Hall", ["New York"]),
        ("C++", "C++ and C", ["C++"]),
        ("Café", "cafe\u0301  CAFÉ", ["cafe\u0301", "CAFÉ"]),
        ("北京", "我们去北京。", ["北京"]),
    ],
)  # fmt: skip
def test_terms_are_whole_words(terms: str, text: str, expected: list[str]) -> None:
    glossary = Glossary.of(dict.fromkeys(terms.split(","), "Wort"))
    assert [term for term, _ in found(glossary, text)] == expected


# Terms in a translation


@pytest.mark.parametrize(
    ("targets", "text", "expected"),
    [
        (["Hund"], "Ein Hund.", []),
        (["Hund"], "Den Hunden, des Hundes", []),
        (["Hand"], "Ein Handy", ["Hand"]),
        (["Hund"], "Ein hund, Hundehaus, Wind-Hund", ["Hund"]),
        (["hund"], "„Hund da? Hund!", []),
        (["Hund", "Hund"], "Ein Hund", ["Hund"]),
        (["Hund", "Hund und Katze"], "Ein Hund und Katze", ["Hund"]),
        (["Hund"], "ein hund", []),
        (["東京"], "私は東京へ", []),
    ],
)
def test_what_a_translation_lacks(targets: list[str], text: str, expected: list[str]) -> None:
    matches = [Term(0, 1, "", target) for target in targets]
    assert [*missing(matches, text).elements()] == expected


def test_an_ending_may_follow_further_forms_alone() -> None:
    glossary = Glossary.of({"dog|dogs": "Hund"})
    for text, is_missing in (("dog", True), ("dogs", False), ("dog's", False)):
        assert bool(missing(glossary.terms_in(text), "Hunde", is_exact=True)) is is_missing


# Translating


def test_sentences_without_terms_are_translated_as_ever(translator: Translator) -> None:
    results = translate(Glossary.of({"cat": "Katze", "king": "König"}), translator, TEXTS, 2)
    for result, expected in zip(results, translator.translate_n_best(TEXTS, 2), strict=True):
        assert [each.text for each in result] == [each.text for each in expected]
        assert [each.score for each in result] == [each.score for each in expected]


@pytest.mark.parametrize(
    ("terms", "protected", "texts", "expected"),
    [
        # The first word keeps its capital.
        (
            {"the dog": "mein Haustier"},
            [],
            TEXTS[:2],
            ["Mein Haustier sieht den König.", "Der Mann kennt mein Haustier."],
        ),
        ({"dog": NEW}, [], ["The dog sees the dog."], [f"Der {NEW} sieht den {NEW}."]),
        # Protected words stay.
        ({"dog": NEW, "king": "Kaiser"}, ["dog", "König"], TEXTS[:1], PLAIN[:1]),
        ({"the dog": NEW, "dog sees": NEW, "dog-sees": NEW}, ["dog"], TEXTS[:1], PLAIN[:1]),
    ],
)
def test_terms_take_the_place_of_words(
    unbiased: Translator,
    terms: Mapping[str, str],
    protected: list[str],
    texts: list[str],
    expected: list[str],
) -> None:
    assert texts_of(translate(Glossary.of(terms), unbiased, texts, 1, protected)) == expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ({"dog": "Baum"}, ["Der Baum sieht den König.", "Der Mann kennt den Baum."]),
        (
            {"dog": "Fluss", "king": "Tag"},
            ["Der Fluss sieht den Tag.", "Der Mann kennt den Fluss."],
        ),
    ],
)
@pytest.mark.parametrize("n_models", [1, 2])
def test_the_lexical_bias_brings_known_words(
    translator: Translator, n_models: int, terms: Mapping[str, str], expected: list[str]
) -> None:
    if n_models > 1:
        translator = with_model(translator, Ensemble([translator.model] * n_models))
    results = translate(Glossary.of(terms), translator, TEXTS[:2], 1)
    assert texts_of(results) == expected
    assert [best[0].replaced for best in results] == [(), ()]


def test_other_words_take_the_place_of_the_aligned_ones(translator: Translator) -> None:
    glossary = Glossary.of({"dog": NEW, "the king": "die Königin"})
    (best, *_), second, third = translate(glossary, translator, TEXTS, 1)
    assert best.text == f"Der {NEW} sieht die Königin."
    assert [(each.position, each.token) for each in best.replaced] == [
        (1, NEW),
        (3, "die Königin"),
        (4, ""),
    ]
    assert best.tokens == translator.translate(TEXTS)[0].tokens
    assert best.token_log_probs == translator.translate(TEXTS)[0].token_log_probs
    # The words of the text are still aligned.
    assert {(1, 1), (2, 2), (3, 4)} <= {*align(best, translator.tokenizers)}
    assert second[0].text == f"Der Mann kennt den {NEW}."
    assert third[0].text == PLAIN[2]


def test_every_translation_of_an_n_best_list_has_the_term(translator: Translator) -> None:
    for term in ("Baum", NEW):
        (best,) = translate(Glossary.of({"dog": term}), translator, TEXTS[:1], 3)
        assert 1 < len(best) <= 3
        assert all(term in each.text for each in best)


def test_a_term_without_a_place_is_named(unbiased: Translator) -> None:
    cut = copy(unbiased)
    cut.options = unbiased.options.model_copy(update={"max_source_tokens": 2})
    ((best,),) = translate(Glossary.of({"king": "Kaiser"}), cut, TEXTS[:1], 1)
    assert best.warnings == ("the glossary's 'Kaiser' for 'king' is missing",)
    assert best.text == cut.translate(TEXTS[:1])[0].text


def test_terms_of_a_model_without_capitals_have_none() -> None:
    glossary = Glossary.of({"dog": NEW, "king": "König", "sees": "sieht"})
    results = translate(glossary, dictionary_translator(lowercase=True), TEXTS[:1], 1)
    assert texts_of(results) == ["den xylotrop sieht den könig."]


def test_an_empty_translation_lacks_terms(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = Translation(TEXTS[0], src_tokens=("The",))
    monkeypatch.setattr(Translator, "translate_n_best", lambda self, texts, n: [[empty]])
    ((best,),) = translate(Glossary.of({"dog": NEW}), translator, TEXTS[:1], 1)
    assert (best.text, len(best.warnings)) == ("", 1)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["Der Baum sieht den Baum.", "Ein Baum sieht den König."], "Ein Baum sieht den König."),
        (["Der Baum sieht den Baum."], "Der Baum sieht den König."),
        (["Baumer Baumbaum sieht den König."], "Der Baum sieht den König."),
    ],
)
def test_a_translation_that_repeats_the_term_is_not_taken(
    found: list[str], expected: str, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    (plain,) = translator.translate(TEXTS[:1])
    biased = [replace(plain, text=text) for text in found]
    monkeypatch.setattr(
        Translator,
        "translate_n_best",
        lambda self, texts, n: [[plain] if self is translator else biased],
    )
    assert texts_of(translate(Glossary.of({"dog": "Baum"}), translator, TEXTS[:1], 1)) == [expected]


def test_an_error_has_the_number_of_the_text(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Translator.translate_n_best

    def fail(self: Translator, texts: Sequence[str], n: int) -> list[list[Translation]]:
        if self is translator:
            return search(self, texts, n)
        raise TooLargeError(0, "")

    monkeypatch.setattr(Translator, "translate_n_best", fail)
    with pytest.raises(TooLargeError) as error:
        translate(Glossary.of({"river": "Baum"}), translator, TEXTS, 1)
    assert error.value.index == 2


def test_requests_do_not_change_each_other(translator: Translator) -> None:
    glossaries = [Glossary.of({"dog": target}) for target in ("Baum", "Fluss", "Tag", NEW)]
    alone = [texts_of(translate(glossary, translator, TEXTS, 1)) for glossary in glossaries]
    assert len({*map(tuple, alone)}) == len(alone)
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(
            lambda glossary: texts_of(translate(glossary, translator, TEXTS, 1)), glossaries * 5
        )
        assert [*together] == alone * 5
    assert [each.text for each in translator.translate(TEXTS)] == PLAIN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dog sees <b>the king</b>. The man knows {name}.",
         f"Der {NEW} sieht <b>den Kaiser</b>. Der Mann kennt {{name}}."),
        ("{name} sees <i>the dog</i>.", f"{{name}} sieht <i>den {NEW}</i>."),
        ("The man sees the {dog}.", "Der Mann sieht den {dog}."),
    ],
)  # fmt: skip
def test_terms_beside_items_and_tags(text: str, expected: str) -> None:
    """The word that stands in for the item is a term, too; as an item it is none."""
    glossary = Glossary.of({"dog": NEW, "king": "Kaiser", "Tom": "Thomas"})
    (best,) = TextTranslator(dictionary_translator(), glossary=glossary).translate([text])
    assert (best.text, best.warnings) == (expected, ())
