"""String resources of Android."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.texts.marked import Marked
from tests.extras.documents.catalogs import document, into, texts, translated

RESOURCES = r"""<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE resources [
  <!ENTITY app "Our App">
]>
<!-- Don't change this. -->
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <string name="hello">Hello, <b>world</b>! Don\'t &amp; won\'t</string>
    <string name="welcome">  Welcome to &app;, <xliff:g id="user">%1$s</xliff:g>.
        Have a nice day\n  </string>
    <string name="own" translatable="false">Stay</string>
    <string name="quoted">"It's   quoted"</string>
    <string name="reference">@string/hello</string>
    <string name="signs">\u0020and \u00e4 \@ home\?</string>
    <string name="page"><![CDATA[See <a href="https://example.org">it</a>, it\'s <br>new]]></string>
    <string name="escaped">&lt;b>Bold&lt;/b> text</string>
    <string name="key">pref_dark_mode</string>
    <plurals name="songs">
        <item quantity="one">%d song</item>
        <item quantity="other">%d songs</item>
    </plurals>
    <string-array name="days" translatable="false"><item>Monday</item></string-array>
    <string-array name="dogs"><item>big</item></string-array>
    <style name="s"><item name="a">No text</item></style>
    <string name="empty"/>
</resources>
"""


def test_texts() -> None:
    found = document("strings.xml", RESOURCES)
    assert [segment.text.text for segment in found.segments] == [
        "Hello, world! Don't & won't",
        "Welcome to , . Have a nice day",
        "It's   quoted",
        "and ä @ home?",
        "See it, it's new",
        "<b>Bold</b> text",
        "%d song",
        "%d songs",
        "big",
    ]
    assert [[mark.kind for mark in segment.text.marks] for segment in found.segments[:5]] == [
        ["open", "close"],
        ["item", "item"],
        [],
        [],
        ["open", "close", "empty"],
    ]


def test_only_texts_change() -> None:
    assert translated("strings.xml", RESOURCES, str) == RESOURCES
    result = translated("strings.xml", RESOURCES)
    for before, after in (
        (r"Hello, <b>world</b>! Don\'t &amp; won\'t", r"HELLO, <b>WORLD</b>! DON\'T &amp; WON\'T"),
        (
            'Welcome to &app;, <xliff:g id="user">%1$s</xliff:g>.\n        Have a nice day',
            'WELCOME TO &app;, <xliff:g id="user">%1$s</xliff:g>. HAVE A NICE DAY',
        ),
        ('"It\'s   quoted"', r'"IT\'S   QUOTED"'),
        (r"and \u00e4 \@ home\?", "AND Ä @ HOME?"),
        (">it</a>, it\\'s <br>new", ">IT</a>, IT\\'S <br>NEW"),
        ("[CDATA[See", "[CDATA[SEE"),
        ("&lt;b>Bold&lt;/b> text", "&lt;B&gt;BOLD&lt;/B&gt; TEXT"),
        (">%d song<", ">%D SONG<"),
        (">%d songs<", ">%D SONGS<"),
        ("<item>big", "<item>BIG"),
    ):
        assert before in RESOURCES
        result = result.replace(after, before)
    assert result == RESOURCES


def test_characters_with_a_meaning_are_escaped() -> None:
    text = '<resources><string name="a">Hi</string></resources>'
    result = into('?l\'"a" \\ <b> & \n')("strings.xml", text)
    expected = r"\?l\'\"a\" \\ &lt;b&gt; &amp; \n"
    assert result == text.replace("Hi", expected)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<resources><string>a</resources>", "line 1: not well-formed"),
        ("<project/>", "is XML, but has no string resources of Android"),
        (
            '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><resources/>',
            "entity b stands for a file or other entities",
        ),
        ("<resources><string>&other;</string></resources>", "undefined entity"),
    ],
)
def test_errors(text: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        document("strings.xml", text)


@given(text=st.text("aZ'\"\\@?&<>\n\t ä%", min_size=1, max_size=30))
def test_any_translation_is_read_back(text: str) -> None:
    resources = '<resources><string name="a">Hi</string></resources>'
    result = into(Marked(text))("strings.xml", resources)
    assert not re.search(r"(?<!\\)(?:\\\\)*['\"]", ElementTree.fromstring(result)[0].text or "")
    if "&" not in text:
        assert texts("strings.xml", result) in ([re.sub(" +", " ", text.strip())], [])


def test_no_texts() -> None:
    assert texts("strings.xml", "<resources/>") == []
