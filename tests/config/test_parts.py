"""Every row of every table names something that exists."""

import pytest

from nmt.cli import all_commands
from nmt.config import parts
from nmt.plugins import Part, extras, import_object

TABLES = [table for table in vars(parts).values() if isinstance(table, dict)]
ROWS = [row for table in TABLES for row in table.values() if isinstance(row, Part)]
PLACES = [row.place for row in ROWS if row.place]
PLACES += [row.place for row in all_commands().values() if row.place]
FIELDS = ("rules", "wrap", "rank", "memory", "archive", "listener")
PLACES += [place for extra in extras().values() for place in extra.keys.values()]
PLACES += [place for extra in extras().values() for place in extra.files.values()]
PLACES += [
    place for extra in extras().values() for name in FIELDS if (place := getattr(extra, name))
]


@pytest.mark.parametrize("place", dict.fromkeys(PLACES))
def test_a_place_exists(place: str) -> None:
    assert callable(import_object(place))


def test_choices_in_words() -> None:
    rows = {"a": Part("x:y", sized=True), "b": Part("x:y"), "c": Part("x:y", sized=True)}
    assert parts.choices(rows) == "a, b or c"
    assert parts.choices(parts.having(rows, "sized")) == "a or c"
