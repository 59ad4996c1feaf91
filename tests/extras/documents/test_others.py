"""Files that other programs and people wrote: mixed line ends, escapes, segments, sounds."""

import io
import zipfile

import pytest

from nmt.errors import DataError
from tests.extras.documents.examples import STRING, unit
from tests.extras.documents.rewriting import changed, document, texts, unchanged
from tests.extras.documents.test_docx import archive, paragraph, run

CUE = "1\r\n0:0:1,000 --> 0:0:2,000\r{}\r{}\n\n2\n0:0:3,000 --> 0:0:4,000\n{}"
# Lines of another program write CR LF twice.
TWICE = "WEBVTT\r\r\n\r\r\n0:0:1,000 --> 0:0:2,000\r\r\n{}\r\r\n{}\n"
CATALOG = 'msgid ""\r\nmsgstr ""\r\n\r\n{}msgid "one"\rmsgstr "{}"\r\rmsgid "a"\nmsgstr "b"\n'
THREE = [
    (
        "x.properties",
        "a=one dog\rb=two \\\r\n  dogs\nc=three\ndogs=four\r\n",
        "a=ONE DOG\rb=TWO DOGS\nc=THREE\ndogs=FOUR\r\n",
    ),
    ("x.po", CATALOG.format("", ""), CATALOG.format("#, fuzzy\r", "ONE")),
    (
        "x.xml",
        '<resources>\r\n<string name="a">one\rdog</string>\n</resources>\r',
        '<resources>\r\n<string name="a">ONE DOG</string>\n</resources>\r',
    ),
    (
        "x.json",
        '{\r\n"a": "one dog",\r"b": "two dogs"\n}\n',
        '{\r\n"a": "ONE DOG",\r"b": "TWO DOGS"\n}\n',
    ),
    ("x.srt", CUE.format("one", "dog", "a cat"), CUE.format("ONE", "DOG", "A CAT")),
    ("x.vtt", TWICE.format("one", "dog"), TWICE.format("ONE", "DOG")),
    ("x.html", "<p>one dog</p>\r\n<p>two\rdogs</p>\n", "<p>ONE DOG</p>\r\n<p>TWO DOGS</p>\n"),
    ("x.md", "one dog\r\n\r- two\n- three\r  dogs", "ONE DOG\r\n\r- TWO\n- THREE\r  DOGS"),
    ("x.txt", "one dog\r\n  two dogs\n", "ONE DOG\r\n  TWO DOGS\n"),
]


@pytest.mark.parametrize(("name", "before", "after"), THREE)
def test_line_ends_of_three_systems_stay(name: str, before: str, after: str) -> None:
    assert unchanged(name, before) == before.encode()
    assert changed(name, before) == after.encode()


SOURCE = (
    '<seg-source><mrk mtype="seg" mid="0">One.</mrk> <mrk mtype="seg" mid="1">Two.</mrk>'
    "</seg-source>"
)
PARTS = '<mrk mtype="seg" mid="0"/> <mrk mtype="seg" mid="1">{}</mrk>'


@pytest.mark.parametrize(
    ("target", "found", "written"),
    [
        (PARTS.format(""), ["One.", "Two."], ">ONE.</mrk> <mrk"),
        (PARTS.format("Zwei."), ["One."], ">ONE.</mrk> <mrk"),
        (f'<g id="1">{PARTS.format("Zwei.")}</g>', ["One."], "Zwei.</mrk></g>"),
        (
            '<g id="1"></g>',
            ["One. Two."],
            '0">ONE.</mrk> <mrk mtype="seg" mid="1">TWO.</mrk></target>',
        ),
        (PARTS.format('<g id="1"></g>'), ["One.", "Two."], ">TWO.</mrk>"),
    ],
)
def test_segments_of_cat_tools(target: str, found: list[str], written: str) -> None:
    file = unit(f"<source>One. Two.</source>{SOURCE}<target>{target}</target>")
    assert texts("x.xlf", file) == found
    assert written in changed("x.xlf", file).decode()


def test_a_copy_of_a_segment_is_no_translation() -> None:
    target = f'<target state="new">{SOURCE[12:-13]}</target>'
    file = unit(f"<source>One. Two.</source>{SOURCE}{target}")
    assert texts("x.xlf", file) == ["One.", "Two."]
    assert texts("x.xlf", file.replace(' state="new"', "")) == []


def test_nested_tags_of_a_segment_stay() -> None:
    source = SOURCE.replace("One.", '<g id="1"><g id="2">One</g>.</g>').replace("Two.", "A &lt; b")
    file = unit(f"<source>One. Two.</source>{source}<target>{PARTS.format('')}</target>")
    result = changed("x.xlf", file, fill_all=True).decode()
    assert 'mid="0"><g id="1"><g id="2">ONE</g>.</g></mrk> <mrk' in result
    assert 'mid="1">A &lt; B</mrk></target>' in result


@pytest.mark.parametrize(
    ("content", "found", "written"),
    [
        ("One <![CDATA[& <b>]]> two", "One & <b> two", "ONE &amp; &lt;B&gt; TWO"),
        ("<![CDATA[One]]><![CDATA[ two]]>", "One two", "ONE TWO"),
        ("<!-- > --><![CDATA[One > 2]]>", "One > 2", "<!-- > -->ONE &gt; 2"),
        ("<![CDATA[One]]> <![CDATA[& <]]> two", "One & < two", "ONE &amp; &lt; TWO"),
        ("One <b>&amp;</b> <![CDATA[\\' é]]>", "One & ' é", r"ONE <b>&amp;</b> \' É"),
    ],
)
def test_sections_beside_text_are_text(content: str, found: str, written: str) -> None:
    assert texts("x.xml", STRING.format(content)) == [found]
    assert changed("x.xml", STRING.format(content)).decode() == STRING.format(written)
    if "'" not in content:
        assert texts("x.xlf", unit(f"<source>{content}</source>")) == [found]
        assert texts("x.docx", archive(paragraph(run(content)))) == [found]


@pytest.mark.parametrize(
    ("cue", "found"),
    [
        ("[door opens] Who is there?", ["door opens", "Who is there?"]),
        ("(sighs) I see.\nIt rains.", ["sighs", "I see. It rains."]),
        ("[Tom]: Where are you?", ["Tom", "Where are you?"]),
        ("- [Tom] Where are you?", ["Tom", "Where are you?"]),
        ("I see. (laughs)", ["I see.", "laughs"]),
        ("I see (I think) a dog.", ["I see (I think) a dog."]),
        ("[door opens]", ["door opens"]),
        (">> A dog.\n>> A cat.", ["A dog.", "A cat."]),
        (">> A dog. >> A cat.", ["A dog.", "A cat."]),
        ("- A dog? - A cat.", ["A dog?", "A cat."]),
        ("A dog - a cat.", ["A dog - a cat."]),
        ("[Tom] A dog?\n[Ann] A cat.", ["Tom", "A dog?", "Ann", "A cat."]),
        ("I see. (laughs) A dog.", ["laughs", "I see. A dog."]),
        ("A dog [barks] in the garden", ["barks", "A dog in the garden"]),
        ("<i>[door opens]</i> A dog.", ["door opens", "A dog."]),
        ("<i>(sighs) A dog.</i>", ["sighs", "A dog."]),
        ("{\\an8}[door\nopens] A dog.", ["door opens", "A dog."]),
        ("TOM (sighs): A dog.", ["sighs", "A dog."]),
        ("[...] A dog (barks) ♪", ["A dog", "barks"]),
        ("I like my dog\n(the old one) very much.", ["I like my dog (the old one) very much."]),
        ("&gt;&gt; A dog. &gt;&gt; A cat.", ["A dog.", "A cat."]),
        (">>> A dog.\n- >> A cat.", ["A dog.", "A cat."]),
        ("<i>- A dog - A cat</i>", ["A dog", "A cat"]),
        ("-¿A dog? -¡A cat!", ["¿A dog?", "¡A cat!"]),
        ("- A dog. - a cat.", ["A dog.", "a cat."]),
        ("- A dog - a cat.", ["A dog - a cat."]),
        ("A dog? - <i>A cat.</i>", ["A dog?", "A cat."]),
        ("TOM: A dog. ANN: A cat.", ["A dog.", "A cat."]),
        ("Tom Hill: A dog. Ann: A cat.", ["A dog.", "A cat."]),
        ("He said: A dog.", ["He said: A dog."]),
        ("♪ A dog ♪\n♪ [barks] A cat ♪", ["A dog", "barks", "A cat"]),
        ("*sighs* I see. *laughs*", ["sighs", "I see.", "laughs"]),
        ("*This* is a dog.", ["*This* is a dog."]),
        ("I *really* see *a dog*", ["I *really* see *a dog*"]),
        ("# A dog #\n# A cat #", ["A dog", "A cat"]),
        ("#1 is C#", ["#1 is C#"]),
        ("Tom (sighs): A dog.", ["sighs", "A dog."]),
        ("<i>TOM: A dog.</i>", ["A dog."]),
        ("<i>TOM:</i> A dog.", ["A dog."]),
        ("• A dog.\n• A cat.", ["A dog.", "A cat."]),
        ("‐ A dog.\n‐ A cat.", ["A dog.", "A cat."]),
        ("¶ A dog ¶", ["A dog"]),
    ],
)
def test_sounds_and_speakers(cue: str, found: list[str]) -> None:
    file = f"1\n0:0:1,000 --> 0:0:2,000\n{cue}\n"
    assert texts("x.srt", file) == found
    assert changed("x.srt", file).decode().upper().split() == file.upper().split()


def test_damaged_archives_are_refused_at_once() -> None:
    data = archive(paragraph(run("A dog.")), others={"word/media/a.png": b"picture" * 9})
    place = data.index(b"word/media/a.png") + 20
    damaged = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    with pytest.raises(DataError, match=r"damaged, or no \.docx .*; save it as \.docx again"):
        document("x.docx", damaged)
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream, "a") as output, pytest.warns(UserWarning, match="Duplicate"):
        output.writestr("word/document.xml", "<w:document/>")
    with pytest.raises(DataError, match="has a member twice; save it again"):
        document("x.docx", stream.getvalue())
