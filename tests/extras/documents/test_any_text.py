"""All formats, with random texts: they come back, and other programs read the results."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polib
import pytest
import srt
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.extras.documents import examples
from tests.extras.documents.examples import PO_HEADER, unit
from tests.extras.documents.rewriting import changed, document, texts, translated, unchanged

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@given(st.text("a \t\r\n\u3000ä", max_size=30))
def test_any_lines(text: str) -> None:
    assert unchanged("x.txt", text) == text.encode()
    feeds = text.replace("\r\n", "\n").split("\n")
    if "\r" not in text.replace("\r\n", ""):
        expected = {number: line.strip() for number, line in enumerate(feeds, 1) if line.strip()}
        lines = document("x.txt", text).lines
        assert dict(zip(lines, texts("x.txt", text), strict=True)) == expected


@given(text=st.text("aZ'\"\\@?&<>\n\t ä%", min_size=1, max_size=30))
def test_any_string_of_android(text: str) -> None:
    file = '<resources><string name="a">Hi</string></resources>'
    result = translated("strings.xml", file, [text])
    assert not re.search(r"(?<!\\)(?:\\\\)*['\"]", ElementTree.fromstring(result)[0].text or "")
    if "&" not in text:
        assert texts("strings.xml", result) in ([re.sub(" +", " ", text.strip())], [])


WORDS = ["Bread", "and &amp;", "butter\n 1", "12", "&lt;", "{{ x }}", "<br>", "a b"]
pages = st.recursive(
    st.sampled_from(WORDS),
    lambda parts: st.builds(
        lambda name, content, between: f"<{name}>{between.join(content)}</{name}>",
        st.sampled_from(["p", "b", "i", "code", "div", "a title='See it'", "pre", "li"]),
        st.lists(parts, max_size=4),
        st.sampled_from(["", " "]),
    ),
    max_leaves=20,
)


def without_breaks(page: str) -> str:
    """In small letters, and of white space only what is seen: none around `<br>`, no second one
    after tags.
    """
    page = re.sub(r" ?<br>((?:</?\w[^>]*>)*) ?", r"<br>\1", " ".join(page.lower().split()))
    return re.sub(r"(?<= )((?:</?\w[^>]*>)+) ", r"\1", page)


@settings(max_examples=100)
@given(pages, pages, st.integers(0, 200), st.integers(0, 200))
def test_any_page(first: str, second: str, end: int, start: int) -> None:
    assert without_breaks(changed("x.html", first).decode()) == without_breaks(first)
    for page in (first, first[:end] + second[start:]):  # the second one is cut
        assert unchanged("x.html", page) == page.encode()


VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), st.text('ab "\\/|{}\n@ä😀', max_size=10)),
    lambda children: st.one_of(
        st.lists(children, max_size=3), st.dictionaries(st.text('ab@"', max_size=3), children)
    ),
    max_leaves=10,
)


def in_capitals(value: Any) -> Any:
    """A value of JSON; keys stay."""
    if isinstance(value, dict):
        return {key: in_capitals(each) for key, each in value.items()}
    if isinstance(value, list):
        return [*map(in_capitals, value)]
    return value.upper() if isinstance(value, str) else value


@given(value=VALUES, indent=st.sampled_from([None, 2]), is_ascii=st.booleans())
def test_any_values_of_json(value: Any, indent: int | None, is_ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
    assert unchanged("en.json", text) == text.encode()
    # Some strings are no texts, and stay.
    assert in_capitals(json.loads(changed("en.json", text))) == in_capitals(value)


def structure(text: str) -> list[str]:
    """The blocks of Markdown and the markup in them."""
    types = []
    for token in MARKDOWN.parse(text):
        children = [child.type for child in token.children or ()]
        types += [token.type, *(name for name in children if name not in ("text", "softbreak"))]
    return types


MARKED_WORDS = ["bread", "*salt*", "**a b**", "`x`", "[oil](u)", "![i](u)", "x_y", "\\*", "a<br>b"]
MARKUP = ["~~no~~", *"*_[]<1-#`|\n", "&amp;", "1.", "  \n", "\\\n", "[r]"]
lines = st.lists(st.sampled_from([*MARKED_WORDS, *MARKUP]), min_size=1, max_size=8).map(" ".join)
blocks = st.recursive(
    st.one_of(
        lines,
        lines.map("# {}".format),
        lines.map(lambda line: "```\n{}\n```".format(line.replace("`", ""))),
        lines.map("|a|b|\n|-|-|\n|{}|x|".format),
    ),
    lambda parts: st.builds(
        lambda content, lead: re.sub(
            "^", " " * len(lead), "\n\n".join(content), flags=re.MULTILINE
        ).replace(" " * len(lead), lead, 1),
        st.lists(parts, min_size=1, max_size=3),
        st.sampled_from(["> ", "- ", "1. "]),
    ),
    max_leaves=6,
)


@settings(max_examples=100)
@given(st.lists(blocks, max_size=3).map("\n\n".join))
@example(examples.README)
def test_any_file_of_markdown(source: str) -> None:
    source += "\n\n[r]: u\n"
    assert unchanged("x.md", source) == source.encode()
    assert structure(changed("x.md", source).decode()) == structure(source)


@given(source=st.text('aZ \\"\t%_&ä日\n', min_size=1, max_size=200), is_plural=st.booleans())
def test_any_message_of_gettext(source: str, is_plural: bool) -> None:
    entry = polib.POEntry(msgid=source, msgstr="")
    if is_plural:
        entry = polib.POEntry(msgid=source, msgid_plural="b", msgstr_plural={0: "", 1: ""})
    catalog = f"{PO_HEADER}{entry}"
    if source.isspace():
        return
    result = polib.pofile(translated("x.po", catalog, texts("x.po", catalog)).decode())[0]
    written = result.msgstr_plural[0] if is_plural else result.msgstr
    written = re.sub(r"\([_&]\w\)", "", written)  # of an accelerator
    assert written.replace("_", "").replace("&", "") == source.replace("_", "").replace("&", "")
    assert result.msgid == source


@pytest.mark.skipif(shutil.which("msgfmt") is None, reason="gettext is not installed")
def test_gettext_reads_the_result(tmp_path: Path) -> None:
    (tmp_path / "x.po").write_bytes(changed("x.po", examples.CATALOG, "{}ß".format))
    subprocess.run(["msgfmt", "-c", "-o", tmp_path / "x.mo", tmp_path / "x.po"], check=True)


@given(text=st.text("aZ'\"\\=:#! \n\tä日😀", min_size=1, max_size=30))
def test_any_property(text: str) -> None:
    result = translated("m.properties", "key=Hi\nnext=1\n", [text])
    assert result.endswith(b"\nnext=1\n")
    if "''" not in text:
        assert texts("m.properties", result) in ([text.strip()], [])


@given(
    cues=st.lists(
        st.lists(st.text("aZ -♪[]:<i>/", min_size=1, max_size=20), min_size=1, max_size=3),
        min_size=1,
    )
)
def test_any_subtitles(cues: list[list[str]]) -> None:
    text = "".join(
        f"{number}\n00:00:{number:02},000 --> 00:00:{number:02},900\n" + "\n".join(lines) + "\n\n"
        for number, lines in enumerate(cues, 1)
    )
    assert unchanged("x.srt", text) == text.encode()
    assert changed("x.srt", text).decode().lower().split() == text.lower().split()


def test_subtitles_keep_their_times() -> None:
    before, after = map(srt.parse, (examples.SUBRIP, examples.SUBRIP_IN_CAPITALS))
    assert [(cue.index, cue.start, cue.end) for cue in after] == [
        (cue.index, cue.start, cue.end) for cue in before
    ]


LEAVES = ["word ", "&amp; ", "&#228;", "<x id='1'/>", "<bx id='2'/>", "<ex id='2'/>"]
sources = st.recursive(
    st.sampled_from([*LEAVES, "<ph id='3'>&lt;p></ph>", "\n"]),
    lambda children: st.lists(
        st.one_of(
            children,
            st.builds('<{0} id="1">{1}</{0}>'.format, st.sampled_from(["g", "mrk"]), children),
        ),
        max_size=3,
    ).map("".join),
    max_leaves=15,
)


@given(sources)
def test_any_source_of_xliff(content: str) -> None:
    text = unit(f"<source>{content}</source>")
    result = ElementTree.fromstring(changed("x.xlf", text, str))
    names = [each for each in result.iter() if each.tag.endswith(("source", "target"))]
    if texts("x.xlf", text):
        source, target = names
        assert [each.tag for each in source.iter()][1:] == [each.tag for each in target.iter()][1:]
        assert " ".join(source.itertext()).split() == " ".join(target.itertext()).split()
