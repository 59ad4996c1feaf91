"""Which translations have warnings, and which sequences of tokens count as repeated."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import TokenizerConfig
from nmt.decoding.translation import Translation
from nmt.text.tokenizers import load_tokenizer
from nmt.text.vocabulary import Vocabulary
from nmt.texts.warnings import DESCRIPTIONS, MAX_PERIOD, WarningChecker, describe, repeats

ENGLISH = {"the": 90, "dog": 20, "sleeps": 9, "in": 60, "house": 8, "a": 70, "￭.": 99}
GERMAN = {"der": 90, "Hund": 20, "schläft": 9, "in": 60, "Haus": 8, "ein": 70, "￭.": 99}
THAI = {"หมา": 20, "นอน": 10, "บ้าน": 8}
TOKENIZERS = tuple(
    load_tokenizer(TokenizerConfig(), language, "src", Path()) for language in ("en", "de")
)


@pytest.fixture(scope="module")
def checker() -> WarningChecker:
    return WarningChecker(
        (TOKENIZERS[0], TOKENIZERS[1]), (Vocabulary.build(ENGLISH), Vocabulary.build(GERMAN))
    )


def of_output(checker: WarningChecker, source: str, text: str) -> list[str]:
    src_tokens, tokens = (tuple(TOKENIZERS[0].split(each)) for each in (source, text))
    return checker.warnings(Translation(source, text, src_tokens, tokens))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("the dog sleeps in a house.", []),
        ("the Nagasaki sleeps in Kyoto.", []),
        ("der Hund schläft in ein Haus.", ["source in target language"]),
        ("Hund", ["source unknown"]),
        ("le chien dort.", ["source unknown"]),
        ("le chien dort in maison.", ["source mostly unknown"]),
        ("THE DOG SLEEPS.", ["source in capitals"]),
        ("A DOG", ["source in capitals"]),
        ("THE DOG sleeps IN A HOUSE.", ["source in capitals"]),
        ("The Dog Sleeps In A House.", ["source in capitals"]),
        ("the house of O'Hara-Smith isn't Anna's.", ["source mostly unknown"]),
        ("NATO, USB in the house.", []),
        ("THE!", ["source in capitals"]),
        ("NATO!", ["source unknown"]),
        ("in 1984.", []),
        ("123 456", []),
        ("", []),
    ],
)
def test_languages(checker: WarningChecker, source: str, expected: list[str]) -> None:
    """The output has all that it must have."""
    assert of_output(checker, source, source) == expected


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("the Nagasaki sleeps.", "der nagasaki schläft.", []),
        ("the Nagasaki sleeps.", "der Hund schläft.", ["word unknown"]),
        ("a dog in the house. The dog sleeps.", "ein Hund in Haus. der Hund schläft.", []),
        (
            "a dog in the house. The dog sleeps.",
            "ein Hund in der Haus schläft.",
            ["sentences lost"],
        ),
        ("the dog. The dog sleeps in the house in a house.", "Hund. Hund.", ["sentences lost"]),
        ("a house 5. The dog sleeps in a house in 6.", "ein Haus in 5.", ["sentences lost"]),
        ("the dog sleeps in {0}.", "der Hund schläft in {0}.", []),
        ("the dog sleeps in {0}.", "der Hund schläft in 0.", ["items changed"]),
        ("the dog sleeps.", "der Hund schläft <unk>.", []),
        ("↔", "ein Haus", ["no words"]),
        ("↔", "", ["no words"]),
    ],
)
def test_source_and_output(
    checker: WarningChecker, source: str, text: str, expected: list[str]
) -> None:
    found = of_output(checker, source, text)
    assert [
        warning for warning in found if warning != "word unknown" or expected == found
    ] == expected


@pytest.mark.parametrize(
    ("words", "lowercase", "source", "text"),
    [
        # A target language whose sentences end without marks loses none.
        ((ENGLISH, THAI), False, "the dog. a dog in a house.", "หมา นอน บ้าน หมา หมา"),
        # All is lower case, or the two languages share a vocabulary.
        (
            (ENGLISH, ENGLISH),
            True,
            "THE DOG SLEEPS. THE DOG SLEEPS IN {PLACE}.",
            "the dog sleeps. a dog in {place}.",
        ),
        (
            (ENGLISH | GERMAN, ENGLISH | GERMAN),
            False,
            "der Hund schläft in ein Haus.",
            "der Hund schläft in ein Haus.",
        ),
    ],
)
def test_other_languages_have_no_warning(
    words: Sequence[dict[str, int]], lowercase: bool, source: str, text: str
) -> None:
    tokenizer = load_tokenizer(TokenizerConfig(lowercase=lowercase), "en", "src", Path())
    src, tgt = (Vocabulary.build(each) for each in words)
    checker = WarningChecker((tokenizer, tokenizer), (src, tgt))
    src_tokens, tokens = (tuple(tokenizer.split(each)) for each in (source, text))
    assert checker.warnings(Translation(source, text, src_tokens, tokens)) == []


@pytest.mark.parametrize(
    ("translation", "expected"),
    [
        (Translation("the dog", "x", ("the", "dog"), ("x",), src_cut=True), ["source cut"]),
        (Translation("the dog", "x", ("the", "dog"), ("x",), complete=False), ["output cut"]),
        (Translation("the dog", "x", ("the", "dog"), ("no",) * 4), ["output repeats"]),
        # It may repeat what the source repeats.
        (Translation("a a a a", "x", ("a",) * 4, ("no",) * 4), []),
    ],
)
def test_limits(checker: WarningChecker, translation: Translation, expected: list[str]) -> None:
    assert checker.warnings(translation) == expected


def test_at_most_ten_numbers_are_listed() -> None:
    assert describe("output repeats", [3], "line") == f"line 3: {DESCRIPTIONS['output repeats']}"
    assert describe("output repeats", list(range(1, 13)), "line").startswith(
        "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more: "
    )


@given(st.text("ab", max_size=30), st.integers(2, 4))
def test_repetitions_are_those_of_a_regular_expression(text: str, times: int) -> None:
    """A single token may be doubled."""
    alone, together = rf"(.)\1{{{times},}}", rf"(.{{2,{MAX_PERIOD}}})\1{{{times - 1},}}"
    assert repeats(text, times) == bool(re.search(alone, text) or re.search(together, text))
