"""The raw bytes of text files, plain or compressed, as a stream of bounded memory."""

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Protocol

from nmt.errors import DataError
from nmt.files import explain_read_errors

BLOCK_BYTES = 1 << 18  # read at once
ZSTD_BLOCK_BYTES = 1 << 9  # read at once of .zst: each byte can become 32,768
MAX_LINE_BYTES = 1 << 24  # a file with longer lines is not text
MAX_ZEROS = 0.05  # share of zero bytes; damaged text has a few
# The first bytes of formats that users take for text.
OTHER_FORMATS = {
    b"7z\xbc\xaf\x27\x1c": "7z; unpack it with `7z x`",
    b"%PDF-": "PDF; save its table as text, with tabs",
    b"\xd0\xcf\x11\xe0": "an old Office document; save its table as text, with tabs",
}
MAX_XZ_MEMORY = 1 << 28  # four times what a file from `xz -9` needs


def ignore_progress(_n_bytes: int) -> None:
    """The default for `advance`."""


def read_raw_lines(
    path: Path,
    member: str | None = None,
    language: str = "",
    advance: Callable[[int], object] = ignore_progress,
) -> Iterator[bytes]:
    """The undecoded lines of a plain or compressed file, without line feeds and byte order mark.

    Args:
        member: the file in a .zip; not needed if there is only one candidate.
        language: prefer the file whose name ends with it (".de").
        advance: called with the number of bytes that were read from disk since the last call.

    Raises:
        DataError: the file is missing, empty, damaged or not text.
    """
    blocks = read_blocks(path, member, language, advance)
    rest = b""
    while len(rest) < 3 and (block := next(blocks, b"")):
        rest += block
    rest = _without_mark(path, rest)
    if not rest and not (rest := next(blocks, b"")):
        raise DataError(f"{path}: is empty")
    count = 0
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
        count += len(lines)
        if len(rest) > MAX_LINE_BYTES:
            raise DataError(
                f"{path}: line {count + 1} has more than {MAX_LINE_BYTES:,} bytes, so this is "
                "not "
                "a text file"
            )
    if rest:
        yield from rest.removesuffix(b"\n").split(b"\n")


def read_text_lines(path: Path) -> Iterator[str]:
    """The lines of a plain or compressed UTF-8 file, without line ends. Raises: DataError as
    `read_raw_lines`; or not UTF-8.
    """
    for number, line in enumerate(read_raw_lines(path), 1):
        try:
            yield line.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}, line {number}: not UTF-8 ({error.reason} at byte {error.start + 1})"
            ) from None


def read_blocks(
    path: Path,
    member: str | None = None,
    language: str = "",
    advance: Callable[[int], object] = ignore_progress,
) -> Iterator[bytes]:
    """The uncompressed content in blocks that are not empty; see `read_raw_lines`."""
    with (
        explain_read_errors(path),
        _explain_damage(path),
        path.open("rb") as file,
        _uncompressed(path, file, member, language) as blocks,
    ):
        position = 0
        for block in blocks:
            if block:
                yield block
            before, position = position, file.tell()
            advance(position - before)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _without_mark(path: Path, start: bytes) -> bytes:
    """The first bytes of a file, without a byte order mark. Raises: DataError if they are not UTF-8
    text.
    """
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path}: is UTF-16; save it as UTF-8")
    if start.count(0) > MAX_ZEROS * len(start):
        raise DataError(
            f"{path}: has many zero bytes, so it is UTF-16 or no text; save it as UTF-8 text"
        )
    return start.removeprefix(b"\xef\xbb\xbf")


@contextmanager
def _uncompressed(
    path: Path, file: BinaryIO, member: str | None, language: str
) -> Iterator[Iterator[bytes]]:
    """The content in blocks. The first bytes of the file, or else its name, say how it is
    compressed.
    """
    start = file.read(8)
    file.seek(0)
    for mark, name in OTHER_FORMATS.items():
        if start.startswith(mark):
            raise DataError(f"{path}: is {name}")

    def is_packed(mark: bytes, suffix: str) -> bool:
        return start.startswith(mark) or (path.suffix.lower() == suffix and start != b"")

    if start.startswith(b"PK") or path.suffix == ".zip":
        with (
            zipfile.ZipFile(file) as archive,
            _open_member(path, archive, member or _choose_member(path, archive, language)) as text,
        ):
            yield _blocks_of(text)
    elif is_packed(b"\x1f\x8b", ".gz"):
        with gzip.open(file) as unpacked:
            yield _blocks_of(unpacked)
    elif is_packed(b"BZh", ".bz2"):
        with bz2.open(file) as lines:
            yield _blocks_of(lines)
    elif is_packed(b"\xfd7zXZ\0", ".xz"):
        yield _unpack_xz(path, file)
    elif is_packed(b"\x28\xb5\x2f\xfd", ".zst"):
        yield _unpack_zstd(path, file)
    else:
        yield _blocks_of(file)


def _blocks_of(file: _Readable) -> Iterator[bytes]:
    return iter(partial(file.read, BLOCK_BYTES), b"")


def _unpack_xz(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """All streams of an .xz file. lzma.open would have no limit on memory."""
    rest = file.read(BLOCK_BYTES)
    while rest.strip(b"\0"):  # zeros may follow a stream
        decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY)
        while not decompressor.eof:
            try:
                yield decompressor.decompress(rest, BLOCK_BYTES)
            except lzma.LZMAError as error:
                if "Memory" in str(error):
                    limit = f"{MAX_XZ_MEMORY >> 20} MB"
                    raise DataError(
                        f"{path}: needs more than {limit} to unpack; compress it again with `xz -6`"
                    ) from None
                raise
            rest = (
                file.read(BLOCK_BYTES) if decompressor.needs_input and not decompressor.eof else b""
            )
            if not rest and decompressor.needs_input and not decompressor.eof:
                raise EOFError("the file ends too early")
        rest = decompressor.unused_data or file.read(BLOCK_BYTES)


def _unpack_zstd(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """All frames of a .zst file."""
    try:
        import zstandard
    except ModuleNotFoundError:
        raise DataError(
            f'{path}: reading .zst needs the package zstandard; run: pip install "nmt[formats]"'
        ) from None

    decompressor = None
    while block := file.read(ZSTD_BLOCK_BYTES):
        while block:
            decompressor = decompressor or zstandard.ZstdDecompressor().decompressobj()
            try:
                yield decompressor.decompress(block)
            except zstandard.ZstdError as error:
                if "too much memory" in str(error):
                    raise DataError(
                        f"{path}: needs too much memory to unpack; compress it again without --long"
                    ) from None
                raise EOFError(error) from None
            block = decompressor.unused_data
            if decompressor.eof:
                decompressor = None
            else:
                break
    if decompressor is not None:
        raise EOFError("the file ends too early")


@contextmanager
def _explain_damage(path: Path) -> Iterator[None]:
    try:
        yield
    # zipfile reports some kinds of damage by errors of other types.
    except (
        EOFError,
        zlib.error,
        lzma.LZMAError,
        zipfile.BadZipFile,
        NotImplementedError,
        ValueError,
        OverflowError,
    ) as error:
        raise DataError(f"{path}: is truncated or damaged ({error})") from None
    except OSError as error:
        if error.errno is None:  # from a decompressor, not from the system
            raise DataError(f"{path}: is truncated or damaged ({error})") from None
        raise


@contextmanager
def _open_member(path: Path, archive: zipfile.ZipFile, member: str) -> Iterator[IO[bytes]]:
    try:
        file = archive.open(member)
    except KeyError:
        raise DataError(f"{path}: has no {member}; it holds: {_listing(archive)}") from None
    except (RuntimeError, NotImplementedError) as error:
        raise DataError(f"{path}: {member} cannot be unpacked ({error})") from None
    with file:
        yield file


def _choose_member(path: Path, archive: zipfile.ZipFile, language: str) -> str:
    """The only candidate among the members, not counting notes (`_about.txt`, `README`, `LICENSE`)
    and system files.
    """
    names = [
        name for name in archive.namelist() if PurePosixPath(name).name and not name.endswith("/")
    ]
    if "[Content_Types].xml" in names:
        raise DataError(f"{path}: is an Office document; save its table as text, with tabs")
    candidates = [
        name
        for name in names
        if PurePosixPath(name).name[0] not in "_." and not name.startswith("__MACOSX/")
    ]
    of_language = [
        name for name in candidates if language and PurePosixPath(name).suffix == f".{language}"
    ]
    tables = [
        name
        for name in candidates
        if PurePosixPath(name).suffix.lower() in (".txt", ".tsv", ".csv")
    ]
    for group in (of_language, tables, candidates):
        if len(group) == 1:
            return group[0]
    if not candidates:
        raise DataError(f"{path}: has no text file; it holds: {_listing(archive)}")
    raise DataError(
        f"{path}: set `member` to one of its files: {', '.join(sorted(candidates)[:20])}"
    )


def _listing(archive: zipfile.ZipFile) -> str:
    return ", ".join(sorted(archive.namelist())[:20]) or "nothing"
