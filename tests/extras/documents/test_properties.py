"""Resource bundles of Java."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.extras.documents.document import open_document
from tests.extras.documents.catalogs import document, into, texts, translated

BUNDLE = r"""# comment = stays
! this, too
title = Open the file
key\ with\ space : It''s {0} files
long=This is \
     a long text \
     of three lines
signs=Gr\u00fc\u00dfe \ud83d\ude00 an alle
lone=Can't open {0}
empty=
without
path=C:\\dir\\file
color=#ff0000
lead=\ leading space
lines=First line\nSecond line
menu=&File
    indented    value of words
"""


def test_values() -> None:
    assert texts("m.properties", BUNDLE) == [
        "Open the file",
        "It's {0} files",
        "This is a long text of three lines",
        "Grüße 😀 an alle",
        "Can't open {0}",
        "leading space",
        "First line\nSecond line",
        "File",
        "value of words",
    ]
    assert translated("m.properties", BUNDLE, str) == BUNDLE


def test_only_values_change() -> None:
    expected = BUNDLE
    for before, after in (
        ("Open the file", "OPEN THE FILE"),
        ("It''s {0} files", "IT''S {0} FILES"),
        (
            "This is \\\n     a long text \\\n     of three lines",
            "THIS IS A LONG TEXT OF THREE LINES",
        ),
        (r"Gr\u00fc\u00dfe \ud83d\ude00 an alle", r"GR\u00dcSSE \ud83d\ude00 AN ALLE"),
        ("Can't open", "CAN'T OPEN"),
        ("leading space", "LEADING SPACE"),
        (r"First line\nSecond line", r"FIRST LINE\nSECOND LINE"),
        ("&File", "&FILE"),
        ("value of words", "VALUE OF WORDS"),
    ):
        expected = expected.replace(before, after)
    assert translated("m.properties", BUNDLE) == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{0,choice,0#no files|1#one file}", "plural or select forms in braces"),
        ("Write '{'name'}' here", "quoted braces"),
    ],
)
def test_what_stays(value: str, reason: str) -> None:
    found = document("m.properties", f"a=1\n# b\nmy.key={value}\n")
    assert found.segments == []
    (remark,) = found.remarks
    assert remark.startswith("line 3: my.key has ")
    assert reason in remark


def test_apostrophes_of_patterns_are_doubled() -> None:
    assert into("C'est {0}")("m.properties", "a=It is {0}") == "a=C''est {0}"
    assert into("C'est ça")("m.properties", "a=It is so") == "a=C'est \\u00e7a"


def test_characters_are_written_as_the_file_does() -> None:
    assert into("Tür")("m.properties", "# é\na=Door") == "# é\na=Tür"
    data = "# é\na=Door".encode("latin-1")
    found = open_document(data, "m.properties")
    (segment,) = found.segments
    written = [type(segment.text)("Tür — 😀")]
    assert b"".join(found.written(written)) == b"# \xe9\na=T\xfcr \\u2014 \\ud83d\\ude00"


@given(text=st.text("aZ'\"\\=:#! \n\tä日😀", min_size=1, max_size=30))
def test_any_translation_is_read_back(text: str) -> None:
    result = into(text)("m.properties", "key=Hi\nnext=1\n")
    assert result.endswith("\nnext=1\n")
    if "''" not in text:
        assert texts("m.properties", result) in ([text.strip()], [])
