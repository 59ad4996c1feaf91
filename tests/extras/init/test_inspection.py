"""What `nmt init` sees in files of sentence pairs."""

import gzip
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.extras.init.inspection import (
    PairFiles,
    inspect_files,
    inspect_table,
    language_of_name,
)

ENGLISH = (
    "The dog sees the man.",
    "What do you want, and why?",
    "He was not there when I came.",
    'She said "no" to me.',
)
GERMAN = (
    "Der Hund sieht den Mann.",
    "Was willst du, und warum?",
    "Er war nicht da, als ich kam.",
    "Sie hat nein zu mir gesagt.",
)
PAIRS = [
    (f"{en} {i}", f"{de} {i}") for i in range(5) for en, de in zip(ENGLISH, GERMAN, strict=True)
]


def write(path: Path, rows: Sequence[Sequence[str]], separator: str = "\t") -> Path:
    def quote(cell: str) -> str:
        return cell if separator == "\t" else '"' + cell.replace('"', '""') + '"'

    path.write_text(
        "".join(separator.join(map(quote, row)) + "\n" for row in rows), encoding="utf-8"
    )
    return path


def columns(files: PairFiles) -> list[tuple[int, str | None, str | None]]:
    return [(column.number, column.name, column.language) for column in files.columns]


@pytest.mark.parametrize("separator", ["\t", ","])
def test_a_table_with_any_separator(tmp_path: Path, separator: str) -> None:
    files = inspect_table(write(tmp_path / "pairs.txt", PAIRS, separator))
    assert (files.separator, files.n_pairs) == (separator, 20)
    assert columns(files) == [(1, None, "en"), (2, None, "de")]
    assert files.columns[0].example == "He was not there when I cam..."


def test_the_columns_of_text_among_others(tmp_path: Path) -> None:
    attribution = "CC-BY 2.0 (France) Attribution: tatoeba.org #1 (CK) and #2 (the man)"
    rows = [(str(i), de, "greeting", en, attribution) for i, (en, de) in enumerate(PAIRS)]
    assert columns(inspect_table(write(tmp_path / "pairs.tsv", rows))) == [
        (2, None, "de"),
        (4, None, "en"),
    ]


@pytest.mark.parametrize(
    ("header", "languages"),
    [
        (("English", "German"), ["en", "de"]),
        (("source", "target"), ["en", "de"]),
        (("en", "de"), ["en", "de"]),
        (("fr", "de"), ["fr", "de"]),  # the name decides the language
    ],
)
def test_a_header_row(tmp_path: Path, header: tuple[str, str], languages: list[str]) -> None:
    files = inspect_table(write(tmp_path / "pairs.tsv", [header, *PAIRS]))
    assert files.n_pairs == 20
    assert columns(files) == [(1, header[0], languages[0]), (2, header[1], languages[1])]


def test_a_header_that_names_one_column_only(tmp_path: Path) -> None:
    rows = [(f"Das ist das Haus {i}.", f"This is the house {i}.") for i in range(20)]
    files = inspect_table(write(tmp_path / "pairs.csv", [("de",), *rows], ","))
    assert (files.n_pairs, [column.name for column in files.columns]) == (20, ["de", None])


def test_packed_tables(tmp_path: Path) -> None:
    table = write(tmp_path / "pairs.tsv", PAIRS)
    (tmp_path / "pairs.tsv.gz").write_bytes(gzip.compress(table.read_bytes()))
    with zipfile.ZipFile(tmp_path / "deu-eng.zip", "w") as archive:
        archive.write(table, "deu.txt")
        archive.writestr("_about.txt", "notes")
    for name in ("pairs.tsv.gz", "deu-eng.zip"):
        assert inspect_table(tmp_path / name).n_pairs == 20


def test_two_files(tmp_path: Path) -> None:
    for name, side in (("a.txt", 0), ("b.txt", 1)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
    files = inspect_files(tmp_path / "a.txt", tmp_path / "b.txt")
    assert (files.n_pairs, [column.language for column in files.columns]) == (20, ["en", "de"])
    (tmp_path / "b.txt").write_text("Ja.\n", encoding="utf-8")
    text = r"a.txt has 20 lines, but .*b.txt has 1: aligned files need the same number"
    with pytest.raises(DataError, match=text):
        inspect_files(tmp_path / "a.txt", tmp_path / "b.txt")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is empty"),
        (b"One sentence.\nAnother, shorter.\n", r"no columns found \(tried tabs and commas\)"),
        (b"1\t2\n3\t4\n", "has no two columns of text"),
        (b"a\tb\nSch\xf6n\tb\n", r"line 2: not UTF-8"),
        ("One\tEins\n".encode("utf-16"), "is UTF-16"),
        (b"\n\n", "no columns found"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "pairs.tsv").write_bytes(content)
    with pytest.raises(DataError, match=text):
        inspect_table(tmp_path / "pairs.tsv")


def test_languages_have_names() -> None:
    names = ("de", " EN ", "German", "chinese", "source", "")
    assert [*map(language_of_name, names)] == ["de", "en", "de", "zh", None, None]
