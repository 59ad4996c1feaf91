"""All formats: which texts are found in a file, that all else stays, and what is refused."""

import re

import pytest

from nmt.errors import DataError
from nmt.extras.documents.document import open_document
from nmt.lines import MAX_STREAMED_BYTES
from nmt.texts.warnings import describe
from tests.extras.documents import examples
from tests.extras.documents.examples import STRING, cue, message, unit
from tests.extras.documents.rewriting import changed, document, texts, unchanged


def start(value: object) -> str:
    """Of a parameter, as the name of its test."""
    return repr(value)[:30]


def with_prefixes(xml: str) -> str:
    return re.sub("(</?)(?=[a-z])", r"\1x:", xml.replace("xmlns=", "xmlns:x="))


GROUP = unit("<source>No</source>").replace("<body>", '<body><group translate="no">')
BY_HAND = "has plural or select forms in braces; translate it by hand"
FORMS = "{n, plural, one {a dog} other {# dogs}}"
TEXTS: list[tuple[str, str, list[str]]] = [
    (
        "strings.xml",
        examples.RESOURCES,
        [
            "Hello, world! Don't & won't",
            "Welcome to , . Have a nice day",
            "It's   quoted",
            "and ä @ home?",
            "See it, it's new",
            "<b>Bold</b> text",
            "%d song",
            "%d songs",
            "big",
        ],
    ),
    ("strings.xml", "<resources/>", []),
    ("x.html", "Only words", ["Only words"]),
    ("x.html", "a <b>bold</b> word", ["a bold word"]),
    ("x.html", "<p>one<p>two", ["one", "two"]),
    ("x.html", "First line.<br>Second line.", ["First line. Second line."]),
    ("x.html", "<b>12</b> &mdash; &#8364;", []),
    ("x.html", "caf&eacute;", ["café"]),
    ("x.html", "<code>never closed <p>Text", ["Text"]),
    ("x.html", "<p>Hello <!-- note --> there</p>", ["Hello there"]),
    ("x.html", '<a title="Hello {{ name }}"></a>', ["Hello "]),
    ("x.html", "{{#if a}}Yes{{else}}No{{/if}}", ["Yes", "No"]),
    ("x.html", "<?php if ($a): ?>Yes<?php endif ?>", ["Yes"]),
    ("x.html", "<p>Hello <?= $name ?>, <?php echo $b; ?></p>", ["Hello , "]),
    ("x.html", "a <b and no end", ["a <b and no end"]),
    ("x.html", '<html translate="no"><p>Text</p></html>', []),
    ("x.html", "<script>unclosed <p>Text</p>", []),
    ("x.html", "\0<p>Zero\0</p>", ["Zero\0"]),
    (
        "en.json",
        examples.MESSAGES,
        [
            'Hello "world"',
            "One",
            "Two words",
            "Sign in",
            "one car \n\n {n} cars",
            "{0} none\n\n{1} one\n\n]1,Inf] many cars",
            'Read <a href="/x">this</a> {a|b}',
            "First",
            "Second",
            "Empty key",
        ],
    ),
    ("x.html", examples.LINKS, ["Home", "End", "See it and that."]),
    # Only messages of extensions are texts, and values have no accelerators.
    (
        "messages.json",
        '{"a": {"message": "Open", "description": "A button"}, "b": {"message": "Close"}}',
        ["Open", "Close"],
    ),
    ("package.json", '{"a": "_site and &more"}', ["_site and &more"]),
    ("x.txt", "", []),
    ("x.md", "", []),
    ("x.md", "Old\rMacintosh\r", ["Old Macintosh"]),
    ("x.md", "A *b `c` d* e", ["A b  d e"]),
    ("x.md", "***both***", ["both"]),
    ("x.md", "+++\na = 1\n+++\nText", ["Text"]),
    ("x.md", "!!! note\n    Indented\n", ["Indented"]),
    ("x.md", "* - 1. Deep\n", ["Deep"]),
    ("x.md", r"caf&eacute; \& \[x\]", ["café & [x]"]),
    ("x.md", "[a]\n\n[a]: b", ["a"]),
    ("x.md", "\0 zero", ["\ufffd zero"]),
    ("x.md", "- a\n\tb", ["a b"]),
    ("x.md", "Solve $a_b = 2$ for $5", ["Solve  for $5"]),
    ("x.md", "|a|a b|\n|-|-|\n|b|a|", ["a", "a b", "b", "a"]),
    ("x.md", "[^1]: A note.\n[^2]: One\nmore.\n[r]: u 'A title'\n", ["A note.", "One more."]),
    (
        "m.properties",
        examples.BUNDLE,
        [
            "Open the file",
            "It's {0} files",
            "This is a long text of three lines",
            "Grüße 😀 an alle",
            "Can't open {0}",
            "leading space",
            "First line\nSecond line",
            "File",
            "value of words",
        ],
    ),
    ("x.po", examples.CATALOG_IN_CAPITALS, []),
    ("x.json", '{"a": "S", "b": "com.example.Name", "c": "I am"}', ["I am"]),
    # Letters by number.
    ("x.po", message(r"\101 dog"), ["A dog"]),
    ("x.po", message(r"\x41 dog"), ["A dog"]),
    ("x.po", message(r"a\\033 dog"), [r"a\033 dog"]),
    (
        "x.srt",
        examples.SUBRIP,
        [
            "Hello there, my friend.",
            "Who are you?",
            "I am Tom.",
            "Run!",
            "la la la",
            "door slams",
            "Two lines of text",
            "No blank line before, none after",
        ],
    ),
    # Speakers inside tags keep their dashes.
    ("x.srt", cue("<i>- He is late.</i>", "<i>- Who?</i>"), ["He is late.", "Who?"]),
    ("x.srt", "", []),
    (
        "x.html",
        '<html lang="en"><p lang="fr">Un chien</p><p lang="en-US">A <q lang=la>canis</q> dog</p>',
        ["A  dog"],
    ),
    ("x.html", '<html lang="en"><p lang="{{ code }}">A dog</p>', ["A dog"]),
    ("x.md", "A dog\n\n$$\nE = mc^2\n$$\n", ["A dog"]),
    ("x.po", 'msgid "A dog"\nmsgid_plural "Dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n', ["A dog", "Dogs"]),
    ("x.vtt", examples.WEB, ["Hello and welcome", "Hi there", "Text later"]),
    ("x.xlf", unit("<source>No</source>", ' translate="no"'), []),
    ("x.xlf", GROUP.replace("</body>", "</group></body>"), []),
]


@pytest.mark.parametrize(("name", "file", "expected"), TEXTS, ids=start)
def test_texts_are_found_and_come_back(name: str, file: str, expected: list[str]) -> None:
    assert texts(name, file) == expected
    assert unchanged(name, file) == file.encode()


CAPITALS: list[tuple[str, ...]] = [
    ("x.txt", "\ta \n\n  b\u2028c\x0bd\0e", "\tA \n\n  B\u2028C\x0bD\0E"),
    ("strings.xml", examples.RESOURCES, examples.RESOURCES_IN_CAPITALS),
    ("x.html", examples.PAGE, examples.PAGE_IN_CAPITALS),
    ("en.json", examples.MESSAGES, examples.MESSAGES_IN_CAPITALS),
    ("x.md", examples.README, examples.README_IN_CAPITALS),
    (
        "x.markdown",
        "[^1]: A b.\n[^2]: Be\nc.\n[r]: u 'D'\n",
        "[^1]: A B.\n[^2]: BE C.\n[r]: u 'D'\n",
    ),
    ("x.po", examples.CATALOG, examples.CATALOG_IN_CAPITALS),
    ("m.properties", examples.BUNDLE, examples.BUNDLE_IN_CAPITALS),
    ("x.srt", examples.SUBRIP, examples.SUBRIP_IN_CAPITALS),
    ("x.srt", cue("<i>- He is.</i>", "<i>- Who?</i>"), cue("<i>- HE IS.</i>", "<i>- WHO?</i>")),
    ("x.vtt", examples.WEB, examples.WEB_IN_CAPITALS),
    ("x.xliff", examples.SEGMENTS, examples.SEGMENTS_IN_CAPITALS),
]
# The units of XLIFF 1.2. Where there is one text here, the unit has a target, and stays.
UNITS = [
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
    ("<source>Hi</source><target>Hallo</target>", "<source>Hi</source><target>Hallo</target>"),
    ("<source></source>", "<source></source>"),
    (
        '<source>A</source><seg-source><mrk mtype="seg" mid="1">A</mrk></seg-source>'
        "<alt-trans><source>b</source><target>B</target></alt-trans>",
        '<source>A</source><seg-source><mrk mtype="seg" mid="1">A</mrk></seg-source>'
        '<target state="S"><mrk mtype="seg" mid="1">A</mrk></target>'
        "<alt-trans><source>b</source><target>B</target></alt-trans>",
    ),
    (
        "<source>\n    Tom &amp;\n    I &lt;3&#10;</source>",
        '<source>\n    Tom &amp;\n    I &lt;3&#10;</source><target state="S">\n    '
        "TOM &amp; I &lt;3\n</target>",
    ),
    (
        "<source><![CDATA[Tom & <b>I</b>]]></source>",
        "<source><![CDATA[Tom & <b>I</b>]]></source>"
        '<target state="S"><![CDATA[TOM & <b>I</b>]]></target>',
    ),
    ("<source>Hi</source>", '<source>Hi</source><target state="S">HI</target>'),
]
CAPITALS += [
    ("x.xlf", unit(before), unit(after).replace('"S"', '"needs-review-translation"'))
    for before, after in UNITS
]
CAPITALS.append(("x.xlf", *map(with_prefixes, CAPITALS[-1][1:])))


@pytest.mark.parametrize(
    ("encoding", "end"),
    [("utf-8", "\n"), ("utf-8-sig", "\r\n"), ("utf-16", "\r\n"), ("utf-32", "\r")],
)
@pytest.mark.parametrize(("name", "before", "after"), CAPITALS, ids=start)
def test_all_but_the_texts_stays(
    name: str, before: str, after: str, encoding: str, end: str
) -> None:
    file, capitals = (text.replace("\n", end).encode(encoding) for text in (before, after))
    assert changed(name, file) == capitals
    assert unchanged(name, file) == file


@pytest.mark.parametrize(
    ("name", "file", "marks"),
    [
        (
            "strings.xml",
            examples.RESOURCES,
            [
                *((7, "<b>", "open"), (12, "</b>", "close")),
                *((11, "&app;", "item"), (13, '<xliff:g id="user">%1$s</xliff:g>', "item")),
                *((4, '<a href="https://example.org">', "open"), (6, "</a>", "close")),
                (13, "<br>", "break"),
            ],
        ),
        (
            "x.html",
            "<p>Press <kbd>F1</kbd> or <b>wait</b>.</p>",
            [(6, "<kbd>F1</kbd>", "item"), (10, "<b>", "open"), (14, "</b>", "close")],
        ),
        (
            "x.vtt",
            examples.WEB,
            [(3, "<c.loud>", "open"), (8, "</c>", "close"), (5, "<00:03.500>", "empty")],
        ),
        ("x.srt", cue("He said <i>no"), [(8, "<i>", "empty")]),
        (
            "x.xlf",
            unit(
                '<source>Press <g id="1">OK</g>, <x id="NAME"/>.<x id="lb" ctype="lb"/>Or '
                '<ph id="2">%d</ph> <bpt id="3">&lt;b></bpt>times<ept id="3">&lt;/b></ept> '
                '<x id="START_LINK"/>here<x id="CLOSE_LINK"/> in <mrk mtype="protected">Word</mrk>'
                "</source>"
            ),
            [
                (6, '<g id="1">', "open"),
                (8, "</g>", "close"),
                (10, '<x id="NAME"/>', "item"),
                (11, '<x id="lb" ctype="lb"/>', "break"),
                (14, '<ph id="2">%d</ph>', "item"),
                (15, '<bpt id="3">&lt;b></bpt>', "open"),
                (20, '<ept id="3">&lt;/b></ept>', "close"),
                (21, '<x id="START_LINK"/>', "open"),
                (25, '<x id="CLOSE_LINK"/>', "close"),
                (29, '<mrk mtype="protected">Word</mrk>', "item"),
            ],
        ),
        # Half of a pair without the other one.
        ("x.xlf", unit('<source>a <bx id="1"/>b</source>'), [(2, '<bx id="1"/>', "empty")]),
    ],
    ids=start,
)
def test_markup_of_texts(name: str, file: str, marks: list[tuple[int, str, str]]) -> None:
    found = [mark for segment in document(name, file).segments for mark in segment.text.marks]
    assert [(mark.position, mark.written, mark.kind) for mark in found] == marks


@pytest.mark.parametrize(
    ("name", "file", "found", "remark"),
    [
        (
            "en.json",
            '{"a": [1,\n{"files": "' + FORMS + '"}]}',
            [],
            f"line 2: a.files {BY_HAND}",
        ),
        (
            "x.po",
            message(FORMS),
            [],
            f"line 7: {BY_HAND}",
        ),
        (
            "x.xlf",
            unit(f"<source>{FORMS}</source>"),
            [],
            f"line 5: {BY_HAND}",
        ),
        (
            "m.properties",
            "a=1\n# b\nmy.key={0,choice,0#no files|1#one file}\n",
            [],
            f"line 3: my.key {BY_HAND}",
        ),
        (
            "m.properties",
            "my.key=Write '{'name'}' here\n",
            [],
            "line 1: my.key has quoted braces ('{'); translate it by hand",
        ),
        *(
            (
                "x.po",
                message(f"{sign}[1mOne dog"),
                [],
                r"line 7: has characters such as \033; translate it by hand",
            )
            for sign in (r"\033", r"\x1b", r"\303\244", r"\6", r"\a", r"\x07")
        ),
        (
            "x.xlf",
            unit(
                '<source>A. B.</source><seg-source><mrk mtype="seg" mid="0">A.</mrk>'
                '<mrk mtype="seg" mid="1">B.</mrk></seg-source>'
                '<target><mrk mtype="seg" mid="0"/></target>'
            ),
            ["A."],
            "line 5: has segments without a place in its target",
        ),
        (
            "x.pot",
            examples.TEMPLATE,
            ["a dog", "%d dogs"],
            "line 7: has no number of plural forms (nplurals in its header); add it, and the forms",
        ),
    ],
    ids=start,
)
def test_remarks(name: str, file: str, found: list[str], remark: str) -> None:
    assert texts(name, file) == found
    opened = document(name, file)
    assert [describe(*row, opened.unit) for row in opened.remarks.items()] == [remark]


@pytest.mark.parametrize(
    ("name", "file", "problem"),
    [
        ("x.doc", "a", "x.doc: is a document in a format that nmt does not read; save it as .docx"),
        ("x.md", b"a\n\xff", "x.md, line 2: not UTF-8 (invalid start byte); save it as UTF-8"),
        ("x.html", "abcdefg".encode("utf-16-le"), "x.html: is UTF-16 or no text; save it as UTF-8"),
        ("x.html", b"PK\3\4", "x.html: is compressed (.zip); unpack it first"),
        ("x.html", "a" * (MAX_STREAMED_BYTES + 1), "line 1: a text is longer than 1,048,576"),
        # Hostile files: too much work.
        ("x.html", "<i>a</i> b " * 100_000, "a text has too many tags; divide it"),
        ("x.md", "*a* [b](c) " * 100_000, "divide it"),
        ("en.json", "[" * 100_000, "line 1: is nested too deeply"),
        ("x.xlf", "<a><b></a>", "x.xlf, line 1: not well-formed (mismatched tag)"),
        ("x.xlf", "<tmx/>", "line 1: is XML, but no XLIFF"),
        (
            "x.xlf",
            '<!DOCTYPE x [\n<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>\n<xliff>&b;</xliff>',
            "entity b stands for a file or other entities",
        ),
        (
            "x.xlf",
            '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/hosts">]>\n<xliff>&f;</xliff>',
            "entity f stands for a file or other entities",
        ),
        ("strings.xml", "<resources><string>a</resources>", "line 1: not well-formed"),
        ("strings.xml", "<project/>", "is XML, but has no string resources of Android"),
        (
            "strings.xml",
            '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><resources/>',
            "entity b stands for a file or other entities",
        ),
        ("strings.xml", STRING.format("&other;"), "undefined entity"),
        ("en.json", '{"a": "b",}', "line 1: is no JSON"),
        ("en.json", '{\n// comment\n"a": "b"}', "line 2: is no JSON"),
        ("en.json", "", "line 1: is no JSON"),
        ("x.po", message("a") + "A line.\n", "x.po, line 9: is not of a message catalog"),
        ("x.srt", "Just a line.\n", "has no times of subtitles"),
    ],
    ids=start,
)
def test_errors_are_one_line(name: str, file: str | bytes, problem: str) -> None:
    with pytest.raises(DataError) as error:
        document(name, file)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_format_is_named_with_the_known_ones() -> None:
    with pytest.raises(DataError, match="unknown format; these are known: txt, md, html"):
        open_document(b"a", "x.txt", "word")
