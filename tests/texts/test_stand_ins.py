"""Words in the places of items."""

import pytest

from nmt.texts.items import without_signs
from nmt.texts.marked import Marked
from nmt.texts.stand_ins import StandIn, choose, find
from tests.texts.test_glossary import dictionary_translator


@pytest.mark.parametrize(
    ("word", "text", "expected"),
    [
        ("Tom", "Tom and Toms, not Tomate, Atom or Tom9", ["Tom", "Toms"]),
        ("19", "19 and 196 but not 20193, 19s", ["19", "196", "19"]),
        ("Tom", "トムはTomさん", ["Tom"]),
        ("汤姆", "我是汤姆。", ["汤姆"]),
        ("2:30", "um 2:30 Uhr", ["2:30"]),
    ],
)
def test_places(word: str, text: str, expected: list[str]) -> None:
    stand_in = StandIn("x", word)
    assert [text[start:end] for start, end in stand_in.places(text)] == expected
    assert stand_in.is_kept(text) == (expected == [word])


def test_a_model_copies_names_by_its_lexical_bias() -> None:
    """Not "The", which is "the" at the start of a sentence, nor "dog", which is translated."""
    assert chosen("The {x}", 0) == ["Tom"]


def test_a_number_stands_for_itself_first() -> None:
    assert [chosen("In 1984", attempt) for attempt in range(2)] == [["1984"], ["Tom"]]


def test_what_the_model_always_copies_stands_for_itself_first() -> None:
    """But not where the text has it twice: which of the two is where?"""
    assert [chosen("Open %s", attempt, "%s") for attempt in range(2)] == [["%s"], ["Tom"]]
    assert chosen("Open {name}", 0, "%s") == ["Tom"]
    assert "%s" not in chosen("Open %s and %s", 0, "%s")


def test_more_items_than_the_model_has_names() -> None:
    assert chosen("{a} and {b} and {c}", 0) == ["Tom", "Tom1", "Tom2"]
    assert chosen("Tom and {b} and {c}", 1) == ["Tom2", "Tom3"]


def chosen(text: str, attempt: int, copied: str = "") -> list[str]:
    known, marked = find(dictionary_translator()), without_signs(Marked(text), ())
    return [
        each.source
        for each in choose(
            known,
            marked,
            attempt,
            numbers=True,
            kind_of=lambda item: "copied" if item == copied else "new",
        )
    ]
