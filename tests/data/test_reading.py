"""nmt.data.reading: each row is counted, and kept or dropped for a reason."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import CleaningConfig, SourceConfig
from nmt.data import formats, reading
from nmt.data.formats import TableSource, open_source
from nmt.data.reading import Pairs, Tally, clean_rows, read_pairs
from nmt.data.tables import Dialect
from nmt.data.workers import start_workers
from nmt.errors import NmtWarning
from tests.data.packing import plain

TABS = Dialect("\t", is_quoted=False, n_columns=2)
RULES = CleaningConfig(max_characters=40, max_length_ratio=3)


def read(folder: Path, content: bytes, advance: Callable[[int], object] = bool) -> Tally:
    """Reads a table of two columns."""
    source = TableSource(plain(folder / "table.tsv", content), None, 0, 1, TABS, 2)
    with start_workers(1) as workers:
        return read_pairs([source], RULES, workers, Pairs(folder / "out.tsv"), advance)


@pytest.mark.parametrize(
    ("has_accelerators", "line"), [(False, "_Paint\t塗る(_P)\n"), (True, "Paint\t塗る\n")]
)
def test_accelerators_leave_the_pairs_of_a_source_that_has_them(
    tmp_path: Path, has_accelerators: bool, line: str
) -> None:
    path = plain(tmp_path / "table.tsv", "_Paint\t塗る(_P)\n".encode())
    columns: dict[str, int | str] = {"en": 1, "ja": 2}
    config = SourceConfig(format="tsv", columns=columns, accelerators=has_accelerators)
    (source,) = open_source(config, {"": [path]}, ("en", "ja"))
    assert clean_rows(source, RULES, [*source.rows()], 1).lines == line


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK_ROWS", 3)
    steps: list[int] = []
    tally = read(tmp_path, b"Hi.\tHallo!\nbad\n" * 20, steps.append)
    assert tally.lines == {formats.TOO_FEW_COLUMNS: list(range(2, 22, 2))}
    assert tally.dropped[formats.TOO_FEW_COLUMNS] == 20
    assert sum(steps) == len(b"Hi.\tHallo!\nbad\n") * 20


@pytest.mark.filterwarnings("error::nmt.errors.NmtWarning")
def test_few_rows_in_a_code_page_give_a_warning_unless_others_are_in_utf8(tmp_path: Path) -> None:
    row = "Grüße.\tGreetings.\n"
    ascii_rows, bad = b"Hi.\tHallo!\n" * 9, row.encode("cp1252")
    with pytest.warns(NmtWarning, match=r"not UTF-8 in 1 rows \(the first: line 10\); .*iconv"):
        read(tmp_path, ascii_rows + bad)
    read(tmp_path, ascii_rows + bad + row.encode())
