"""HTML: which texts are found, and that all else stays."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.extras.documents.document import open_document
from nmt.texts.marked import Mark, Marked
from tests.extras.documents.rewriting import identity, in_capitals, texts

PAGE = """\
<!DOCTYPE html>
<HTML lang="en">
<head><title>Bread &amp; butter</title>
<meta name="description" content="All about &quot;good&quot; bread">
<meta name="viewport" content="width=device-width">
<style>p > a { color: red }</style>
<script>if (a < b) document.write("<p>not a text</p>");</script>
</head>
<body class="wide">
<!-- not a text -->
<h1><a id="top"></a>Welcome to <em>our</em> shop</h1>
<p>Hello <b>dear <i>guest</i></b>, type <code>bake --now</code> first.<br>
Then   look at <img src="x.png" alt="A loaf"> the <a href="Top" title='It is "up"'>top</a>.
<p>This has no end, {{ user.name }}. {% if late %}It is late.{% else %}Good day.{% endif %}
<UL><LI>One loaf<LI>Two <B>loaves</B></UL>
<pre>not a text</pre>
<p translate="no">not a text</p>
<p>From <span class="notranslate">Mill Brothers</span>; R&D, 3 < 4 &lt; 5.</p>
<input type=submit value=Send><input type="text" placeholder="Your name" value="not a text">
<a href="x"><svg><title>not a text</title></svg> Home</a>
<table><tr><td>A cell</td><td>12</td></tr></table>
<p><strong>All of it strong</strong></p>
<p><i class="icon"></i> Save <u>it</p><p>No start</i> here</p>
<textarea>not a text</textarea>
</body></HTML>
"""
CAPITALS = """\
<!DOCTYPE html>
<HTML lang="en">
<head><title>BREAD &amp; BUTTER</title>
<meta name="description" content="ALL ABOUT &quot;GOOD&quot; BREAD">
<meta name="viewport" content="width=device-width">
<style>p > a { color: red }</style>
<script>if (a < b) document.write("<p>not a text</p>");</script>
</head>
<body class="wide">
<!-- not a text -->
<h1><a id="top"></a>WELCOME TO <em>OUR</em> SHOP</h1>
<p>HELLO <b>DEAR <i>GUEST</i></b>, TYPE <code>bake --now</code> FIRST.<br> THEN LOOK AT \
<img src="x.png" alt="A LOAF"> THE <a href="Top" title='IT IS "UP"'>TOP</a>.
<p>THIS HAS NO END, {{ user.name }}. {% if late %}IT IS LATE.{% else %}GOOD DAY.{% endif %}
<UL><LI>ONE LOAF<LI>TWO <B>LOAVES</B></UL>
<pre>not a text</pre>
<p translate="no">not a text</p>
<p>FROM <span class="notranslate">Mill Brothers</span>; R&amp;D, 3 &lt; 4 &lt; 5.</p>
<input type=submit value="SEND"><input type="text" placeholder="YOUR NAME" value="not a text">
<a href="x"><svg><title>not a text</title></svg> HOME</a>
<table><tr><td>A CELL</td><td>12</td></tr></table>
<p><strong>ALL OF IT STRONG</strong></p>
<p><i class="icon"></i> SAVE <u>IT</p><p>NO START</i> HERE</p>
<textarea>not a text</textarea>
</body></HTML>
"""


def test_a_page_keeps_all_but_its_texts() -> None:
    assert in_capitals(PAGE.encode(), "x.html").decode() == CAPITALS
    assert identity(PAGE.encode(), "x.html") == PAGE.encode()


def test_tags_are_marks_and_code_takes_the_place_of_a_word() -> None:
    [segment] = open_document(b"<p>Press <kbd>F1</kbd> or <b>wait</b>.</p>", "x.html").segments
    assert segment.text == Marked(
        "Press  or wait.",
        (
            Mark(6, "<kbd>F1</kbd>", "item"),
            Mark(10, "<b>", "open"),
            Mark(14, "</b>", "close"),
        ),
    )
    moved = Marked(
        "Warten oder ",
        (Mark(0, "<b>", "open"), Mark(6, "</b>", "close"), Mark(12, "<kbd>F1</kbd>", "item")),
    )
    assert segment.write(moved) == "<b>Warten</b> oder <kbd>F1</kbd>"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("Only words", ["Only words"]),
        ("a <b>bold</b> word", ["a bold word"]),
        ("<p>one<p>two", ["one", "two"]),
        ("First line.<br>Second line.", ["First line. Second line."]),
        ("<b>12</b> &mdash; &#8364;", []),
        ("caf&eacute;", ["café"]),
        ("<code>never closed <p>Text", ["Text"]),
        ("<p>Hello <!-- note --> there</p>", ["Hello there"]),
        ('<a title="Hello {{ name }}"></a>', ["Hello "]),
        ("{{#if a}}Yes{{else}}No{{/if}}", ["Yes", "No"]),
        ("<?php if ($a): ?>Yes<?php endif ?>", ["Yes"]),
        ("a <b and no end", ["a <b and no end"]),
        ('<html translate="no"><p>Text</p></html>', []),
        ("<script>unclosed <p>Text</p>", []),
        ("\0<p>Zero\0</p>", ["Zero\0"]),
    ],
)
def test_texts_of(page: str, expected: list[str]) -> None:
    assert texts(page.encode(), "x.html") == expected
    assert identity(page.encode(), "x.html") == page.encode()


def test_encoding_and_line_ends_come_back() -> None:
    page = '<meta charset="iso-8859-1"><p>Grüße\r\nan alle</p>\r\n'
    document = open_document(page.encode("latin-1"), "x.htm")
    assert document.segments[0].text == Marked("Grüße an alle")
    assert b"".join(document.written([Marked("Łódź & é")])) == page.replace(
        "Grüße\r\nan alle", "&#321;ód&#378; &amp; é"
    ).encode("latin-1")
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        assert in_capitals(page.encode(encoding), "x.html") == page.replace(
            "Grüße\r\nan alle", "GRÜSSE AN ALLE"
        ).encode(encoding)


words = st.sampled_from(
    ["Bread", "and &amp;", "butter\n 1", "12", "&lt;", "{{ x }}", "<br>", "a b"]
)
pages = st.recursive(
    words,
    lambda parts: st.builds(
        lambda name, content, between: f"<{name}>{between.join(content)}</{name}>",
        st.sampled_from(["p", "b", "i", "code", "div", "a title='See it'", "pre", "li"]),
        st.lists(parts, max_size=4),
        st.sampled_from(["", " "]),
    ),
    max_leaves=20,
)


def check(page: str) -> None:
    assert identity(page.encode(), "x.html") == page.encode()
    capitals = in_capitals(page.encode(), "x.html")
    assert without_breaks(capitals.decode()) == without_breaks(page)


def without_breaks(page: str) -> str:
    """In small letters, and of white space only what is seen: none around `<br>`, no second one
    after tags.
    """
    page = re.sub(r" ?<br>((?:</?\w[^>]*>)*) ?", r"<br>\1", " ".join(page.lower().split()))
    return re.sub(r"(?<= )((?:</?\w[^>]*>)+) ", r"\1", page)


@settings(max_examples=20)
@given(pages)
def test_any_nesting_keeps_its_markup(page: str) -> None:
    check(page)


@pytest.mark.slow
@settings(max_examples=100)
@given(pages, pages, st.integers(0, 200), st.integers(0, 200))
def test_any_nesting_and_cut(first: str, second: str, end: int, start: int) -> None:
    check(first)
    cut = (first[:end] + second[start:]).encode()
    assert identity(cut, "x.html") == cut
