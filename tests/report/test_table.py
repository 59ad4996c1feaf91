"""nmt.report.table: tables as text and as JSON."""

from nmt.report.table import Table, sparkline

TABLE = Table(
    "name",
    "Heading",
    ("group", "count", "score"),
    [("short", 1234, 5.25), ("a longer one", 7, 66.0)],
    "a note",
)


def test_words_are_left_aligned_and_numbers_right_aligned() -> None:
    assert TABLE.to_text().splitlines() == [
        "Heading",
        "a note",
        "group         count  score",
        "short         1,234    5.2",
        "a longer one      7   66.0",
    ]


def test_json_values_are_not_rounded() -> None:
    assert TABLE.to_dict() == [
        {"group": "short", "count": 1234, "score": 5.25},
        {"group": "a longer one", "count": 7, "score": 66.0},
    ]


def test_no_rows() -> None:
    assert Table("name", "Heading", ("group", "count"), []).to_text().splitlines() == [
        "Heading",
        "group  count",
    ]


def test_sparkline() -> None:
    assert sparkline([0, 1, 2]) == "▁▅█"
    assert sparkline([4, 3, 2], low=2) == "█▅▁"
    assert sparkline([3], low=3) == "▁"
