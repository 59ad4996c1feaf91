"""nmt.data.cleaning: why a pair is dropped by what it is alone."""

import pytest

from nmt.config.schema import CleaningConfig
from nmt.data import cleaning
from nmt.data.reading import DROP_REASONS


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
        ("The cat sleeps.", "nan", cleaning.MISSING_VALUE),
        ("#N/A", "Die Katze schläft im Garten", cleaning.MISSING_VALUE),
        ("<NA>", "猫が庭で寝ています。", cleaning.MISSING_VALUE),
        ("#DIV/0!", "Die Katze schläft im Garten.", cleaning.MISSING_VALUE),
        ("NULL", "Кошка спит.", None),  # two words could be its meaning
        ("null", "zero", None),
        ("None", "Keine", None),
        ("N/A", "nicht verfügbar", None),
        ("na", "on the table", None),
        ("nan", "NaN", None),
        ("The cat sleeps.", "-", cleaning.NO_LETTERS),
        ("—", "Guten Tag", cleaning.NO_LETTERS),
        ("???", "แมวนอนหลับอยู่ในสวน", cleaning.NO_LETTERS),
        ("%", "Prozent", None),
        ("...", "…", None),
        ("?!", "🙂", None),
        ("In 1984.", "१९८४ में।", None),
        ("42", "Ⅷ", None),
    ],
)
def test_why_a_pair_is_dropped(src: str, tgt: str, reason: str | None) -> None:
    config = CleaningConfig(max_characters=50, max_length_ratio=2.0)
    assert cleaning.drop_reason(src, tgt, config) == reason
    assert reason is None or reason in DROP_REASONS
