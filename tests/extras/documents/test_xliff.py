"""XLIFF 1.2 and 2.0."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.texts.marked import Mark, Marked
from tests.extras.documents.catalogs import document, into, texts, translated

START = """<?xml version="1.0" encoding="UTF-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
  <file source-language="en" target-language="de" datatype="plaintext" original="app">
    <body>
"""
END = "    </body>\n  </file>\n</xliff>\n"
SECOND = """\
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de">
  <file id="f1">
    <unit id="u1">
      <notes><note>A note</note></notes>
      <segment id="s1">
        <source>Click <pc id="1">here</pc> or <ph id="2"/>.</source>
      </segment>
      <ignorable><source> </source></ignorable>
      <segment state="initial"><source>I like tea.</source><target>I like tea.</target></segment>
      <segment state="final"><source>Yes</source><target>Ja</target></segment>
    </unit>
    <unit id="u2" translate="no"><segment><source>Stay</source></segment></unit>
  </file>
</xliff>
"""


def unit(content: str, attributes: str = "") -> str:
    return f'{START}      <trans-unit id="a"{attributes}>{content}</trans-unit>\n{END}'


@pytest.mark.parametrize(
    ("content", "result"),
    [
        ("<source>Hi</source>", '<source>Hi</source><target state="S">HI</target>'),
        (
            "\n  <source>Hi</source>\n  <note>n</note>\n",
            '\n  <source>Hi</source>\n  <target state="S">HI</target>\n  <note>n</note>\n',
        ),
        ("<source>Hi</source><target/>", '<source>Hi</source><target state="S">HI</target>'),
        (
            '<source>Hi</source><target xml:lang="de" state="new"> </target>',
            '<source>Hi</source><target xml:lang="de" state="S">HI</target>',
        ),
        (
            '<source>Hi</source><target state="needs-translation">Hi</target>',
            '<source>Hi</source><target state="S">HI</target>',
        ),
        ("<source>Hi</source><target>Hallo</target>", None),
        ("<source></source>", None),
        (
            '<source>A</source><seg-source><mrk mtype="seg" mid="1">A</mrk></seg-source>'
            "<alt-trans><source>b</source><target>B</target></alt-trans>",
            '<source>A</source><seg-source><mrk mtype="seg" mid="1">A</mrk></seg-source>'
            '<target state="S">A</target>'
            "<alt-trans><source>b</source><target>B</target></alt-trans>",
        ),
        (
            "<source>\n    Tom &amp;\n    I &lt;3&#10;</source>",
            '<source>\n    Tom &amp;\n    I &lt;3&#10;</source><target state="S">\n    TOM &amp; I '
            "&lt;3\n</target>",
        ),
        (
            "<source><![CDATA[Tom & <b>I</b>]]></source>",
            "<source><![CDATA[Tom & <b>I</b>]]></source>"
            '<target state="S"><![CDATA[TOM & <b>I</b>]]></target>',
        ),
    ],
)
def test_units(content: str, result: str | None) -> None:
    expected = content if result is None else result.replace('"S"', '"needs-review-translation"')
    assert translated("x.xlf", unit(content)) == unit(expected)


def test_what_stays() -> None:
    group = unit("<source>No</source>").replace("<body>", '<body><group translate="no">')
    group = group.replace("</body>", "</group></body>")
    protected = unit("<source>No</source>", ' translate="no"')
    for text in (group, protected):
        assert translated("x.xlf", text) == text
    found = document("x.xlf", unit("<source>{n, plural, one {a} other {b}}</source>"))
    assert found.segments == []
    assert found.remarks == ["line 5: has plural or select forms in braces; translate it by hand"]


def test_prefixes_stay() -> None:
    text = unit("<source>Hi</source>").replace("xmlns=", "xmlns:x=")
    text = re.sub(r"(</?)(?=[a-z])", r"\1x:", text)
    assert '<x:target state="needs-review-translation">HI</x:target>' in translated("x.xlf", text)
    ElementTree.fromstring(translated("x.xlf", text))


def test_elements_in_a_source_are_marks() -> None:
    content = (
        'Press <g id="1">OK</g>, <x id="NAME"/>.<x id="lb" ctype="lb"/>Or <ph id="2">%d</ph> '
        '<bpt id="3">&lt;b></bpt>times<ept id="3">&lt;/b></ept> <x id="START_LINK"/>here'
        '<x id="CLOSE_LINK"/> in <mrk mtype="protected">Word</mrk>'
    )
    source = document("x.xlf", unit(f"<source>{content}</source>")).segments[0].text
    assert source.text == "Press OK, .Or  times here in "
    assert [(mark.written[:12], mark.kind) for mark in source.marks] == [
        ('<g id="1">', "open"),
        ("</g>", "close"),
        ('<x id="NAME"', "item"),
        ('<x id="lb" c', "empty"),
        ('<ph id="2">%', "item"),
        ('<bpt id="3">', "open"),
        ('<ept id="3">', "close"),
        ('<x id="START', "open"),
        ('<x id="CLOSE', "close"),
        ('<mrk mtype="', "item"),
    ]
    # Halves of a pair without the other one.
    source = document("x.xlf", unit('<source>a <bx id="1"/>b</source>')).segments[0].text
    assert source.marks == (Mark(2, '<bx id="1"/>', "empty"),)


def test_markup_and_characters_of_a_translation() -> None:
    text = unit('<source>One <g id="1">dog</g></source>')
    marks = (Mark(0, '<g id="1">', "open"), Mark(4, "</g>", "close"))
    result = into(Marked("Hund & <1>", marks))("x.xlf", text)
    assert '<g id="1">Hund</g> &amp; &lt;1&gt;</target>' in result


def test_version_2() -> None:
    expected = (
        SECOND.replace('<segment id="s1">', '<segment id="s1" state="translated">')
        .replace(
            '<ph id="2"/>.</source>\n',
            '<ph id="2"/>.</source>\n        <target>CLICK <pc id="1">HERE</pc> OR <ph id="2"/>.'
            "</target>\n",
        )
        .replace('state="initial"', 'state="translated"')
        .replace("<target>I like tea.", "<target>I LIKE TEA.")
    )
    assert translated("x.xlf", SECOND) == expected
    found = document("x.xlf", SECOND.replace(' trgLang="de"', ""))
    assert found.remarks == ["line 1: has no trgLang, which a file with targets needs; add it"]


def test_the_targets_of_a_file_give_the_same_bytes() -> None:
    found = document("x.xlf", SECOND, fill_all=True)
    filled = [segment for segment in found.segments if segment.target != Marked("")]
    assert [segment.target for segment in filled] == [Marked("Ja")]
    written = found.written(segment.target or Marked("") for segment in found.segments)
    assert b"".join(written).decode() == SECOND


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<xliff><a></xliff>", "line 1: not well-formed"),
        ("<tmx/>", "line 1: is XML, but no XLIFF"),
        ('<!DOCTYPE x [\n<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>\n<xliff>&b;</xliff>', "entity b"),
        ('<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/hosts">]>\n<xliff>&f;</xliff>', "entity f"),
    ],
)
def test_errors(text: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        document("x.xlf", text)


def nested(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    elements = st.builds(
        '<{0[0]} id="1">{1}</{0[0]}>'.format, st.sampled_from(["g", "mrk"]), children
    )
    return st.lists(st.one_of(children, elements), max_size=3).map("".join)


LEAVES = st.sampled_from(
    [
        "word ",
        "&amp; ",
        "&#228;",
        "<x id='1'/>",
        "<bx id='2'/>",
        "<ex id='2'/>",
        "<ph id='3'>&lt;p></ph>",
        "\n",
    ]
)


@given(content=st.recursive(LEAVES, nested, max_leaves=15))
def test_any_nesting_is_read_back(content: str) -> None:
    text = unit(f"<source>{content}</source>")
    result = ElementTree.fromstring(translated("x.xlf", text, str))
    names = [each for each in result.iter() if each.tag.endswith(("source", "target"))]
    if texts("x.xlf", text):
        source, target = names
        assert [each.tag for each in source.iter()][1:] == [each.tag for each in target.iter()][1:]
        assert " ".join(source.itertext()).split() == " ".join(target.itertext()).split()
