"""What is doubted and what is not."""

from pathlib import Path

import pytest

from nmt.config.schema import TokenizerConfig
from nmt.decoding.quality_warnings import DOUBTS, Doubter, describe
from nmt.decoding.translation import Translation
from nmt.text.tokenizers import load_tokenizer
from nmt.text.vocabulary import Vocabulary

ENGLISH = {"the": 90, "dog": 20, "sleeps": 9, "in": 60, "house": 8, "a": 70, "￭.": 99}
GERMAN = {"der": 90, "Hund": 20, "schläft": 9, "in": 60, "Haus": 8, "ein": 70, "￭.": 99}
SPLITTERS = tuple(load_tokenizer(TokenizerConfig(), language, "src", Path()) for language in ("en", "de"))
SOURCE = ("the", "dog", "sleeps")


@pytest.fixture(scope="module")
def doubter() -> Doubter:
    return Doubter((SPLITTERS[0], SPLITTERS[1]), (Vocabulary.build(ENGLISH), Vocabulary.build(GERMAN)))


def of_source(doubter: Doubter, source: str) -> list[str]:
    return doubter.doubts(Translation(source, "x", tuple(SPLITTERS[0].split(source)), ("x",)))


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
def test_languages(doubter: Doubter, source: str, expected: list[str]) -> None:
    assert of_source(doubter, source) == expected


def test_a_shared_vocabulary_tells_no_language() -> None:
    joint = Vocabulary.build({**ENGLISH, **GERMAN})
    doubter = Doubter((SPLITTERS[0], SPLITTERS[0]), (joint, joint))
    assert of_source(doubter, "der Hund schläft in ein Haus.") == []


def test_what_was_cut(doubter: Doubter) -> None:
    assert doubter.doubts(Translation("the dog sleeps", "x", SOURCE, ("x",), src_cut=True)) == ["source cut"]
    assert doubter.doubts(Translation("the dog sleeps", "x", SOURCE, ("x",), complete=False)) == ["output cut"]


def test_what_the_source_repeats_may_be_repeated(doubter: Doubter) -> None:
    no = ("no",) * 4
    assert doubter.doubts(Translation("the dog", "x", ("the", "dog"), no)) == ["output repeats"]
    assert doubter.doubts(Translation("a a a a", "x", ("a",) * 4, no)) == []


def test_numbers_are_told_and_not_all_of_many() -> None:
    assert describe("output repeats", [3], "line") == f"line 3: {DOUBTS['output repeats']}"
    assert describe("output repeats", list(range(1, 13)), "line").startswith("lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more: ")
