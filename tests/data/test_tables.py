"""nmt.data.tables: the dialect of a whole file decides how its rows are read."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from nmt.config.schema import SourceConfig
from nmt.data.formats import NoPairError, open_source
from nmt.data.tables import find_dialect
from tests.data.packing import plain

TEXTS = [
    ('The baker says: "Not now!"', 'Der Bäcker sagt: "Nicht jetzt!"'),
    ('"Now," she said.', '"Jetzt", sagte sie.'),
    ("One line,\nand another.", "Eine Zeile,\nund noch eine.\n\nEnde."),
    ("A tab\tin a sentence; and a | bar.", "Ein Tab\tim Satz."),
    ("Good morning!", "Guten Morgen!"),
    *((f"House {number}, please.", f"Haus {number} bitte.") for number in range(20)),
]


def read(path: Path, kind: Any = "tsv", **columns: Any) -> list[tuple[str, str] | str]:
    """The pair of each row, or why it has none."""
    config = SourceConfig(format=kind, columns=columns or {"en": 1, "de": 2})
    (source,) = open_source(config, {"": [path]}, ("en", "de"))
    result: list[tuple[str, str] | str] = []
    for number, row in enumerate(source.rows(), source.first_line):
        try:
            pair = source.pair(row)
        except NoPairError as error:
            result.append(f"{number} {error.args[0]}")
        else:
            result += [pair] if pair is not None else []
    return result


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("delimiter", ["\t", ",", ";", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_what_a_csv_writer_writes_is_read_back(
    tmp_path: Path, quoting: Any, delimiter: str, line_end: str
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=line_end)
    writer.writerows([("id", "English", "German"), *((1, *pair) for pair in TEXTS)])
    path = plain(tmp_path / "table", text.getvalue().encode())
    kind = "tsv" if delimiter == "\t" else "csv"
    assert read(path, kind, en="English", de="German") == TEXTS


def test_spreadsheets_put_marks_around_cells_with_commas(tmp_path: Path) -> None:
    rows = "".join(
        f'"{src}"\t{tgt}\n' if "," in src else f"{src}\t{tgt}\n" for src, tgt in TEXTS[4:]
    )
    assert read(plain(tmp_path / "table", rows.encode())) == TEXTS[4:]


@pytest.mark.parametrize(
    "pair",
    [
        ('"Not now!" says the baker.', '"Nicht jetzt!" sagt der Bäcker.'),
        ('"Not now, Tom!"', '"Nicht jetzt, Tom!"'),
        ('"Not now!', "Nicht jetzt!"),
        ('A 5" nail', 'Ein 5"-Nagel'),
        ('He says ""yes"".', 'Er sagt "ja".'),
    ],
)
def test_marks_of_plain_text_stand_as_they_are(tmp_path: Path, pair: tuple[str, str]) -> None:
    rows = [*TEXTS[4:], pair]
    assert read(plain(tmp_path / "table", "\n".join(map("\t".join, rows)).encode())) == rows


@pytest.mark.parametrize("delimiter", ["\t", ","])
@pytest.mark.parametrize("bad", ['"Open{}Offen', 'Open{}"Offen', '"Open" door{}Offen', '"a{}b\nc'])
def test_a_mark_without_its_partner_spoils_its_line_only(
    tmp_path: Path, delimiter: str, bad: str
) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(TEXTS)
    lines, bad_lines = text.getvalue().splitlines(), bad.format(delimiter).splitlines()
    content = "\n".join([*lines[:15], *bad_lines, *lines[15:]])
    kind = "tsv" if delimiter == "\t" else "csv"
    expected: list[tuple[str, str] | str] = ["16 bad quotation marks"]
    expected += ["17 too few columns"] * (len(bad_lines) - 1)
    result = read(plain(tmp_path / "table", content.encode()), kind)
    assert [row for row in result if row not in TEXTS] == expected
    assert [row for row in result if row in TEXTS] == TEXTS


@pytest.mark.parametrize(
    ("columns", "row", "reason"),
    [
        ({"en": 1, "de": 2}, "A tab\tinside\tEin Tab", "21 too many columns"),
        ({"en": 1, "de": 2}, "no tab", "21 too few columns"),
        ({"en": "en", "de": "de"}, "A tab\tinside\tEin Tab", "21 too many columns"),
    ],
)
def test_a_row_with_another_number_of_columns_is_no_pair(
    tmp_path: Path, columns: dict[str, Any], row: str, reason: str
) -> None:
    header = ["en\tde"] if columns["en"] == "en" else ["Hello!\tHallo!"]
    lines = [*header, *map("\t".join, TEXTS[6:]), row, "", "  "]
    result = read(plain(tmp_path / "table", "\n".join(lines).encode()), **columns)
    assert result[-1] == reason
    assert result[-len(TEXTS[6:]) - 1 : -1] == TEXTS[6:]


def test_the_last_column_of_manythings_may_be_missing(tmp_path: Path) -> None:
    lines = ["Hi.\tHallo!\tCC-BY", "Run!\tLauf!", "Hi.\tyou\tHallo!\tCC-BY", "Go.\tGeh.\tCC-BY"]
    config = SourceConfig(format="manythings")
    path = plain(tmp_path / "deu.txt", "\n".join(lines).encode())
    (source,) = open_source(config, {"": [path]}, ("en", "de"))
    rows = [*source.rows()]
    assert [source.pair(rows[i]) for i in (0, 1, 3)] == [
        ("Hi.", "Hallo!"),
        ("Run!", "Lauf!"),
        ("Go.", "Geh."),
    ]
    with pytest.raises(NoPairError, match="too many columns"):
        source.pair(rows[2])


def test_a_dialect_is_said_in_words(tmp_path: Path) -> None:
    path = plain(tmp_path / "table", b'a;b\n"c;d";e\n')
    assert str(find_dialect(path, None, ",;")) == (
        "2 columns separated by semicolons, cells in quotation marks"
    )
