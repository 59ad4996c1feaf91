"""Repairs, and the reasons why pairs are dropped."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import CleaningConfig
from nmt.text import cleaning

ANY_TEXT = st.text(st.characters(exclude_categories=[]))
CONFIG = CleaningConfig(max_characters=50, max_length_ratio=2.0)


@pytest.mark.parametrize(
    ("text", "mended", "repairs"),
    [
        ("Grüß Gott!", "Grüß Gott!", []),
        ("", "", []),
        (" a  b ", "a b", [cleaning.WHITE_SPACE]),
        ("a\u00a0b\u3000c\u2028d\re", "a b c d e", [cleaning.WHITE_SPACE]),
        ("\ufeffa\u200bb\u00adc\x07", "abc", [cleaning.CONTROL_CHARACTERS]),
        ("scho\u0308n", "schön", [cleaning.UNICODE_NFC]),
        ("\u200b \u200b", "", [cleaning.CONTROL_CHARACTERS, cleaning.WHITE_SPACE]),
        ("می\u200cخواهم", "می\u200cخواهم", []),
    ],
)
def test_each_repair_is_made_and_named(text: str, mended: str, repairs: list[str]) -> None:
    assert cleaning.mend(text) == (mended, repairs)
    assert cleaning.normalize(text) == mended


@given(ANY_TEXT)
def test_normal_text_is_one_encodable_line_in_nfc_and_stays_as_it_is(text: str) -> None:
    normal = cleaning.normalize(text)
    assert cleaning.normalize(normal) == normal
    assert normal == " ".join(normal.split())
    assert unicodedata.is_normalized("NFC", normal)
    assert len(f"{normal}x".splitlines()) == 1
    normal.encode()


@given(ANY_TEXT)
def test_a_text_changes_exactly_if_a_repair_is_named(text: str) -> None:
    mended, repairs = cleaning.mend(text)
    assert (mended != text) == bool(repairs)
    assert set(repairs) <= set(cleaning.REPAIRS)


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [
        ("Hi.", "Hallo!", None),
        ("", "Hallo!", cleaning.EMPTY_SOURCE),
        ("Hi.", "", cleaning.EMPTY_TARGET),
        ("a" * 50, "b" * 50, None),
        ("a" * 51, "b" * 50, cleaning.TOO_LONG),
        ("a" * 50, "b" * 51, cleaning.TOO_LONG),
        ("a" * 10, "b" * 30, None),
        ("a" * 10, "b" * 31, cleaning.LENGTH_RATIO),
        ("a" * 31, "b" * 10, cleaning.LENGTH_RATIO),
    ],
)
def test_why_a_pair_is_dropped(src: str, tgt: str, reason: str | None) -> None:
    assert cleaning.fault(src, tgt, CONFIG) == reason
    assert reason is None or reason in cleaning.REASONS
