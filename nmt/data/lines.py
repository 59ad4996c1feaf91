"""Lines of text as they come: all of a file, what a pipe has ready, each line of someone at a keyboard."""

import select
from collections.abc import Iterator, Sequence
from io import BufferedReader

from nmt.errors import DataError

BLOCK = 1 << 16  # bytes read at once
MOST_LINES, MOST_BYTES = 2048, 1 << 18  # about as many are handed on together: attention grows with the square of the length
LONGEST = 1 << 20  # bytes of a line
WAIT = 0.02  # seconds in which a pipe that was emptied may fill again


def read_lines(stream: BufferedReader, name: str) -> Iterator[list[str]]:
    """UTF-8 lines without their ends: as many together as are there, so that none waits for one that has not been written.

    Raises:
        DataError: a line is not UTF-8, or too long; it is named, when those before it have been handed on.
    """
    rest, number, ended = b"", 0, False
    while not ended:
        lines: list[bytes] = []
        n_bytes = 0
        while not ended and len(lines) < MOST_LINES and n_bytes < MOST_BYTES and (not lines or _is_ready(stream)):
            block = stream.read1(BLOCK)
            ended = not block
            *whole, rest = (rest + block).split(b"\n")
            lines += whole
            n_bytes += len(block)
            if len(rest) > LONGEST:
                break
        lines += [rest] if ended and rest else []
        yield from _decode(lines, name, number + 1)
        number += len(lines)
        if len(rest) > LONGEST:
            raise DataError(f"{name}, line {number + 1}: longer than {LONGEST:,} bytes; part it into lines of a sentence each")


def _decode(lines: Sequence[bytes], name: str, first: int) -> Iterator[list[str]]:
    """One list, but for no lines; `first` is the number of the first line."""
    texts: list[str] = []
    fault = None
    for number, line in enumerate(lines, first):
        try:
            texts.append(line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r"))
        except UnicodeDecodeError as error:
            fault = DataError(f"{name}, line {number}: not UTF-8 ({error.reason} at byte {error.start + 1})")
            break
    if texts:
        yield texts
    if fault is not None:
        raise fault


def _is_ready(stream: BufferedReader) -> bool:
    """Whether reading would not wait; where the system cannot tell, whether it is no keyboard."""
    try:
        return bool(select.select([stream], [], [], WAIT)[0])
    except (OSError, ValueError):  # Windows knows it of sockets alone, and what is in memory has no number
        return not stream.isatty()
