"""nmt.metrics.table."""

from nmt.metrics.table import Table

TABLE = Table("name", "Heading", ("group", "count", "score"), [("short", 1234, 5.25), ("a longer one", 7, 66.0)], "a note")


def test_words_to_the_left_numbers_to_the_right() -> None:
    assert TABLE.to_text().splitlines() == [
        "Heading",
        "a note",
        "group         count  score",
        "short         1,234    5.2",
        "a longer one      7   66.0",
    ]


def test_for_machines_nothing_is_rounded() -> None:
    assert TABLE.to_dict() == [
        {"group": "short", "count": 1234, "score": 5.25},
        {"group": "a longer one", "count": 7, "score": 66.0},
    ]


def test_no_rows() -> None:
    assert Table("name", "Heading", ("group", "count"), []).to_text().splitlines() == ["Heading", "group  count"]
