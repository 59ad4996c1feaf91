"""nmt.data.reading: each row is counted, and kept or dropped for a reason."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import CleaningConfig, SourceConfig
from nmt.data import formats, reading
from nmt.data.formats import TableSource, open_source
from nmt.data.reading import Pairs, Tally, clean_rows, read_pairs
from nmt.data.suspicion import rules
from nmt.data.tables import Dialect
from nmt.data.workers import Workers, start_workers
from nmt.errors import DataError, NmtWarning
from nmt.text import tokenizers
from tests.data.packing import plain

TABS = Dialect("\t", is_quoted=False, n_columns=2)
RULES = CleaningConfig(max_characters=40, max_length_ratio=3)


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [
        ("Hi.", "Hallo!", None),
        ("", "Hallo!", rules.EMPTY_SOURCE),
        ("Hi.", "", rules.EMPTY_TARGET),
        ("a" * 50, "b" * 50, None),
        ("a" * 51, "b" * 50, reading.TOO_LONG),
        ("a" * 50, "b" * 51, reading.TOO_LONG),
        ("a" * 10, "b" * 30, None),
        ("a" * 10, "b" * 31, reading.LENGTH_RATIO),
        ("a" * 31, "b" * 10, reading.LENGTH_RATIO),
        ("The cat sleeps.", "nan", rules.MISSING_VALUE),
        ("#N/A", "Die Katze schläft im Garten", rules.MISSING_VALUE),
        ("<NA>", "猫が庭で寝ています。", rules.MISSING_VALUE),
        ("#DIV/0!", "Die Katze schläft im Garten.", rules.MISSING_VALUE),
        ("NULL", "Кошка спит.", None),  # two words could be its meaning
        ("null", "zero", None),
        ("None", "Keine", None),
        ("N/A", "nicht verfügbar", None),
        ("na", "on the table", None),
        ("nan", "NaN", None),
        ("The cat sleeps.", "-", rules.NO_LETTERS),
        ("—", "Guten Tag", rules.NO_LETTERS),
        ("???", "แมวนอนหลับอยู่ในสวน", rules.NO_LETTERS),
        ("%", "Prozent", None),
        ("...", "…", None),
        ("?!", "🙂", None),
        ("In 1984.", "१९८४ में।", None),
        ("42", "Ⅷ", None),
    ],
)
def test_why_a_pair_is_dropped(src: str, tgt: str, reason: str | None) -> None:
    config = CleaningConfig(max_characters=50, max_length_ratio=2.0)
    assert reading.drop_reason(src, tgt, config) == reason
    assert reason is None or reason in reading.DROP_REASONS


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with start_workers(1) as started:
        yield started


Reader = Callable[..., tuple[Pairs, Tally]]


@pytest.fixture
def read(tmp_path: Path, workers: Workers) -> Reader:
    """Reads a table of two columns from bytes."""

    def read_table(
        content: bytes, advance: Callable[[int], object] = bool, **options: Any
    ) -> tuple[Pairs, Tally]:
        path, output = plain(tmp_path / "table.tsv", content), Pairs(tmp_path / "out.tsv")
        source = TableSource(path, None, 0, 1, TABS, 2)
        return output, read_pairs([source], RULES, workers, output, advance, **options)

    return read_table


def test_pairs_are_cleaned_and_every_repair_is_counted(read: Reader) -> None:
    pairs, tally = read("Hi.\tHallo!\n  Run! \tLauf\u200b!\nOh\u00a0no\tScho\u0308n\n".encode())
    cleaned = [("Hi.", "Hallo!"), ("Run!", "Lauf!"), ("Oh no", "Schön")]
    assert list(pairs.stream()) == cleaned
    assert list(pairs.stream(np.array([True, False, True]))) == cleaned[::2]
    assert tally.repaired == {
        tokenizers.WHITE_SPACE: 2,
        tokenizers.CONTROL_CHARACTERS: 1,
        tokenizers.UNICODE_NFC: 1,
    }


@pytest.mark.parametrize("has_accelerators", [False, True])
def test_accelerators_leave_the_pairs_of_a_source_that_has_them(
    tmp_path: Path, workers: Workers, has_accelerators: bool
) -> None:
    path = plain(tmp_path / "table.tsv", "_Paint\t塗る(_P)\n".encode())
    columns: dict[str, int | str] = {"en": 1, "ja": 2}
    config = SourceConfig(format="tsv", columns=columns, accelerators=has_accelerators)
    output = Pairs(tmp_path / "out.tsv")
    read_pairs(open_source(config, {"": [path]}, ("en", "ja")), RULES, workers, output, bool)
    expected = ("Paint", "塗る") if has_accelerators else ("_Paint", "塗る(_P)")
    assert [*output.stream()] == [expected]


@given(st.lists(st.binary(max_size=60), max_size=30))
def test_nothing_is_dropped_silently(rows: list[bytes]) -> None:
    source = TableSource(Path("none"), None, 0, 1, TABS, 2)
    chunk = clean_rows(source, RULES, [(row.replace(b"\n", b"\t"),) for row in rows], 1)
    kept = chunk.lines.count("\n")
    n_blank = sum(not row.strip(b" ") for row in rows)
    assert chunk.tally.read == len(rows) - n_blank == kept + chunk.tally.dropped.total()
    assert len(chunk.fingerprints) == kept * 3 * 8
    assert all(line.count("\t") == 1 for line in chunk.lines.split("\n")[:-1])


def test_line_numbers_are_right_across_chunks_and_only_the_first_are_listed(
    read: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK_ROWS", 3)
    steps: list[int] = []
    _, tally = read(b"Hi.\tHallo!\nbad\n" * 20, steps.append)
    assert tally.lines == {formats.TOO_FEW_COLUMNS: list(range(2, 22, 2))}
    assert tally.dropped[formats.TOO_FEW_COLUMNS] == 20
    assert sum(steps) == len(b"Hi.\tHallo!\nbad\n") * 20


def test_the_place_of_swapped_languages_is_named(
    read: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK_ROWS", 100)
    right, swapped = b"the dog and the cat\tder Hund und die Katze\n", b"der und die\tthe and are\n"
    with pytest.raises(DataError, match=r"the languages are swapped.*\(lines 201 to 250\)"):
        read(right * 150 + swapped * 100, languages=("en", "de"))


def test_few_rows_in_a_code_page_give_a_warning_unless_others_are_in_utf8(read: Reader) -> None:
    row = "Grüße.\tGreetings.\n"
    ascii_rows, bad = b"Hi.\tHallo!\n" * 9, row.encode("cp1252")
    with pytest.warns(NmtWarning, match=r"not UTF-8 in 1 rows \(the first: line 10\); .*iconv"):
        read(ascii_rows + bad)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(ascii_rows + bad + row.encode())
