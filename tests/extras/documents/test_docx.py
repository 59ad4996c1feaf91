"""Word documents: which texts are found, that all else stays, and hostile archives."""

import io
import zipfile
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.extras.documents.docx import MAX_XML
from nmt.texts.marked import Mark, Marked
from tests.extras.documents.rewriting import changed, document, texts, unchanged

HEAD = (
    '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n<w:document xmlns:w="http://'
    'schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="r" xmlns:m="m"><w:body>'
)
TAIL = "<w:sectPr/></w:body></w:document>"
FIELDS = ("begin", "separate", "end")
BOLD = "<w:rPr><w:b/></w:rPr>"


def run(text: str, layout: str = "") -> str:
    return f'<w:r>{layout}<w:t xml:space="preserve">{text}</w:t></w:r>'


def field(kind: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


def field_of(code: str, result: str) -> str:
    code = f"<w:r><w:instrText>{code}</w:instrText></w:r>"
    return f"{field('begin')}{code}{field('separate')}{run(result)}{field('end')}"


def paragraph(*parts: str) -> str:
    return f"<w:p><w:pPr><w:jc/></w:pPr>{''.join(parts)}</w:p>"


def archive(*paragraphs: str, others: Mapping[str, bytes] | None = None) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as output:
        output.writestr("[Content_Types].xml", "<Types/>")
        output.writestr("word/document.xml", f"{HEAD}{''.join(paragraphs)}{TAIL}")
        for name, content in (others or {}).items():
            output.writestr(name, content)
    return stream.getvalue()


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def body(data: bytes) -> str:
    return members(data)["word/document.xml"].decode().removeprefix(HEAD).removesuffix(TAIL)


def test_runs_of_one_format_are_one_text() -> None:
    lang = '<w:rPr><w:lang w:val="en-US"/></w:rPr>'
    parts = [
        run("One te", lang),
        "<w:proofErr/>",
        run("xt &amp; a "),
        run("bo", BOLD),
        run("ld", BOLD),
    ]
    data = archive(paragraph(*parts, run(" word.")))
    [segment] = document("x.docx", data).segments
    open_mark, close = Mark(13, f"<w:r>{BOLD}", "open"), Mark(17, "</w:r>", "close")
    assert segment.text == Marked("One text & a bold word.", (open_mark, close))
    assert segment.write(
        Marked("<Fett>", (Mark(1, open_mark.written, "open"), Mark(5, "</w:r>", "close")))
    ) == (run("&lt;") + run("Fett", BOLD) + run("&gt;"))
    assert unchanged("x.docx", data) == data


@pytest.mark.parametrize(
    ("parts", "capitals"),
    [
        # Links, changes and tagged content stay around their words.
        (
            [
                run("See "),
                '<w:hyperlink r:id="a">',
                run("this", BOLD),
                "</w:hyperlink>",
                run(" now"),
            ],
            [
                run("SEE "),
                '<w:hyperlink r:id="a">',
                run("THIS", BOLD),
                "</w:hyperlink>",
                run(" NOW"),
            ],
        ),
        (
            ["<w:sdt><w:sdtPr/><w:sdtContent>", run("Your name"), "</w:sdtContent></w:sdt>"],
            ["<w:sdt><w:sdtPr/><w:sdtContent>", run("YOUR NAME"), "</w:sdtContent></w:sdt>"],
        ),
        (
            [run("Old "), "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>", run("word")],
            [run("OLD "), "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>", run("WORD")],
        ),
        # Tabs, line breaks and pictures stay.
        (
            ["<w:r><w:t>Name:</w:t><w:tab/><w:t>Tom</w:t><w:br/><w:t>Dog</w:t></w:r>"],
            [run("NAME:"), "<w:r><w:tab/></w:r>", run("TOM"), "<w:r><w:br/></w:r>", run("DOG")],
        ),
        (
            ["<w:r><w:drawing/></w:r>", run("A "), "<w:r><w:drawing/></w:r>", run("b")],
            ["<w:r><w:drawing/></w:r>", run("A "), "<w:r><w:drawing/></w:r>", run("B")],
        ),
        # Fields: only the text of a link is translated.
        (
            [run("Page "), field_of("PAGE", "one"), run(" here")],
            [run("PAGE "), field_of("PAGE", "one"), run(" HERE")],
        ),
        ([field_of('HYPERLINK "a"', "link")], [field_of('HYPERLINK "a"', "LINK")]),
        ([run("On page "), field_of("PAGE", "1")], [run("ON PAGE "), field_of("PAGE", "1")]),
        (
            ["<m:oMath><m:r/></m:oMath>", run(" is big")],
            ["<m:oMath><m:r/></m:oMath>", run(" IS BIG")],
        ),
        # A text box has paragraphs of its own.
        (
            [
                run("Above "),
                f"<w:r><w:pict><a>{paragraph(run('inside'))}</a></w:pict></w:r>",
                run("b"),
            ],
            [
                run("ABOVE "),
                f"<w:r><w:pict><a>{paragraph(run('INSIDE'))}</a></w:pict></w:r>",
                run("B"),
            ],
        ),
        ([run("12"), "<w:bookmarkStart/>"], [run("12"), "<w:bookmarkStart/>"]),
        ([run("  a "), run(" ")], [run("  "), run("A"), run("  ")]),
    ],
)
def test_what_stays_in_a_paragraph(parts: list[str], capitals: list[str]) -> None:
    data = archive(paragraph(*parts))
    assert body(changed("x.docx", data)) == paragraph(*capitals)
    assert unchanged("x.docx", data) == data


def test_other_files_of_the_archive_stay() -> None:
    header = f"{HEAD}{paragraph(run('Top'))}{TAIL}".encode()
    others = {"word/header1.xml": header, "word/styles.xml": b"<p>Text</p>", "media/a.png": b"\0\1"}
    data = archive(paragraph(run("Text")), others=others)
    assert texts("x.docx", data) == ["Text", "Top"]
    before, after = members(data), members(changed("x.docx", data))
    assert [*after.items()] == [
        (name, content.replace(b"Top<", b"TOP<").replace(b"Text</w:t>", b"TEXT</w:t>"))
        for name, content in before.items()
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_another_encoding(encoding: str) -> None:
    text = f"{HEAD}{paragraph(run('Text'))}{TAIL}".replace("UTF-8", encoding[:6])
    data = archive(others={"word/document2.xml": text.encode(encoding)})
    assert texts("x.docx", data) == ["Text"]
    result = members(changed("x.docx", data))["word/document2.xml"]
    assert result.decode(encoding) == text.replace("Text<", "TEXT<")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "x.docx: damaged, or no .docx (File is not a zip file); save it as .docx again"),
        (archive(paragraph(run("Text")))[:-30], "x.docx: damaged, or no .docx"),
        (archive(paragraph(run("Te"))).replace(b"document.xml", b"abcdefgh.xml"), "has no word/"),
        (archive("<w:p>"), "x.docx, word/document.xml: mismatched tag: line 2"),
        (
            archive(others={"word/header1.xml": b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}),
            "word/header1.xml: has a DOCTYPE",
        ),
        (archive(others={"word/header1.xml": b"<a:hdr/>"}), "a:hdr where Word writes w:hdr"),
        (archive("<w:a>" * 2000 + "</w:a>" * 2000), "nested too deeply"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_hostile_file_is_refused_in_one_line(data: bytes, problem: str) -> None:
    with pytest.raises(DataError) as error:
        document("x.docx", data)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_a_bomb_is_not_unpacked() -> None:
    with pytest.raises(DataError, match="would unpack to too many bytes"):
        document("x.docx", archive(others={"word/header1.xml": b" " * (MAX_XML + 1)}))


LEAVES = [run("Bread "), run("and", BOLD), run("&lt;"), run("12"), "<w:proofErr/>"]
RUNS = [f"<w:r>{BOLD}<w:t>a</w:t><w:tab/></w:r>", "<w:bookmarkEnd/>", *map(field, FIELDS)]
leaves = st.sampled_from([*LEAVES, *RUNS])
paragraphs = st.recursive(
    leaves,
    lambda parts: (
        st.builds(
            lambda name, content: f"<w:{name}>{''.join(content)}</w:{name}>",
            st.sampled_from(["hyperlink", "ins", "del", "smartTag"]),
            st.lists(parts, max_size=4),
        )
        | st.lists(parts, max_size=4).map(
            lambda content: f"<w:r><w:pict>{paragraph(*content)}</w:pict></w:r>"
        )
    ),
    max_leaves=15,
)


def words_of(data: bytes) -> list[str]:
    return sorted(letters for text in texts("x.docx", data) for letters in text.lower().split())


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(paragraphs, max_size=6))
def test_any_nesting(parts: list[str]) -> None:
    data = archive(paragraph(*parts))
    assert unchanged("x.docx", data) == data
    capitals = changed("x.docx", data)
    assert words_of(capitals) == words_of(data)  # and so it is well-formed
    for name in ("hyperlink", "bookmarkEnd", "tab", "fldChar", "pict", "del"):
        assert body(capitals).count(f"<w:{name}") == body(data).count(f"<w:{name}")
