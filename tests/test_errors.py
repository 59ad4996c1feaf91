"""nmt.errors: what stands in the text of an error."""

import pytest

from nmt.errors import DataError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", r"a\nb"),
        ("two problems\n  a\n  b", "two problems\n  a\n  b"),
        ("\x1b[2Jx\r\x9b", r"\x1b[2Jx\r\x9b"),
        ("abc\u202edef\u2028\udc8b", r"abc\u202edef\u2028\udc8b"),
        ("Straße ￭ „x“ \\n", "Straße ￭ „x“ \\n"),
    ],
)
def test_data_cannot_forge_lines_or_move_the_cursor(text: str, shown: str) -> None:
    error = DataError(text)
    assert str(error) == shown
    assert str(DataError(str(error))) == shown
