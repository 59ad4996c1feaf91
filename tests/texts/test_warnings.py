"""Which translations have warnings, and which sequences of tokens count as repeated."""

import re
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
TOKENIZERS = tuple(
    load_tokenizer(TokenizerConfig(), language, "src", Path()) for language in ("en", "de")
)
SOURCE = ("the", "dog", "sleeps")


@pytest.fixture(scope="module")
def checker() -> WarningChecker:
    return WarningChecker(
        (TOKENIZERS[0], TOKENIZERS[1]), (Vocabulary.build(ENGLISH), Vocabulary.build(GERMAN))
    )


def of_source(checker: WarningChecker, source: str) -> list[str]:
    """The warnings about a source whose output has all that it must have."""
    tokens = tuple(TOKENIZERS[0].split(source))
    return checker.warnings(Translation(source, source, tokens, tokens))


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
    assert of_source(checker, source) == expected


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


def test_a_language_without_marks_has_no_lost_sentences() -> None:
    thai = {"หมา": 20, "นอน": 10, "บ้าน": 8}
    checker = WarningChecker(
        (TOKENIZERS[0], TOKENIZERS[0]), (Vocabulary.build(ENGLISH), Vocabulary.build(thai))
    )
    found = of_output(checker, "the dog. A dog in a house.", "หมา นอน บ้าน หมา หมา")
    assert "sentences lost" not in found


def test_no_warning_where_all_is_lower_case() -> None:
    config = TokenizerConfig(lowercase=True)
    tokenizer = load_tokenizer(config, "en", "src", Path())
    checker = WarningChecker(
        (tokenizer, tokenizer), (Vocabulary.build(ENGLISH), Vocabulary.build(ENGLISH))
    )
    source, text = "THE DOG SLEEPS. THE DOG SLEEPS IN {PLACE}.", "the dog sleeps. a dog in {place}."
    tokens = tuple(tokenizer.split(source))
    assert checker.warnings(Translation(source, text, tokens, tokens)) == []


def test_no_language_warning_with_a_shared_vocabulary() -> None:
    joint = Vocabulary.build({**ENGLISH, **GERMAN})
    checker = WarningChecker((TOKENIZERS[0], TOKENIZERS[0]), (joint, joint))
    assert of_source(checker, "der Hund schläft in ein Haus.") == []


def test_truncation(checker: WarningChecker) -> None:
    assert checker.warnings(Translation("the dog sleeps", "x", SOURCE, ("x",), src_cut=True)) == [
        "source cut"
    ]
    assert checker.warnings(Translation("the dog sleeps", "x", SOURCE, ("x",), complete=False)) == [
        "output cut"
    ]


def test_the_output_may_repeat_what_the_source_repeats(checker: WarningChecker) -> None:
    no = ("no",) * 4
    assert checker.warnings(Translation("the dog", "x", ("the", "dog"), no)) == ["output repeats"]
    assert checker.warnings(Translation("a a a a", "x", ("a",) * 4, no)) == []


def test_at_most_ten_numbers_are_listed() -> None:
    assert describe("output repeats", [3], "line") == f"line 3: {DESCRIPTIONS['output repeats']}"
    assert describe("output repeats", list(range(1, 13)), "line").startswith(
        "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more: "
    )


@pytest.mark.parametrize(
    ("text", "twice", "three_times"),
    [
        ("a b c d", False, False),
        ("sehr sehr gut", False, False),
        ("a a a", True, False),
        ("a a a a", True, True),
        ("x a b a b y", True, False),
        ("x a b a b a b y", True, True),
        ("x a b a b a c", True, False),
        ("auf dem Tisch auf dem Tisch auf", True, False),
        ("so a b c a b c a b c", True, True),
        ("er sagt dass er sagt", False, False),
        ("der Mann der der Frau hilft", False, False),
        ("", False, False),
    ],
)
def test_number_of_repetitions(text: str, twice: bool, three_times: bool) -> None:
    assert (repeats(text.split(), 2), repeats(text.split(), 3)) == (twice, three_times)


@given(st.text("ab", max_size=30), st.integers(2, 4))
def test_agrees_with_a_regular_expression(text: str, times: int) -> None:
    alone, together = rf"(.)\1{{{times},}}", rf"(.{{2,{MAX_PERIOD}}})\1{{{times - 1},}}"
    assert repeats(text, times) == bool(re.search(alone, text) or re.search(together, text))
