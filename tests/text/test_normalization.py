"""nmt.text.normalization: normal forms and the names of repairs."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.text import normalization

ANY_TEXT = st.text(st.characters(exclude_categories=[]))


@pytest.mark.parametrize(
    ("text", "expected", "repairs"),
    [
        ("Grüß Gott!", "Grüß Gott!", []),
        ("", "", []),
        (" a  b ", "a b", [normalization.WHITE_SPACE]),
        ("a\u00a0b\u3000c\u2028d\re", "a b c d e", [normalization.WHITE_SPACE]),
        ("\ufeffa\u200bb\u00adc\x07", "abc", [normalization.CONTROL_CHARACTERS]),
        ("scho\u0308n", "schön", [normalization.UNICODE_NFC]),
        ("\u200b \u200b", "", [normalization.CONTROL_CHARACTERS, normalization.WHITE_SPACE]),
        ("می\u200cخواهم", "می\u200cخواهم", []),
    ],
)
def test_each_repair_is_made_and_named(text: str, expected: str, repairs: list[str]) -> None:
    assert normalization.normalize_and_report(text) == (expected, repairs)
    assert normalization.normalize(text) == expected


@given(ANY_TEXT)
def test_normal_text_is_one_encodable_line_in_nfc_and_stays_as_it_is(text: str) -> None:
    normal = normalization.normalize(text)
    assert normalization.normalize(normal) == normal
    assert normal == " ".join(normal.split())
    assert unicodedata.is_normalized("NFC", normal)
    assert len(f"{normal}x".splitlines()) == 1
    normal.encode()


@given(ANY_TEXT)
def test_a_text_changes_exactly_if_a_repair_is_named(text: str) -> None:
    expected, repairs = normalization.normalize_and_report(text)
    assert (expected != text) == bool(repairs)
    assert set(repairs) <= set(normalization.REPAIRS)
