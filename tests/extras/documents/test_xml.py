"""XML of any kind: which tags are borders, what stays, what is refused."""

import re
import time
from typing import Any
from xml.parsers.expat import ExpatError
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import FormatError
from nmt.extras.documents.document import Content, TextDocument
from nmt.extras.documents.xml import find
from nmt.texts.marked import Marked


def document_of(text: str, **names: Any) -> TextDocument:
    content = Content(text)
    return TextDocument("", content, find(content.text, **names))


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ('I saw <x id="1">Tom</x>.', ["I saw Tom."]),
        ("<p>The dog.</p><p>A <b>cat</b>.</p>", ["The dog.", "A cat."]),
        ("See <g><b>Tom</b></g>.", ["See Tom."]),
        ("<ul>\n  <li>A</li>\n  <li>B <i>c</i></li>\n</ul>", ["A", "B c"]),
        ("<p><!-- x --><b>A</b><b>B</b></p>", ["A", "B"]),
        ("Tom &amp; Anna &#228; &lt;3", ["Tom & Anna ä <3"]),
        ("A <![CDATA[<b> & c]]> d", ["A <b> & c d"]),
        ("<p><![CDATA[<!--]]><b>A</b><!-- x --></p>", ["<!--A"]),
        ('<?xml version="1.0"?>\n<d><überschrift>A</überschrift></d>', ["A"]),
        (" One\r\n\r\n  two ", ["One\n\n  two"]),
        ("I saw <keep>the <b>dog</b></keep> now", ["I saw  now"]),
        ("<d><keep>dog</keep><p>A</p></d>", ["A"]),
        ("One <cut>two</cut> three", ["One", "two", "three"]),
        ("<d><join>One</join> <join>two</join></d>", ["One two"]),
        ("<p>1</p><p/>", []),
        ("", []),
    ],
)
def test_where_texts_end(text: str, texts: list[str]) -> None:
    names = {"ignored": ["keep"], "borders": ["cut"], "inline": ["join"]}
    document = document_of(text, **names)
    assert [each.text.text for each in document.segments] == texts
    same = b"".join(document.written(each.text for each in document.segments)).decode()
    assert same == text


def test_translations_are_escaped_and_marks_are_not() -> None:
    document = document_of('<p>I <b a="&amp;">saw</b> <x/> &amp; A.</p>')
    (segment,) = document.segments
    assert [mark.kind for mark in segment.text.marks] == ["open", "close", "item"]
    other = Marked(segment.text.text.replace("saw", "a < b"), ())
    assert b"".join(document.written([other])) == b"<p>I a &lt; b  &amp; A.</p>"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a <b>c", ExpatError),
        ("a & b", ExpatError),
        ("a</t><t>b", ExpatError),
        ("<a>&undefined;</a>", ExpatError),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', FormatError),
        ("<a" + "".join(map(' b{}="1"'.format, range(400))) + ">x</a>", FormatError),
        ("<a>" * 1001 + "x" + "</a>" * 1001, FormatError),
    ],
)
def test_what_is_no_such_xml(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        document_of(text)


def test_hostile_sections_take_no_longer() -> None:
    """Each beginning of a remark inside would be searched to the end."""
    text = f"<p><![CDATA[{'<!--' * 100_000}]]></p>"
    start = time.monotonic()
    document_of(text)
    assert time.monotonic() - start < 10


WORDS = st.text("ab <&>\n", max_size=6).map(escape)
NAMES = st.sampled_from(["p", "b", "br", "keep", "x:y", "ä"])


def element(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    parts = st.lists(inside, max_size=4).map("".join)
    full = st.builds(lambda name, part: f'<{name} i="1">{part}</{name}>', NAMES, parts)
    return st.one_of(WORDS, full, parts, NAMES.map("<{}/>".format), st.just("<!-- <b> -->"))


@given(st.recursive(WORDS, element, max_leaves=12))
def test_all_tags_stay(text: str) -> None:
    document = document_of(text, ignored=["keep"], borders=["p"])
    upper = (Marked(each.text.text.upper(), each.text.marks) for each in document.segments)
    written = b"".join(document.written(upper)).decode()
    tags = re.compile(r"<!--.*?-->|<[^<>]*>")
    assert tags.findall(written) == tags.findall(text)
    document_of(written)  # is well-formed
