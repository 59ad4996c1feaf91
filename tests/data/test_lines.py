"""Lines from files, pipes and keyboards: none lost, none late, and the bad one named."""

import io
import os
import threading
from io import BufferedReader, RawIOBase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data import lines
from nmt.data.lines import read_lines
from nmt.errors import DataError


def read(content: bytes) -> list[str]:
    return [line for batch in read_lines(BufferedReader(io.BytesIO(content)), "memory") for line in batch]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\ufeff")), min_size=1), st.booleans())
def test_every_line_comes_once(texts: list[str], is_ended: bool) -> None:
    content = "\n".join(texts) + "\n" * is_ended
    assert read(content.encode()) == (texts if is_ended or texts[-1] else texts[:-1])


def test_ends_of_lines_and_the_mark_of_byte_order() -> None:
    assert read(b"\xef\xbb\xbfa\r\nb\n\nc") == ["a", "b", "", "c"]
    assert read(b"") == []


def test_lines_before_a_bad_one_are_handed_on() -> None:
    batches = read_lines(BufferedReader(io.BytesIO(b"a\nb\nSch\xf6n\nd\n")), "in.txt")
    assert next(batches) == ["a", "b"]
    with pytest.raises(DataError, match=r"^in\.txt, line 3: not UTF-8 \(invalid start byte at byte 4\)$"):
        next(batches)


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_without_end_does_not_fill_the_memory(end: bytes) -> None:
    batches = read_lines(BufferedReader(io.BytesIO(b"a\n" + b"x" * (3 * lines.LONGEST) + end)), "in.txt")
    assert next(batches) == ["a"]
    with pytest.raises(DataError, match="line 2: longer than 1,048,576 bytes; part it into lines"):
        next(batches)


def test_many_lines_come_in_batches() -> None:
    batches = list(read_lines(BufferedReader(io.BytesIO(b"a line\n" * 50_000)), "in.txt"))
    assert sum(map(len, batches)) == 50_000
    assert len(batches) > 3


def test_no_line_waits_for_one_that_is_not_written() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as stream, open(writing, "wb", buffering=0) as pipe:
        batches = read_lines(stream, "pipe")
        pipe.write(b"one\ntwo\nthr")
        assert next(batches) == ["one", "two"]
        threading.Timer(0.1, end, [pipe]).start()
        assert list(batches) == [["three"]]


def end(pipe: RawIOBase) -> None:
    pipe.write(b"ee\n")
    pipe.close()
