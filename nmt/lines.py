"""Lines of text: whole files, streams, and packed files in bounded memory.

All are read alike. A byte order mark says whether a text is in UTF-8, UTF-16 or UTF-32; without
one, it must be in UTF-8. Lines end with \\n or \\r\\n, or all with \\r; see `split_lines`.
"""

import bz2
import codecs
import gzip
import lzma
import select
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from io import BufferedIOBase, BufferedReader
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, TextIO

from nmt.errors import DataError, NmtError
from nmt.files import explain_read_errors, explain_write_errors, replacing

# Limits of `stream_lines`. The memory of attention grows with a batch.
STREAM_BLOCK_BYTES = 1 << 16  # read at once
BATCH_LINES, BATCH_BYTES = 2048, 1 << 18  # a batch ends at about this size
MAX_STREAMED_BYTES = 1 << 20  # of a line
PIPE_WAIT = 0.02  # seconds for a pipe to fill again

# Limits of packed files.
BLOCK_BYTES = 1 << 18  # read at once
FRAME_BLOCK_BYTES = 1 << 9  # read at once of .xz and .zst: each byte can become 32,768
MAX_LINE_BYTES = 1 << 24  # a file with longer lines is not text
MAX_ZEROS = 0.05  # share of zero bytes; damaged text has a few
# The first bytes of packed files.
MARKS = {
    b"PK\x03\x04": ".zip",
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\0": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
}
MAX_XZ_MEMORY = 1 << 28  # four times what a file from `xz -9` needs

# Byte order marks. That of UTF-32 begins with that of UTF-16, so it comes first.
ENCODINGS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# For messages about text that is not UTF-8. Nothing in a file says which code page it has.
CONVERT = (
    "save it as UTF-8, or convert it with `iconv -f CP1252 -t UTF-8 FILE > NEW` from its own code "
    "page (Windows: CP1252 in western Europe, CP1250 in central Europe, CP1251 for Cyrillic, CP932 "
    "in Japan, GB18030 in China; old Macintosh programs: MACINTOSH)"
)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a UTF-8 file line by line; each line ends with a line feed on every system."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


@contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """The file to write lines into; without `path`, stdout.

    An existing file is replaced when the block ends. Until then the lines are in `PATH.partial`,
    where they stay after an error.

    Raises:
        DataError: the file cannot be written, or an error ended the lines.
    """
    if path is None:
        yield sys.stdout
        return
    if path.exists() and not path.is_file():  # a device or a pipe, which cannot be replaced
        with explain_write_errors(path), path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    partial_path = path.resolve().with_name(f"{path.resolve().name}.partial")
    try:
        with (
            explain_write_errors(partial_path),
            replacing(path, partial_path),
            partial_path.open("w", encoding="utf-8", newline="\n") as file,
        ):
            yield file
    except (NmtError, KeyboardInterrupt) as error:
        if not partial_path.is_file() or not partial_path.stat().st_size:
            raise
        remark = f"finished lines are in {partial_path}"
        if isinstance(error, NmtError):
            raise DataError(f"{error}; {remark}") from None
        print(f"nmt: {remark}", file=sys.stderr)
        raise


def read_lines(
    path: Path,
    *,
    advice: str = "",
    needs_final_line_feed: bool = False,
    max_bytes: int | None = None,
) -> list[str]:
    """The lines of a whole file, without line ends and byte order mark.

    Args:
        advice: what to do about an error, for its message.
        needs_final_line_feed: refuse a file whose last line has no end: it was cut off.
        max_bytes: refuse a larger file before it is read.

    Raises:
        DataError: the file is missing, too large, cannot be read, is not UTF-8 (the line is named),
            or is cut off.
    """
    ending = advice and f"; {advice}"
    with explain_read_errors(path, ending):
        if max_bytes is not None and path.stat().st_size > max_bytes:
            raise DataError(f"{path}: larger than {max_bytes:,} bytes{ending}")
        content = path.read_bytes()
    lines = chain.from_iterable(split_lines([content], str(path)))
    texts = [*decode_lines(lines, str(path), advice or CONVERT)]
    if needs_final_line_feed and content and not content.endswith(b"\n"):
        raise DataError(f"{path}, line {len(texts)}: the file is cut off here{ending}")
    return texts


def stream_lines(stream: BufferedReader, name: str) -> Iterator[list[str]]:
    """Lines of a file, a pipe or a keyboard, in batches of all lines that have arrived: no line
    waits for a later one.

    Args:
        name: of the stream, for messages.

    Raises:
        DataError: a line is not UTF-8, or too long; the message names it. All lines before it have
            been yielded.
    """
    blocks = iter(partial(stream.read1, STREAM_BLOCK_BYTES), b"")
    texts: list[str] = []
    first = 1
    n_bytes = 0
    try:
        for lines in split_lines(
            blocks, name, MAX_STREAMED_BYTES, "put each sentence on its own line"
        ):
            texts.extend(decode_lines(lines, name, first=first))  # up to the first error
            first += len(lines)
            n_bytes += sum(map(len, lines))
            is_full = len(texts) >= BATCH_LINES or n_bytes >= BATCH_BYTES
            if texts and (is_full or not _is_ready(stream)):
                yield texts
                texts = []
                n_bytes = 0
    except DataError:
        if texts:
            yield texts
        raise
    if texts:
        yield texts


def decode_lines(
    lines: Iterable[bytes], name: str, advice: str = CONVERT, first: int = 1
) -> Iterator[str]:
    """Lines as texts. Raises: DataError: a line is not UTF-8; `first` is the number of the first.

    Args:
        name: of the file or stream. advice: what to do about an error.
    """
    for number, line in enumerate(lines, first):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{name}, line {number}: not UTF-8 ({error.reason} at byte {error.start + 1}); "
                f"{advice}"
            ) from None


def _is_ready(stream: BufferedReader) -> bool:
    """Whether a read would not block; if the system cannot say, whether it is no keyboard."""
    try:
        return bool(select.select([stream], [], [], PIPE_WAIT)[0])
    except (OSError, ValueError):  # on Windows no stream; elsewhere, none in memory
        return not stream.isatty()


def ignore_progress(_n_bytes: int) -> None:
    """The default for `advance`."""


def read_raw_lines(
    path: Path,
    member: str | None = None,
    language: str = "",
    advance: Callable[[int], object] = ignore_progress,
) -> Iterator[bytes]:
    """The lines of a plain or compressed file, in undecoded UTF-8, without line ends and byte order
    mark.

    Args:
        member: the file in a .zip; not needed if there is only one candidate.
        language: prefer the file whose name ends with it (".de").
        advance: called with the number of bytes that were read from disk since the last call.

    Raises:
        DataError: the file is missing, empty, damaged or not text.
    """
    is_empty = True
    for lines in split_lines(read_blocks(path, member, language, advance), str(path)):
        is_empty = is_empty and not lines
        yield from lines
    if is_empty:
        raise DataError(f"{path}: is empty")


def split_lines(
    blocks: Iterable[bytes],
    name: str,
    max_bytes: int = MAX_LINE_BYTES,
    advice: str = "this is not a text file",
) -> Iterator[list[bytes]]:
    """For each block the lines that end in it, in undecoded UTF-8; then the last line.

    Lines end with \\n or \\r\\n. Where a text begins with more lone \\r than \\n, as that of old
    Macintosh programs, they end with \\r, too. Elsewhere a lone \\r is white space in a sentence:
    one line more would shift aligned files.

    Raises:
        DataError: a line is longer than `max_bytes` (what to do is `advice`), or the text is not in
            the encoding of its byte order mark.
    """
    rest, count = b"", 0
    has_returns: bool | None = None  # whether lines end with \r; None: not known yet
    for block in to_utf8(blocks, name):
        rest += block
        if has_returns is None:
            n_feeds = rest.count(b"\n")
            if not n_feeds and len(rest) < STREAM_BLOCK_BYTES:
                yield []
                continue
            n_returns = rest.rstrip(b"\r").count(b"\r") - rest.count(b"\r\n")
            has_returns = n_returns > n_feeds
        rest = rest.replace(b"\r\n", b"\n")
        if has_returns:  # a \r at the end may be half of \r\n
            rest = rest[:-1].replace(b"\r", b"\n") + rest[-1:]
        *lines, rest = rest.split(b"\n")
        count += len(lines)
        yield lines
        if len(rest) > max_bytes:
            raise DataError(f"{name}, line {count + 1}: longer than {max_bytes:,} bytes; {advice}")
    if rest:
        yield [rest.removesuffix(b"\r")] if has_returns is False else rest.splitlines()


def to_utf8(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """A text without its byte order mark, in UTF-8."""
    blocks = iter(blocks)
    start = next(blocks, b"")
    while any(mark.startswith(start) for mark in ENCODINGS) and (block := next(blocks, b"")):
        start += block
    mark = next(filter(start.startswith, ENCODINGS), b"")
    encoding = ENCODINGS.get(mark, "utf-8")
    if suffix := packed_as(start):
        raise DataError(f"{name}: is compressed ({suffix}); unpack it first")
    if encoding == "utf-8":
        if start.count(0) > 2 + MAX_ZEROS * len(start):
            raise DataError(f"{name}: is UTF-16 or no text; save it as UTF-8 text")
        yield start.removeprefix(mark)
        yield from blocks
        return
    # Half of a surrogate pair spoils its line, not the file.
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
    try:
        for block in chain([start], blocks, [b""]):
            yield decoder.decode(block, not block).encode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}: is not {encoding.upper()}, as its first bytes say ({error.reason}); save it "
            "as UTF-8"
        ) from None


def read_text_lines(path: Path) -> Iterator[str]:
    """The lines of a plain or compressed file, without line ends.

    Raises:
        DataError: as `read_raw_lines`, or a line is not UTF-8.
    """
    return decode_lines(read_raw_lines(path), str(path))


def read_blocks(
    path: Path,
    member: str | None = None,
    language: str = "",
    advance: Callable[[int], object] = ignore_progress,
) -> Iterator[bytes]:
    """The uncompressed content in blocks that are not empty; see `read_raw_lines`."""
    if (archive := archive_of(path)) != path:
        path, member = archive, path.relative_to(archive).as_posix()
    with explain_read_errors(path), _explain_damage(path), path.open("rb") as file:
        if not file.seekable():
            raise DataError(f"{path}: is a pipe; write its content to a file and name that")
        position = 0
        for block in _unpack(path, file, member, language):
            if block:
                yield block
            before, position = position, file.tell()
            advance(position - before)


def archive_of(path: Path) -> Path:
    """The zip that a file is in, or the file itself."""
    return next((each for each in path.parents if each.is_file()), path)


def _unpack(path: Path, file: BinaryIO, member: str | None, language: str) -> Iterator[bytes]:
    """The content in blocks. The first bytes, or else the name, say how a file is packed."""
    start = file.read(8)
    file.seek(0)

    suffix = packed_as(start) or (path.suffix.lower() if start else "")
    if suffix == ".zip":
        with (
            zipfile.ZipFile(file) as archive,
            _open_member(path, archive, member, language) as text,
        ):
            yield from _blocks(text)
    elif suffix == ".gz":
        yield from _blocks(gzip.GzipFile(fileobj=file))
    elif suffix == ".bz2":
        yield from _blocks(bz2.BZ2File(file))
    elif suffix == ".xz":  # lzma.open would have no limit on memory
        start_xz = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY)
        yield from _unpack_frames(file, start_xz)
    elif suffix == ".zst":
        try:
            from zstandard import ZstdDecompressor, ZstdError
        except ModuleNotFoundError:
            raise DataError(
                f'{path}: reading .zst needs the package zstandard; run: pip install "nmt[formats]"'
            ) from None
        with _explain_damage(path, ZstdError):
            yield from _unpack_frames(file, lambda: ZstdDecompressor().decompressobj())
    else:
        yield from _blocks(file)


def packed_as(start: bytes) -> str:
    """The usual suffix of a file that begins so, if it is packed; otherwise empty."""
    return next((suffix for mark, suffix in MARKS.items() if start.startswith(mark)), "")


def _blocks(file: IO[bytes] | BufferedIOBase) -> Iterator[bytes]:
    return iter(partial(file.read, BLOCK_BYTES), b"")


def _unpack_frames(file: BinaryIO, start: Callable[[], Any]) -> Iterator[bytes]:
    """All frames of a file, each with a new decompressor. Zeros may follow a frame of .xz."""
    decompressor = None
    while block := file.read(FRAME_BLOCK_BYTES):
        while block := block if decompressor else block.lstrip(b"\0"):
            decompressor = decompressor or start()
            yield decompressor.decompress(block)
            block = decompressor.unused_data
            if decompressor.eof:
                decompressor = None
    if decompressor is not None:
        raise EOFError("the file ends too early")


@contextmanager
def _explain_damage(path: Path, *errors: type[Exception]) -> Iterator[None]:
    """Raises: DataError in place of what decompressors raise, and of `errors`."""
    errors += (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, OSError)
    # zipfile reports some kinds of damage by errors of other types.
    errors += (NotImplementedError, ValueError, OverflowError)
    try:
        yield
    except errors as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # from the system, not from a decompressor
        if "memory" in str(error).lower():
            raise DataError(
                f"{path}: needs too much memory to unpack; compress it again with `xz -6`, or with "
                "zstd without --long"
            ) from None
        raise DataError(f"{path}: is truncated or damaged ({error})") from None


def _open_member(
    path: Path, archive: zipfile.ZipFile, member: str | None, language: str
) -> IO[bytes]:
    member = member or _choose_member(path, archive.namelist(), language)
    try:
        return archive.open(member)
    except KeyError:
        raise DataError(
            f"{path}: has no {member}; it holds: {_listing(archive.namelist())}"
        ) from None
    except (RuntimeError, NotImplementedError) as error:
        raise DataError(f"{path}: {member} cannot be unpacked ({error})") from None


def _choose_member(path: Path, names: Sequence[str], language: str) -> str:
    """The only candidate."""
    suffixes = candidates(names)
    # An ending may have a region: ".pt_br".
    of_language = [
        name
        for name, suffix in suffixes.items()
        if language and suffix.replace("_", "-").partition("-")[0] == f".{language}"
    ]
    for group in (of_language, tables_of(suffixes), list(suffixes)):
        if len(group) == 1:
            return group[0]
    if not suffixes:
        raise DataError(f"{path}: has no text file; it holds: {_listing(names) or 'nothing'}")
    raise DataError(f"{path}: set `member` to one of its files, or unpack it: {_listing(suffixes)}")


def candidates(names: Iterable[str]) -> dict[str, str]:
    """The suffixes of files but for notes (`_about.txt`) and files of the system."""
    return {
        name: PurePosixPath(name).suffix.lower()
        for name in names
        if not name.endswith("/")
        and not name.startswith("__MACOSX/")
        and "/." not in f"/{name}"
        and PurePosixPath(name).name[:1] not in ("_", "")
    }


def tables_of(suffixes: Mapping[str, str]) -> list[str]:
    """The names of files that may have pairs; of text only where there are no others."""
    kinds = (".tsv", ".csv", ".tmx", ".jsonl", ".json", ".po", ".xlf", ".xliff", ".parquet")
    found = [name for name, suffix in suffixes.items() if suffix in kinds]
    return found or [name for name, suffix in suffixes.items() if suffix == ".txt"]


def _listing(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:20])
