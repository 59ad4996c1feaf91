"""nmt.lines: lines of plain and compressed files, and a clear message for each kind of
damage.
"""

import lzma
import sys
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from nmt import lines as raw_lines
from nmt.errors import DataError
from nmt.lines import read_raw_lines
from tests.data.packing import PACKERS, Packer, archive, plain, zipped, zstandard_packed

LINES = [str(number**7).encode() for number in range(20_000)]


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
        monkeypatch.setattr(raw_lines, "BLOCK_BYTES", block)
        assert list(read_raw_lines(path)) == lines


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
    assert_refused(
        plain(tmp_path / name, name[0].encode() if name[0] == "\ufeff" else b""), "is empty"
    )


def test_archives_of_empty_files_are_refused(tmp_path: Path) -> None:
    for pack in PACKERS:
        assert_refused(pack(tmp_path / "deu.txt", b""), "is empty")
    assert_refused(plain(tmp_path / "none.zip", b""), "is truncated or damaged")


def test_a_zip_without_text_lists_what_it_holds(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "deu-eng.zip", {"_about.txt": b"x", "__MACOSX/deu.txt": b"x", "folder/": b""}
    )
    assert_refused(path, r"has no text file; it holds: __MACOSX/deu\.txt, _about\.txt, folder/")
    assert_refused(archive(tmp_path / "none.zip", {}), "has no text file; it holds: nothing")


def test_the_member_of_a_zip_may_be_named(tmp_path: Path) -> None:
    path = archive(tmp_path / "both.zip", {"a.txt": b"a\n", "b.txt": b"b\n"})
    assert list(read_raw_lines(path, "b.txt")) == [b"b"]
    assert_refused(path, r"set `member` to one of its files: a\.txt, b\.txt")
    assert_refused(path, r"has no c\.txt; it holds: a\.txt, b\.txt", member="c.txt")


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_truncated_archives_are_refused(tmp_path: Path, pack: Packer, share: float) -> None:
    path = pack(tmp_path / "deu.txt", b"".join(str(number**7).encode() for number in range(20_000)))
    content = path.read_bytes()
    assert_refused(plain(path, content[: int(share * len(content))]), "is truncated or damaged")


@pytest.mark.parametrize("pack", PACKERS)
def test_damaged_archives_are_refused(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "deu.txt", b"".join(str(number**7).encode() for number in range(20_000)))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    assert_refused(plain(path, bytes(content)), "is truncated or damaged")


def test_a_file_with_only_the_name_of_an_archive_is_refused(tmp_path: Path) -> None:
    assert_refused(plain(tmp_path / "a.zip", b"<!DOCTYPE html>"), "is truncated or damaged")
    for ending in ("gz", "bz2", "xz", "zst"):
        assert_refused(
            plain(tmp_path / f"a.{ending}", b"<!DOCTYPE html>"), "is truncated or damaged"
        )


def test_a_zip_with_a_password_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"a.txt": b"secret\n"})
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1
    assert_refused(plain(path, bytes(content)), r"a\.txt cannot be unpacked \(.*password")


def test_other_encodings_and_endless_lines_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_refused(
        plain(tmp_path / "a.txt", "Hi.\tHallo!\n".encode("utf-16")), "is UTF-16; save it as UTF-8"
    )
    monkeypatch.setattr(raw_lines, "BLOCK_BYTES", 10)
    monkeypatch.setattr(raw_lines, "MAX_LINE_BYTES", 100)
    assert_refused(
        plain(tmp_path / "b.txt", b"a\nb\n" + b"x" * 1000),
        "line 3 has more than 100 bytes, so this is not a text file",
    )


@pytest.mark.parametrize("pack", PACKERS)
def test_compressed_files_are_read_under_any_name(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "deu.txt", b"\n".join(LINES) + b"\n")
    sizes: list[int] = []
    assert list(read_raw_lines(path, advance=sizes.append)) == LINES
    assert 0 < sum(sizes) <= path.stat().st_size
    assert list(read_raw_lines(path.rename(tmp_path / "download"))) == LINES


@pytest.mark.parametrize("pack", [pack for pack in PACKERS if pack is not zipped])
def test_compressed_files_may_be_joined(tmp_path: Path, pack: Packer) -> None:
    content = pack(tmp_path / "a", b"\n".join(LINES) + b"\n").read_bytes()
    assert list(read_raw_lines(plain(tmp_path / "b", content + content))) == LINES * 2


@pytest.mark.parametrize("pack", PACKERS)
def test_a_small_file_of_gigabytes_needs_little_memory(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "bomb", b"0" * (1 << 27))
    tracemalloc.start()
    try:
        assert_refused(path, "line 1 has more than 16,777,216 bytes, so this is not a text file")
        assert tracemalloc.get_traced_memory()[1] < 1 << 27
    finally:
        tracemalloc.stop()


def test_memory_that_the_file_asks_for_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 1 << 29}]
    path = plain(tmp_path / "a.xz", lzma.compress(b"text\n", filters=large))
    assert_refused(path, r"needs more than 256 MB to unpack; compress it again with `xz -6`")
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    content = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = plain(tmp_path / "a.zst", content.compress(b"text\n") + content.flush())
    assert_refused(path, r"needs too much memory to unpack; compress it again without --long")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zstandard_packed(tmp_path / "a", b"text\n")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert_refused(
        path, r'reading .zst needs the package zstandard; run: pip install "nmt\[formats\]"'
    )
