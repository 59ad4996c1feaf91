"""nmt.data.formats, nmt.data.tables: pairs from each format, and a clear message for each kind of
bad input.
"""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from nmt.config.schema import SourceConfig
from nmt.data.formats import NoPairError, PairSource, find_files, open_source
from nmt.lines import read_raw_lines
from tests.data.packing import Packer, archive, gzipped, plain, zipped

PAIRS = [("Hi.", "Hallo!"), ("Run!", "Lauf!")]


def sources(config: SourceConfig, src: str = "en", tgt: str = "de") -> list[PairSource]:
    paths = config.files or {"": config.path or []}
    files = {language: find_files(each) for language, each in paths.items()}
    return open_source(config, files, (src, tgt))


def pairs(config: SourceConfig, src: str = "en", tgt: str = "de") -> list[tuple[str, str]]:
    rows = (source.pair(row) for source in sources(config, src, tgt) for row in source.rows())
    return [pair for pair in rows if pair is not None]


NAMED = "\ufeffid\tdeutsch\tenglish\r\n1\tHallo!\tHi.\r\n2\tLauf!\tRun!\r\n"
TATOEBA = "\ufeff1276\tHi.\t123\tHallo!\r\n1277\tRun!\t124\tLauf!\r\n"


@pytest.mark.parametrize("pack", [plain, gzipped, zipped])
@pytest.mark.parametrize(
    ("kind", "content", "columns", "n_pairs"),
    [
        ("manythings", "Hi.\tHallo!\tCC-BY\nRun!\tLauf!\n", None, 2),  # English is the first
        ("tatoeba", TATOEBA, None, 2),
        ("tsv", NAMED, {"en": "english", "de": "deutsch"}, 2),
        ("tsv", NAMED, {"en": 3, "de": 2}, 3),  # the names are a row, too
    ],
)
def test_a_table_in_both_directions(
    tmp_path: Path, pack: Packer, kind: Any, content: str, columns: Any, n_pairs: int
) -> None:
    path = pack(tmp_path / "table.tsv", content.encode())
    config = SourceConfig(format=kind, path=path, columns=columns)
    for languages in (("en", "de"), ("de", "en")):
        found = [(src.strip(), tgt.strip()) for src, tgt in pairs(config, *languages)]
        assert found[-2:] == [pair if languages[0] == "en" else pair[::-1] for pair in PAIRS]
        assert len(found) == n_pairs
    assert sources(config)[0].first_line == content.count("\n") + 1 - n_pairs


@pytest.mark.parametrize("pack", [plain, gzipped, zipped])
def test_aligned_files_are_read_side_by_side(tmp_path: Path, pack: Packer) -> None:
    files = {
        "en": pack(tmp_path / "a.en", b"Hi.\nRun!\n"),
        "de": pack(tmp_path / "b.de", b"Hallo!\nLauf!"),
    }
    config = SourceConfig(format="lines", files=files)
    assert pairs(config) == PAIRS
    assert pairs(config, "de", "en") == [(tgt, src) for src, tgt in PAIRS]


def test_a_pattern_or_a_list_names_several_files(tmp_path: Path) -> None:
    files = [plain(tmp_path / name, b"") for name in ("0.tsv", "1.tsv.gz", "2.tsv", "3[1].tsv")]
    assert find_files(tmp_path / "*.tsv*") == files
    listed = [files[1], tmp_path / "[02].tsv", files[3]]
    assert find_files(listed) == [files[1], files[0], files[2], files[3]]


def test_several_aligned_files_are_paired(tmp_path: Path) -> None:
    for number, (src, tgt) in enumerate(PAIRS):
        plain(tmp_path / f"{number}.en", f"{src}\n".encode())
        plain(tmp_path / f"{number}.de", f"{tgt}\n".encode())
    config = SourceConfig(format="lines", files={"en": tmp_path / "*.en", "de": tmp_path / "*.de"})
    assert pairs(config) == PAIRS


def test_members_of_a_zip_without_a_name_are_no_candidates(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"x.tsv": b"a\tb\n", "y": b""})
    content = path.read_bytes().replace(b"y", b"/")
    assert list(read_raw_lines(plain(path, content))) == [b"a\tb"]


# The dialect of a whole file decides how its rows are read

TEXTS = [
    ('The baker says: "Not now!"', 'Der Bäcker sagt: "Nicht jetzt!"'),
    ('"Now," she said.', '"Jetzt", sagte sie.'),
    ("One line,\nand another.", "Eine Zeile,\nund noch eine.\n\nEnde."),
    ("A tab\tin a sentence; and a | bar.", "Ein Tab\tim Satz."),
    ("Good morning!", "Guten Morgen!"),
    *((f"House {number}, please.", f"Haus {number} bitte.") for number in range(20)),
]


COLUMNS: Any = {"en": 1, "de": 2}


def read(path: Path, kind: Any = "tsv", **columns: Any) -> list[tuple[str, str] | str]:
    """The pair of each row, or why it has none."""
    (source,) = sources(SourceConfig(format=kind, path=path, columns=columns or COLUMNS))
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
    path = plain(tmp_path / "deu.txt", "\n".join(lines).encode())
    assert read(path, "manythings") == [*PAIRS, "3 too many columns", ("Go.", "Geh.")]
