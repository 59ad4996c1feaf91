"""nmt.lines: no line is lost or late, and there is a clear message for each kind of damage."""

import io
import lzma
import os
import sys
import tracemalloc
from collections.abc import Iterator
from io import BufferedReader
from itertools import chain
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from nmt import lines as module
from nmt.errors import DataError
from nmt.lines import read_lines, read_raw_lines, read_text_lines, stream_lines, write_lines
from tests.data.packing import PACKERS, Packer, archive, plain, zipped, zstandard_packed

LINES = [str(number**7).encode() for number in range(12_000)]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\n\n", [b"a", b""]),
        (b"\n", [b""]),
        ("\ufeffa\nb".encode(), [b"a", b"b"]),
        ("\ufeffa\r\n\r\nb\u2028c\n".encode(), [b"a", b"", "b\u2028c".encode()]),
        (b"PKWs sind teuer.\n", [b"PKWs sind teuer."]),  # begins as the name of a format
        (b"a\x0bb\x0cc\xc2\x85d\re\n", [b"a\x0bb\x0cc\xc2\x85d\re"]),
        (b"12345678\n123\n" * 3, [b"12345678", b"123"] * 3),
        (b"1234567890\n" * 2 + b"x", [b"1234567890"] * 2 + [b"x"]),
        (b"a\r\nb\rc\r\n\r\n", [b"a", b"b\rc", b""]),
        (b"a\r\r\nb\r\r\n", [b"a\r", b"b\r"]),
        (b"a\rb\rc", [b"a", b"b", b"c"]),
        (b"a\r\rb\r", [b"a", b"", b"b"]),
        (b"a\rb\rc\rd\re\nf\r\ng\r", [b"a", b"b", b"c", b"d", b"e", b"f", b"g"]),
        *(
            ("\ufeffSchön\r\n你好\n".encode(encoding), ["Schön".encode(), "你好".encode()])
            for encoding in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
        ),
        ("\ufeffa\n".encode("utf-16-le") + b"\0\xd8\n\0b\0", [b"a", b"\xed\xa0\x80", b"b"]),
    ],
)
def test_lines_of_any_unicode_encoding_end_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, lines: list[bytes]
) -> None:
    path = plain(tmp_path / "text", content)
    for block in (*range(4, 13), 1000):
        monkeypatch.setattr(module, "BLOCK_BYTES", block)
        assert list(read_raw_lines(path)) == lines
    if b"\xed" not in lines[-2:][0]:
        texts = [line.decode() for line in lines]
        assert read_lines(path) == [*read_text_lines(path)] == texts
        assert [*chain.from_iterable(stream(content))] == texts


def assert_refused(path: Path, message: str, member: str | None = None) -> None:
    with pytest.raises(DataError, match=message) as caught:
        list(read_raw_lines(path, member))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_the_member_of_a_zip_may_be_named(tmp_path: Path) -> None:
    path = archive(tmp_path / "both.zip", {"a.txt": b"a\n", "b.txt": b"b\n"})
    assert list(read_raw_lines(path, "b.txt")) == [b"b"]
    assert_refused(path, r"set `member` to one of its files, or unpack it: a\.txt, b\.txt")
    assert_refused(path, r"has no c\.txt; it holds: a\.txt, b\.txt", member="c.txt")
    path = archive(
        tmp_path / "x.zip", {"_about.txt": b"x", "__MACOSX/deu.txt": b"x", "folder/": b""}
    )
    assert_refused(path, r"has no text file; it holds: __MACOSX/deu\.txt, _about\.txt, folder/")
    assert_refused(archive(tmp_path / "none.zip", {}), "has no text file; it holds: nothing")


@pytest.mark.parametrize("pack", PACKERS)
def test_damaged_and_empty_archives_are_refused(tmp_path: Path, pack: Packer) -> None:
    assert_refused(pack(tmp_path / "empty", b""), "is empty")
    path = pack(tmp_path / "deu.txt", b"".join(LINES))
    content = path.read_bytes()
    assert_refused(plain(path.with_stem("page"), b"<!DOCTYPE html>"), "is truncated or damaged")
    for share in (0.1, 0.5, 0.95):
        part = content[: int(share * len(content))]
        assert_refused(plain(path, part), "is truncated or damaged")
    half = len(content) // 2
    changed = content[:half] + bytes([content[half] ^ 255]) + content[half + 1 :]
    assert_refused(plain(path, changed), "is truncated or damaged")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("deu.txt", b"", "is empty"),
        ("deu.txt.gz", b"", "is empty"),
        ("none.zip", b"", "is empty"),
        ("mark.txt", "\ufeff".encode(), "is empty"),
        ("deu.txt", "Hi.\tHallo!\n".encode("utf-16-le"), "is UTF-16 or no text; save it as UTF"),
        ("deu.txt", "Hi.\n".encode("utf-16") + b"x", r"is not UTF-16, as .* \(truncated data\)"),
        ("deu.txt", b"\xff\xfe\0\0\xff\xff\xff\xff", "is not UTF-32, as its first bytes say"),
    ],
)
def test_files_without_text_are_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    assert_refused(tmp_path / name, f"{name}: no such file")
    assert_refused(tmp_path, "is a folder, not a file")
    assert_refused(plain(tmp_path / name, content), message)


def test_a_zip_with_a_password_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"a.txt": b"secret\n"})
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1
    assert_refused(plain(path, bytes(content)), r"a\.txt cannot be unpacked \(.*password")


@pytest.mark.parametrize("pack", PACKERS)
def test_compressed_files_are_read_under_any_name(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "deu.txt", b"\n".join(LINES) + b"\n")
    sizes: list[int] = []
    assert list(read_raw_lines(path, advance=sizes.append)) == LINES
    assert 0 < sum(sizes) <= path.stat().st_size
    assert list(read_raw_lines(path.rename(tmp_path / "download"))) == LINES


@pytest.mark.parametrize("pack", PACKERS)
def test_what_is_not_unpacked_is_called_packed(tmp_path: Path, pack: Packer) -> None:
    path = pack(tmp_path / "deu.txt", LINES[1])
    with pytest.raises(DataError, match=r": is compressed \(\.\w+\); unpack it first"):
        read_lines(path)
    with path.open("rb") as file, pytest.raises(DataError, match="x: is compressed"):
        list(stream_lines(file, "x"))


@pytest.mark.parametrize("pack", [pack for pack in PACKERS if pack is not zipped])
def test_compressed_files_may_be_joined(tmp_path: Path, pack: Packer) -> None:
    content = pack(tmp_path / "a", b"\n".join(LINES) + b"\n").read_bytes()
    assert list(read_raw_lines(plain(tmp_path / "b", content + content))) == LINES * 2


@pytest.mark.parametrize("pack", PACKERS)
def test_a_small_file_of_gigabytes_needs_little_memory(tmp_path: Path, pack: Packer) -> None:
    part = 1 << (27 if pack is zipped else 24)  # the other files may be joined, which is faster
    path = pack(tmp_path / "bomb", b"0" * part)
    path.write_bytes(path.read_bytes() * ((1 << 27) // part))
    tracemalloc.start()
    try:
        assert_refused(path, "line 1: longer than 16,777,216 bytes; this is not a text file")
        assert tracemalloc.get_traced_memory()[1] < 1 << 27
    finally:
        tracemalloc.stop()


def test_memory_that_the_file_asks_for_is_limited(tmp_path: Path) -> None:
    large = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 1 << 29}]
    path = plain(tmp_path / "a.xz", lzma.compress(b"text\n", filters=large))
    assert_refused(path, r"needs too much memory to unpack; compress it again with `xz -6`")
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    content = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = plain(tmp_path / "a.zst", content.compress(b"text\n") + content.flush())
    assert_refused(path, r"needs too much memory to unpack; .* or with zstd without --long")


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="a pipe has no name here")
def test_a_pipe_is_called_one() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb"), open(writing, "wb"):
        message = "is a pipe; write its content to a file and name that"
        assert_refused(Path(f"/dev/fd/{reading}"), message)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zstandard_packed(tmp_path / "a", b"text\n")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    message = r'reading .zst needs the package zstandard; run: pip install "nmt\[formats\]"'
    assert_refused(path, message)


def test_written_lines_are_utf8_with_line_feeds_only(tmp_path: Path) -> None:
    write_lines(tmp_path / "file", ["Grüß Gott!", "", "a\u2028b"])
    assert (tmp_path / "file").read_bytes() == "Grüß Gott!\n\na\u2028b\n".encode()
    assert read_lines(plain(tmp_path / "empty", b"")) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "file",
            b"one\nSch\xf6n\n",
            ", line 2: not UTF-8 (invalid start byte at byte 4); write it again",
        ),
        (
            "file",
            b"\xef\xbb\xbf\xff",
            ", line 1: not UTF-8 (invalid start byte at byte 1); write it again",
        ),
        ("file", b"one\ntwo", ", line 2: the file is cut off here; write it again"),
        ("absent", b"", ": no such file; write it again"),
        ("", b"", ": is a folder, not a file"),
        ("file/below", b"", ": cannot be read (Not a directory); write it again"),
    ],
)
def test_the_message_says_what_is_wrong_and_what_to_do(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    plain(tmp_path / "file", content)
    with pytest.raises(DataError) as caught:
        read_lines(tmp_path / name, advice="write it again", needs_final_line_feed=True)
    assert str(caught.value) == f"{tmp_path / name}{message}"


def stream(content: bytes) -> Iterator[list[str]]:
    return stream_lines(BufferedReader(io.BytesIO(content)), "in.txt")


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\ufeff")),
        min_size=1,
    ),
    st.booleans(),
)
def test_every_line_comes_once(texts: list[str], is_ended: bool) -> None:
    content = "\n".join(texts) + "\n" * is_ended
    lines = [*chain.from_iterable(stream(content.encode()))]
    assert lines == (texts if is_ended or texts[-1] else texts[:-1])


def test_no_line_waits_for_a_later_one() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as stream, open(writing, "wb", buffering=0) as pipe:
        batches = stream_lines(stream, "pipe")
        pipe.write(b"one\ntwo\nthr")
        assert next(batches) == ["one", "two"]
        pipe.write(b"ee\n")
        pipe.close()
        assert list(batches) == [["three"]]
