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


@pytest.mark.parametrize(
    ("text", "attempt", "copied", "expected"),
    [
        # Not "The", which is "the" at the start of a sentence, nor "dog", which is translated.
        ("The {x}", 0, "", ["Tom"]),
        # At first, a number stands for itself, and what the model always copies;
        ("In 1984", 0, "", ["1984"]),
        ("In 1984", 1, "", ["Tom"]),
        ("Open %s", 0, "%s", ["%s"]),
        ("Open %s", 1, "%s", ["Tom"]),
        ("Open {name}", 0, "%s", ["Tom"]),
        # but not where the text has it twice: which of the two is where?
        ("Open %s and %s", 0, "%s", ["Tom", "Tom2"]),
        # More items than the model has names.
        ("{a} and {b} and {c}", 0, "", ["Tom", "Tom1", "Tom2"]),
        ("Tom and {b} and {c}", 1, "", ["Tom2", "Tom3"]),
    ],
)
def test_words_in_the_places_of_items(
    text: str, attempt: int, copied: str, expected: list[str]
) -> None:
    known, marked = find(dictionary_translator()), without_signs(Marked(text), ())
    found = choose(
        known,
        marked,
        attempt,
        numbers=True,
        kind_of=lambda item: "copied" if item == copied else "new",
    )
    assert [each.source for each in found] == expected
