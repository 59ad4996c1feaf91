"""nmt.data.sources: pairs from each format, and a clear message for each kind of bad input."""

import gzip
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from nmt.config.schema import SourceConfig, SourceFormat
from nmt.data import sources
from nmt.data.sources import SOURCE_FORMATS, TooFewColumnsError, open_pairs, read_raw_lines
from nmt.errors import DataError

MANYTHINGS = "Hi.\tHallo!\tCC-BY\nRun!\tLauf!\n"
PAIRS = [("Hi.", "Hallo!"), ("Run!", "Lauf!")]

Packer = Callable[[Path, bytes], Path]


def plain(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def gzipped(path: Path, content: bytes) -> Path:
    return plain(path.with_name(f"{path.name}.gz"), gzip.compress(content))


def zipped(path: Path, content: bytes) -> Path:
    return archive(path.with_suffix(".zip"), {"_about.txt": b"about", path.name: content})


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def pairs(config: SourceConfig, src: str = "en", tgt: str = "de") -> list[tuple[str, str]]:
    source = open_pairs(config, config.path, src, tgt)
    return [source.pair(row) for row in source.rows()]


def test_every_format_has_a_function() -> None:
    assert set(SOURCE_FORMATS) == set(get_args(SourceFormat))


@pytest.mark.parametrize("pack", [plain, gzipped, zipped])
def test_manythings_has_english_first_whatever_the_direction(tmp_path: Path, pack: Packer) -> None:
    config = SourceConfig(format="manythings", path=pack(tmp_path / "deu.txt", MANYTHINGS.encode()))
    assert pairs(config) == PAIRS
    assert pairs(config, "de", "en") == [(tgt, src) for src, tgt in PAIRS]


@pytest.mark.parametrize("pack", [plain, gzipped, zipped])
def test_tatoeba_has_ids_and_a_byte_order_mark(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "pairs.tsv", "\ufeff1276\tHi.\t123\tHallo!\r\n1277\tRun!\t124\tLauf!\r\n".encode())
    assert [(src, tgt.strip()) for src, tgt in pairs(SourceConfig(format="tatoeba", path=path))] == PAIRS


@pytest.mark.parametrize("pack", [plain, gzipped, zipped])
def test_columns_are_named_by_the_header_or_numbered(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "table.tsv", "\ufeffid\tdeutsch\tenglish\r\n1\tHallo!\tHi.\r\n2\tLauf!\tRun!\r\n".encode())
    named = SourceConfig(format="tsv", path=path, columns={"en": "english", "de": "deutsch"})
    assert [(src.strip(), tgt) for src, tgt in pairs(named)] == PAIRS
    assert open_pairs(named, path, "en", "de").first_line == 2
    numbered = SourceConfig(format="tsv", path=path, columns={"en": 3, "de": 2})
    assert len(pairs(numbered)) == 3
    assert open_pairs(numbered, path, "en", "de").first_line == 1


@pytest.mark.parametrize("pack", [plain, gzipped, zipped])
def test_aligned_files_are_read_side_by_side(tmp_path: Path, pack: Packer) -> None:
    files = {"en": pack(tmp_path / "a.en", b"Hi.\nRun!\n"), "de": pack(tmp_path / "b.de", b"Hallo!\nLauf!")}
    assert pairs(SourceConfig(format="lines", files=files)) == PAIRS
    assert pairs(SourceConfig(format="lines", files=files), "de", "en") == [(tgt, src) for src, tgt in PAIRS]


def test_aligned_files_may_lie_in_one_zip(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "opus.zip", {"README": b"", "x.de-en.en": b"Hi.\nRun!\n", "x.de-en.de": b"Hallo!\nLauf!\n", "x.xml": b""}
    )
    assert pairs(SourceConfig(format="lines", files={"en": path, "de": path})) == PAIRS


@pytest.mark.parametrize(("src", "tgt", "counts"), [(b"a\nb\nc\n", b"a\n", (3, 1)), (b"a\n", b"a\nb\n\nd", (1, 4))])
def test_aligned_files_of_different_length_are_refused(tmp_path: Path, src: bytes, tgt: bytes, counts: tuple[int, int]) -> None:
    files = {"en": plain(tmp_path / "a.en", src), "de": plain(tmp_path / "a.de", tgt)}
    with pytest.raises(
        DataError, match=rf"a\.en has {counts[0]} lines, but .*a\.de has {counts[1]}: aligned files need the same number"
    ):
        pairs(SourceConfig(format="lines", files=files))


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\n\n", [b"a", b""]),
        (b"\n", [b""]),
        ("\ufeffa\nb".encode(), [b"a", b"b"]),
        (b"a\x0bb\x0cc\xc2\x85d\re\n", [b"a\x0bb\x0cc\xc2\x85d\re"]),
        (b"12345678\n123\n" * 3, [b"12345678", b"123"] * 3),
        (b"1234567890\n" * 2 + b"x", [b"1234567890"] * 2 + [b"x"]),
    ],
)
def test_lines_end_with_line_feeds_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, lines: list[bytes]
) -> None:
    path = plain(tmp_path / "text", content)
    for block in (*range(4, 13), 1000):
        monkeypatch.setattr(sources, "BLOCK_BYTES", block)
        assert list(read_raw_lines(path)) == lines


def test_rows_are_read_as_a_stream(tmp_path: Path) -> None:
    path = plain(tmp_path / "deu.txt", MANYTHINGS.encode())
    rows = open_pairs(SourceConfig(path=path, format="manythings"), path, "en", "de").rows()
    assert next(rows) == (b"Hi.\tHallo!\tCC-BY",)


def test_bad_rows_raise_different_errors(tmp_path: Path) -> None:
    path = plain(tmp_path / "deu.txt", b"Hi.\tHallo!\none column\n\xff\tx\n")
    source = open_pairs(SourceConfig(path=path, format="manythings"), path, "en", "de")
    good, short, undecodable = source.rows()
    assert source.pair(good) == ("Hi.", "Hallo!")
    with pytest.raises(TooFewColumnsError, match="1"):
        source.pair(short)
    with pytest.raises(UnicodeDecodeError):
        source.pair(undecodable)


def assert_refused(path: Path, message: str, member: str | None = None) -> None:
    with pytest.raises(DataError, match=message) as caught:
        list(read_raw_lines(path, member))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path / "absent.txt", "absent.txt: no such file")
    assert_refused(tmp_path, "is a folder, not a file")


@pytest.mark.parametrize("name", ["deu.txt", "deu.txt.gz", "\ufeff.txt"])
def test_empty_files_are_refused(tmp_path: Path, name: str) -> None:
    assert_refused(plain(tmp_path / name, name[0].encode() if name[0] == "\ufeff" else b""), "is empty")


def test_archives_of_empty_files_are_refused(tmp_path: Path) -> None:
    assert_refused(gzipped(tmp_path / "deu.txt", b""), "is empty")
    assert_refused(zipped(tmp_path / "deu.txt", b""), "is empty")
    assert_refused(plain(tmp_path / "none.zip", b""), "is truncated or damaged")


def test_a_zip_without_text_lists_what_it_holds(tmp_path: Path) -> None:
    path = archive(tmp_path / "deu-eng.zip", {"_about.txt": b"x", "__MACOSX/deu.txt": b"x", "folder/": b""})
    assert_refused(path, r"has no text file; it holds: __MACOSX/deu\.txt, _about\.txt, folder/")
    assert_refused(archive(tmp_path / "none.zip", {}), "has no text file; it holds: nothing")


def test_the_member_of_a_zip_may_be_named(tmp_path: Path) -> None:
    path = archive(tmp_path / "both.zip", {"a.txt": b"a\n", "b.txt": b"b\n"})
    assert list(read_raw_lines(path, "b.txt")) == [b"b"]
    assert_refused(path, r"set `member` to one of its files: a\.txt, b\.txt")
    assert_refused(path, r"has no c\.txt; it holds: a\.txt, b\.txt", member="c.txt")


@pytest.mark.parametrize("pack", [gzipped, zipped])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_truncated_archives_are_refused(tmp_path: Path, pack: Packer, share: float) -> None:
    path = pack(tmp_path / "deu.txt", b"".join(str(number**7).encode() for number in range(20_000)))
    content = path.read_bytes()
    assert_refused(plain(path, content[: int(share * len(content))]), "is truncated or damaged")


@pytest.mark.parametrize("pack", [gzipped, zipped])
def test_damaged_archives_are_refused(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "deu.txt", b"".join(str(number**7).encode() for number in range(20_000)))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    assert_refused(plain(path, bytes(content)), "is truncated or damaged")


def test_a_file_with_only_the_name_of_an_archive_is_refused(tmp_path: Path) -> None:
    assert_refused(plain(tmp_path / "a.zip", b"<!DOCTYPE html>"), "is truncated or damaged")
    assert_refused(plain(tmp_path / "a.gz", b"<!DOCTYPE html>"), "is truncated or damaged")


def test_a_zip_with_a_password_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"a.txt": b"secret\n"})
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1
    assert_refused(plain(path, bytes(content)), r"a\.txt cannot be unpacked \(.*password")


def test_other_encodings_and_endless_lines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_refused(plain(tmp_path / "a.txt", "Hi.\tHallo!\n".encode("utf-16")), "is UTF-16; save it as UTF-8")
    monkeypatch.setattr(sources, "BLOCK_BYTES", 10)
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 100)
    assert_refused(plain(tmp_path / "b.txt", b"a\nb\n" + b"x" * 1000), "line 3 has more than 100 bytes, so this is not a text file")


def test_columns_that_are_not_there_are_refused(tmp_path: Path) -> None:
    path = plain(tmp_path / "table.tsv", b"id\ten\tdeu\n1\tHi.\tHallo!\n")
    with pytest.raises(DataError, match=re.escape("no column is named 'de' in its first line, which has: id, en, deu")):
        pairs(SourceConfig(format="tsv", path=path, columns={"en": "en", "de": "de"}))
    with pytest.raises(DataError, match="columns are numbered from 1, there is no column 0"):
        pairs(SourceConfig(format="tsv", path=path, columns={"en": 0, "de": 1}))


def test_tatoebas_export_is_not_taken_for_manythings(tmp_path: Path) -> None:
    path = plain(tmp_path / "pairs.tsv", b"1276\tHi.\t123\tHallo!\n")
    with pytest.raises(DataError, match=r"looks like an export from tatoeba\.org .*; use format tatoeba"):
        pairs(SourceConfig(format="manythings", path=path))
