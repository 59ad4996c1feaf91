"""nmt.data.formats: pairs from each format, and a clear message for each kind of bad input."""

from pathlib import Path
from typing import Any

import pytest

from nmt.config.schema import SourceConfig
from nmt.data.formats import NoPairError, PairSource, find_files, open_source
from nmt.errors import DataError
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


def test_aligned_files_may_lie_in_one_zip(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "opus.zip",
        {
            "README": b"",
            "x.de-en.en": b"Hi.\nRun!\n",
            "x.de-en.de": b"Hallo!\nLauf!\n",
            "x.xml": b"",
        },
    )
    assert pairs(SourceConfig(format="lines", files={"en": path, "de": path})) == PAIRS


def test_bad_rows_raise_different_errors(tmp_path: Path) -> None:
    path = plain(tmp_path / "deu.txt", b"Hi.\tHallo!\none column\n\xff\tx\n")
    (source,) = sources(SourceConfig(path=path, format="manythings"))
    good, short, undecodable = source.rows()
    assert source.pair(good) == ("Hi.", "Hallo!")
    with pytest.raises(NoPairError, match=r"too few columns.*has 1 column"):
        source.pair(short)
    with pytest.raises(UnicodeDecodeError):
        source.pair(undecodable)


def test_tatoebas_export_is_not_taken_for_manythings(tmp_path: Path) -> None:
    path = plain(tmp_path / "pairs.tsv", b"1276\tHi.\t123\tHallo!\n")
    with pytest.raises(
        DataError, match=r"looks like an export from tatoeba\.org .*; use format tatoeba"
    ):
        pairs(SourceConfig(format="manythings", path=path))


def test_several_files_are_one_source(tmp_path: Path) -> None:
    table = {"en": 1, "de": 2}
    (tmp_path / "parts").mkdir()
    for number, (src, tgt) in enumerate(PAIRS * 2):
        pack = gzipped if number % 2 else plain
        pack(tmp_path / "parts" / f"{number}.tsv", f"{src}\t{tgt}\n".encode())
    pattern = tmp_path / "parts" / "*.tsv*"
    assert pairs(SourceConfig(format="tsv", path=pattern, columns=table)) == PAIRS * 2
    listed = [tmp_path / "parts" / "1.tsv.gz", tmp_path / "parts" / "[02].tsv"]
    mixed = [PAIRS[1], PAIRS[0], PAIRS[0]]
    assert pairs(SourceConfig(format="tsv", path=listed, columns=table)) == mixed
    named = plain(tmp_path / "a[1].tsv", b"Hi.\tHallo!\n")
    assert find_files(named) == [named]


def test_several_aligned_files_need_partners(tmp_path: Path) -> None:
    for number, (src, tgt) in enumerate(PAIRS):
        plain(tmp_path / f"{number}.en", f"{src}\n".encode())
        plain(tmp_path / f"{number}.de", f"{tgt}\n".encode())
    config = SourceConfig(format="lines", files={"en": tmp_path / "*.en", "de": tmp_path / "*.de"})
    assert pairs(config) == PAIRS
    (tmp_path / "1.de").unlink()
    with pytest.raises(DataError, match="2 files for en, but 1 for de; name as many for both"):
        pairs(config)


def test_members_of_a_zip_without_a_name_are_no_candidates(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"x.tsv": b"a\tb\n", "y": b""})
    content = path.read_bytes().replace(b"y", b"/")
    assert list(read_raw_lines(plain(path, content))) == [b"a\tb"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("*.csv", r"\*\.csv: no file matches; check the pattern"),
        ("a" * 5000 + "*", r"a\*: cannot be read \(File name too long\)$"),
    ],
)
def test_a_path_without_files_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_files(tmp_path / name)
