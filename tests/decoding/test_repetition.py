"""nmt.decoding.repetition: sequences that occur several times in a row."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.decoding.repetition import MAX_PERIOD, repeats


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
