"""Words in the places of items."""

import pytest

from nmt.extras.texts.passages import Item
from nmt.extras.texts.stand_ins import StandIn, StandIns
from tests.extras.texts.test_glossary import dictionary_translator


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
    stand_ins = StandIns(dictionary_translator())
    [name] = stand_ins.choose("The {x}", [Item(4, 7)], 0)
    assert name == StandIn("Tom", "Tom")


def test_a_number_stands_for_itself_first() -> None:
    stand_ins, items = StandIns(dictionary_translator()), [Item(3, 7, is_number=True)]
    chosen = [stand_ins.choose("In 1984", items, attempt)[0].source for attempt in range(3)]
    assert chosen == ["1984", "Tom", "1984"]
