"""Hostile files take a time in proportion to their size."""

import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from nmt.errors import DataError
from tests.extras.documents.examples import PO_HEADER, XLIFF_END, XLIFF_START, cue, unit
from tests.extras.documents.rewriting import changed
from tests.extras.documents.test_docx import archive, field, paragraph, run

pytestmark = pytest.mark.slow

# A text in which a run of signs stands.
TEXTS = {
    "x.txt": "{}\n",
    "x.xml": '<resources><string name="a">{}</string></resources>',
    "c.xml": '<resources><string name="a"><![CDATA[{}]]></string></resources>',
    "x.srt": "1\n0:0:1,000 --> 0:0:2,000\n{}\n",
    "x.vtt": "WEBVTT\n\n0:01.000 --> 0:02.000\n- {}\n",
    "x.properties": "a={}\n",
    "x.json": '{{"a": "{}"}}',
    "x.po": 'msgid "{}"\nmsgstr ""\n',
    "y.po": "{}",
    "x.html": "<p>{}</p>",
    "y.html": "<p><a title='{}'>b</a></p>",
    "x.md": "{}\n",
    "x.xlf": unit("<source>{}</source>"),
}
SIGNS = ["a", " ", "\t", "a ", " \n", "\n", "(", "[", "-", "_", "*", "`", "{", "}", "%", ".", ":"]
SIGNS += ["1", "A ", "> ", ">> ", "- a. ", "(a) ", "| ", "~", "'", ", ", "<", "<a", "<a b=", "&"]
SIGNS += ["\\", "\\n", '"', "\r", "$a ", "![", "[a](", "<br>", "<b>", "{%", "{{", "<!--", "[a] "]
SIGNS += ["A. ", "AA", "# a\n", "\\u0020", "**a ", "<a '", "]]", "```\n", "- A ", "&a;", "@", "/"]


@pytest.fixture(autouse=True, scope="module")
def _without_garbage() -> Iterator[None]:
    """What other tests hold is not looked through at each collection."""
    gc.freeze()
    yield
    gc.unfreeze()


def seconds(name: str, file: str | bytes) -> float:
    start = time.process_time()
    with suppress(DataError):
        changed(name, file, "{} b".format)
    return time.process_time() - start


def is_slow(name: str, build: Callable[[int], str | bytes], size: int) -> bool:
    """Whether eight times the size takes much more than eight times as long: a square would take 64
    times as long. A busy machine may be slow at one try, but not at each of three.
    """
    short, long = build(size), build(8 * size)

    def is_slow_now() -> bool:
        longest = seconds(name, long)
        return longest > 0.3 and longest > 24 * min(seconds(name, short) for _ in range(3))

    return all(is_slow_now() for _ in range(3))


@pytest.mark.parametrize("name", TEXTS)
def test_a_run_of_signs(name: str) -> None:
    def slow(sign: str) -> bool:
        return is_slow(
            name, lambda n: TEXTS[name].format(f"a {sign * (n // len(sign))} a"), size=1000
        )

    assert [*filter(slow, SIGNS)] == []


UNIT = "<trans-unit><source>A b</source></trans-unit>"


def segments(n: int, end: str) -> str:
    return "".join(f'<mrk mtype="seg" mid="{i}"{end}' for i in range(n))


MANY: list[tuple[str, Callable[[int], str | bytes]]] = [
    (
        "x.xlf",
        lambda n: f"{XLIFF_START}{UNIT * n}{XLIFF_END}".replace("<file", f'<file a="{"b " * n}"'),
    ),
    (
        "x.xlf",
        lambda n: unit(
            f"<source>A</source><seg-source>{segments(n, '>A b</mrk>')}</seg-source>"
            f"<target>{segments(n, '/>')}</target>"
        ),
    ),
    ("x.xml", lambda n: f"<resources>{'<string>A b</string>' * n}</resources>"),
    ("x.json", lambda n: json.dumps({"k" * 20 * n: ["A b"] * n})),
    ("x.po", lambda n: PO_HEADER + "".join(f'msgstr[{i}] ""\n' for i in range(n))),
    ("x.po", lambda n: PO_HEADER + 'msgid "a b"\nmsgstr ""\n\n' * n),
    ("x.po", lambda n: PO_HEADER.replace("nplurals=2", f"nplurals={'9' * 5 * n}")),
    ("x.html", lambda n: f"<p>{'a ' * 20 * n}{'<br>' * 5 * n}</p>"),
    ("x.html", lambda n: f"<p>{'<b><i>' * n}a{'</b></i>' * n}</p>"),
    ("x.html", lambda n: f"<p>a <a {'title=b ' * 100}>c</a> " * (n // 100)),
    ("x.html", lambda n: "<p>" + "b<ruby>c<rt>d</rt></ruby>" * n),
    ("x.md", lambda n: "a b\n\n" * n),
    ("x.md", lambda n: "a<br>" * n),
    ("x.md", lambda n: f"a\n`b{' ' * 20 * n}1`\nc"),
    ("x.md", lambda n: "".join(f"a {{{{< b{i} >}}}} c " for i in range(n))),
    ("x.md", lambda n: f"{'|a' * n}|\n{'|-' * n}|\n{'|a b' * n}|\n"),
    ("x.srt", lambda n: f"{cue('a b')}\n" * n),
    ("x.srt", lambda n: cue("[a] b (c) " * n)),
    ("x.srt", lambda n: "1" * 20 * n + "\n" + cue("a")),
    ("x.properties", lambda n: "a=b \\\n" * n),
    ("x.md", lambda n: "a b\r\n\n" * n),
    ("x.docx", lambda n: archive(paragraph(run("a b")) * n)),
    ("x.docx", lambda n: archive(paragraph(f"<w:r><w:t>a</w:t>{'<w:tab/>' * n}</w:r>"))),
    (
        "x.docx",
        lambda n: archive(
            paragraph(f"<w:r><w:rPr>{'<w:b/>' * n}</w:rPr><w:t>a</w:t>{'<w:tab/>' * n}</w:r>")
        ),
    ),
    (
        "x.docx",
        lambda n: archive(
            paragraph(run("a"), f"<w:r><w:pict>{paragraph(run('c')) * n}</w:pict></w:r>", run("e"))
        ),
    ),
    ("x.docx", lambda n: archive(paragraph(field("begin") * n, field("separate") * n, run("e")))),
]


@pytest.mark.parametrize(("name", "build"), MANY)
def test_many_parts(name: str, build: Callable[[int], str | bytes]) -> None:
    assert not is_slow(name, build, size=400)
