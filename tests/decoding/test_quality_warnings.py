"""Which translations have warnings, and which do not."""

from pathlib import Path

import pytest

from nmt.config.schema import TokenizerConfig
from nmt.decoding.quality_warnings import DESCRIPTIONS, WarningChecker, describe
from nmt.decoding.translation import Translation
from nmt.text.tokenizers import load_tokenizer
from nmt.text.vocabulary import Vocabulary

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
    return checker.warnings(Translation(source, "x", tuple(TOKENIZERS[0].split(source)), ("x",)))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("the dog sleeps in a house.", []),
        ("the Nagasaki sleeps in Kyoto.", []),
        ("der Hund schläft in ein Haus.", ["source in target language"]),
        ("Hund", ["source unknown"]),
        ("le chien dort.", ["source unknown"]),
        ("le chien dort in maison.", ["source mostly unknown"]),
        ("in 1984.", []),
        ("123 456", []),
        ("", []),
    ],
)
def test_languages(checker: WarningChecker, source: str, expected: list[str]) -> None:
    assert of_source(checker, source) == expected


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
