"""What all formats have in common: bytes, line ends, and places."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.extras.documents.document import open_document
from nmt.lines import MAX_STREAMED_BYTES
from nmt.texts.marked import Marked
from tests.extras.documents.rewriting import identity, in_capitals


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\n", "A\nB\n"),
        ("\ta \r\n\r\n  b", "\tA \r\n\r\n  B"),
        ("a\rb\rc", "A\rB\rC"),
        ("a\r\nb\nc\r\n", "A\r\nB\nC\r\n"),
        ("a\u2028b\x0bc\0\n", "A\u2028B\x0bC\0\n"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_lines_keep_all_around_them(before: str, after: str, encoding: str) -> None:
    assert in_capitals(before.encode(encoding), "x.txt") == after.encode(encoding)


@given(st.text("a \t\r\n\u3000ä", max_size=30))
def test_any_text_comes_back(text: str) -> None:
    assert identity(text.encode(), "x.txt") == text.encode()
    document = open_document(text.encode(), "x.txt")
    feeds = text.replace("\r\n", "\n").split("\n")
    if "\r" not in text.replace("\r\n", ""):
        expected = {number: line.strip() for number, line in enumerate(feeds, 1) if line.strip()}
        found = [each.text.text for each in document.segments]
        assert dict(zip(document.lines, found, strict=True)) == expected


def test_a_translation_has_the_line_ends_of_the_file() -> None:
    document = open_document(b"> one or\r\n> two\r\n", "x.md")
    assert (
        b"".join(document.written([Marked("eins oder zwei")])) == b"> eins\r\n> oder\r\n> zwei\r\n"
    )


def test_a_text_inside_the_markup_of_another() -> None:
    page = b'<p>See <a title="Home" href="Home">it</a> and <a title="End" href="Home">that</a>.</p>'
    document = open_document(page, "x.html")
    assert [each.text.text for each in document.segments] == ["Home", "End", "See it and that."]
    assert document.lines == [1, 1, 1]
    _, end, text = (each.text for each in document.segments)
    written = document.written([Marked("Start"), end, text])
    assert b"".join(written) == page.replace(b'title="Home"', b'title="Start"')


def test_declared_encodings() -> None:
    page = '<?xml version="1.0" encoding="windows-1252"?><p>Grün</p>'
    assert in_capitals(page.encode("cp1252"), "x.xhtml") == page.replace("Grün", "GRÜN").encode(
        "cp1252"
    )
    unknown = '<meta charset="nonsense"><p>Grün</p>'.encode()
    assert in_capitals(unknown, "x.html") == unknown.replace("Grün".encode(), "GRÜN".encode())


@pytest.mark.parametrize(
    ("data", "name", "problem"),
    [
        (b"a", "x.doc", "x.doc: unknown format; these are known: .txt, .md, .markdown, .html"),
        (b"a\n\xff", "x.md", "x.md, line 2: not UTF-8 (invalid start byte); save it as UTF-8"),
        ("abcdefg".encode("utf-16-le"), "x.html", "x.html: is UTF-16 or no text; save it as UTF-8"),
        (b"PK\3\4", "x.html", "x.html: is compressed (.zip); unpack it first"),
        (b"a" * (MAX_STREAMED_BYTES + 1), "x.html", "line 1: a text is longer than 1,048,576"),
        (b"<a><b></a>", "x.xlf", "x.xlf, line 1: not well-formed (mismatched tag)"),
    ],
)
def test_errors_are_one_line(data: bytes, name: str, problem: str) -> None:
    with pytest.raises(DataError) as error:
        open_document(data, name)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_format_is_named_with_the_known_ones() -> None:
    with pytest.raises(DataError, match="unknown format; these are known: txt, md, html"):
        open_document(b"a", "x.txt", "word")


def test_hostile_files_are_refused_in_one_line() -> None:
    for name, part in (("x.html", "<i>a</i> b "), ("x.md", "*a* [b](c) ")):
        with pytest.raises(DataError, match=r"x\.(html|md), .*; divide it"):
            open_document(part.encode() * 100_000, name)


def test_an_encoding_may_lack_a_character() -> None:
    catalog = b'msgid ""\nmsgstr "charset=iso-8859-1"\n\nmsgid "a"\nmsgstr ""\n'
    document = open_document(catalog, "x.po")
    with pytest.raises(DataError, match="its encoding, iso8859-1, has no '€'; save it as UTF-8"):
        b"".join(document.written([Marked("€")]))
