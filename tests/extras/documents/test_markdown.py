"""Markdown: which texts are found, that all else stays, and that texts are read as meant."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from nmt.extras.documents.document import open_document
from nmt.texts.marked import Mark, Marked
from tests.extras.documents.rewriting import identity, in_capitals, texts

HARD_BREAK = "  "  # at the end of a line
FILE = r"""---
title: not a text
---
# My *small* bakery #

[![build](https://x.org/b.svg)](https://x.org) [![not a text](a.png)](b)

A shop with **bread** and `butter --now`, see [the list](https://x.org/a_b "not a text") or
[Guide] and [more][guide] and [Guide][]. This   snake_case is 2 * 3 \* 4 & &lt;tag&gt; `x
y` end.\
After a break{0}
and _one_ more <kbd>C</kbd>+<kbd>V</kbd> <https://a.org> https://b.org/x_y_z.

1. First item
   goes on
2. Second ~~old~~ new

- [ ] A task with ![not a text](x.png "t") inside
- [x] Done :tada:

> Somebody said this and
> went on[^1]
> > to say

| Name | Meaning of it |
|------|:-------------:|
| `a\|b` | Bread \| butter and **salt** |
| foo | |

A title
in two lines
============

    not a text

```python
print("not a text")
```

<div align="center">
  <b>not a text</b>
</div>

[guide]: https://x.org/guide "not a text"

[^1]: A note below.

> [!NOTE]
> Useful words.

A<br>break <!-- not a text --> and a <span class="x">part</span>.
""".replace("{0}", HARD_BREAK)
CAPITALS = r"""---
title: not a text
---
# MY *SMALL* BAKERY #

[![build](https://x.org/b.svg)](https://x.org) [![not a text](a.png)](b)

A SHOP WITH **BREAD** AND `butter --now`, SEE [THE LIST](https://x.org/a_b "not a text") OR
[GUIDE][Guide] AND [MORE][guide] AND [GUIDE][Guide]. THIS SNAKE_CASE
IS 2 \* 3 \* 4 & \<TAG> `x y` END.\
AFTER A BREAK{0}
AND _ONE_ MORE <kbd>C</kbd>+<kbd>V</kbd> <https://a.org> https://b.org/x_y_z.

1. FIRST ITEM
   GOES ON
2. SECOND ~~OLD~~ NEW

- [ ] A TASK WITH ![not a text](x.png "t") INSIDE
- [x] DONE :tada:

> SOMEBODY SAID THIS AND
> WENT ON[^1]
> > TO SAY

| NAME | MEANING OF IT |
|------|:-------------:|
| `a\|b` | BREAD \| BUTTER AND **SALT** |
| FOO | |

A TITLE IN
TWO LINES
============

    not a text

```python
print("not a text")
```

<div align="center">
  <b>not a text</b>
</div>

[guide]: https://x.org/guide "not a text"

[^1]: A NOTE BELOW.

> [!NOTE]
> USEFUL WORDS.

A<br> BREAK <!-- not a text --> AND A <span class="x">PART</span>.
""".replace("{0}", HARD_BREAK)
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def structure(text: str) -> list[str]:
    """The blocks and the markup in them."""
    types = []
    for token in MARKDOWN.parse(text):
        children = [child.type for child in token.children or ()]
        types += [token.type, *(name for name in children if name not in ("text", "softbreak"))]
    return types


def test_a_file_keeps_all_but_its_texts() -> None:
    assert in_capitals(FILE.encode(), "x.md").decode() == CAPITALS
    assert structure(CAPITALS) == structure(FILE)
    for name, encoding in (("x.md", "utf-8"), ("x.markdown", "utf-16")):
        data = FILE.replace("\n", "\r\n").encode(encoding)
        assert identity(data, name) == data
        capitals = CAPITALS.replace("\n", "\r\n").encode(encoding)
        assert in_capitals(data, name) == capitals


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", []),
        ("Old\rMacintosh\r", ["Old Macintosh"]),
        ("A *b `c` d* e", ["A b  d e"]),
        ("***both***", ["both"]),
        ("+++\na = 1\n+++\nText", ["Text"]),
        ("!!! note\n    Indented\n", ["Indented"]),
        ("* - 1. Deep\n", ["Deep"]),
        (r"caf&eacute; \& \[x\]", ["café & [x]"]),
        ("[a]\n\n[a]: b", ["a"]),
        ("\0 zero", ["\ufffd zero"]),
        ("- a\n\tb", ["a b"]),
        ("Solve $a_b = 2$ for $5", ["Solve  for $5"]),
        ("|a|a b|\n|-|-|\n|b|a|", ["a", "a b", "b", "a"]),
    ],
)
def test_texts_of(source: str, expected: list[str]) -> None:
    assert texts(source.encode(), "x.md") == expected
    assert identity(source.encode(), "x.md") == source.encode()


@pytest.mark.parametrize(
    ("translation", "written"),
    [
        ("1. Punkt", r"1\. Punkt"),
        ("# Titel", r"\# Titel"),
        ("- Strich", r"\- Strich"),
        ("a <b> c", r"a \<b> c"),
        ("*a* [b](c) `d`", r"\*a\* \[b\](c) \`d\`"),
        ("2 * 3 < 4 & a_b", "2 * 3 < 4 & a_b"),
        (r"C:\*", r"C:\\\*"),
        ("a &amp; b", r"a \&amp; b"),
        ("a | b", "a | b"),
    ],
)
def test_words_are_not_read_as_markup(translation: str, written: str) -> None:
    [segment] = open_document(b"Text", "x.md").segments
    assert segment.write(Marked(translation)) == written


def test_emphasis_inside_a_word_has_stars() -> None:
    [segment] = open_document(b"The _new_ list", "x.md").segments
    marks = (Mark(0, "_", "open"), Mark(3, "_", "close"))
    assert segment.write(Marked("Neuliste", marks)) == "*Neu*liste"


def test_an_emphasis_ends_before_a_word() -> None:
    [segment] = open_document(b"**Note:** read it", "x.md").segments
    marks = (Mark(0, "**", "open"), Mark(5, "**", "close"))
    assert segment.write(Marked("Note:15 mal", marks)) == "**Note:** 15 mal"


def test_footnotes_and_definitions_stay_apart() -> None:
    source = b"[^1]: A note.\n[^2]: One\nmore.\n[ref]: https://a.org 'A title'\n"
    assert texts(source, "x.md") == ["A note.", "One more."]
    assert in_capitals(source, "x.md") == (
        b"[^1]: A NOTE.\n[^2]: ONE MORE.\n[ref]: https://a.org 'A title'\n"
    )


def test_stars_around_nothing_are_left_out() -> None:
    [segment] = open_document(b"The **new** list", "x.md").segments
    marks = (Mark(4, "**", "open"), Mark(4, "**", "close"))
    assert segment.write(Marked("Die Liste", marks)) == "Die Liste"


def test_code_beside_code_gets_a_space() -> None:
    [segment] = open_document(b"The `a` or `b`", "x.md").segments
    marks = (Mark(3, "`a`", "item"), Mark(3, "`b`", "item"))
    assert segment.write(Marked("Das oder", marks)) == "Das `a` `b` oder"


def test_a_link_by_its_code_keeps_its_target() -> None:
    [segment] = open_document(b"Use [`a`] now\n\n[`a`]: u\n", "x.md").segments
    assert segment.write(segment.text) == "Use [`a`][] now"
    start, code, end = segment.text.marks
    wide = Marked("Nutze jetzt", (replace(start, position=0), code, replace(end, position=5)))
    assert segment.write(wide).startswith("[Nutz`a`e][`a`]")


def test_a_paragraph_is_wrapped_as_it_was() -> None:
    source = b"- > some words that are\n  > on two lines"
    [segment] = open_document(source, "x.md").segments
    assert segment.text == Marked("some words that are on two lines")
    translation = Marked("einige Worte - 1. und mehr, die auf zwei Zeilen stehen")
    written = source[:4].decode() + segment.write(translation)
    assert written == ("- > einige Worte - 1.\n  > und mehr, die auf\n  > zwei Zeilen stehen")
    assert structure(written) == structure(source.decode())


WORDS = [
    "bread",
    "*salt*",
    "**a b**",
    "`x`",
    "[oil](u)",
    "![i](u)",
    "x_y",
    "\\*",
    "~~no~~",
    "a<br>b",
]
MARKUP = ["~~no~~", *"*_[]<1-#`|\n", "&amp;", "1.", "  \n", "\\\n", "[r]"]
words = st.sampled_from([*WORDS, *MARKUP])
lines = st.lists(words, min_size=1, max_size=8).map(" ".join)
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


def check(source: str) -> None:
    source += "\n\n[r]: u\n"
    assert identity(source.encode(), "x.md") == source.encode()
    capitals = in_capitals(source.encode(), "x.md").decode()
    assert structure(capitals) == structure(source)


@settings(max_examples=20)
@given(blocks)
def test_any_nesting_keeps_its_structure(source: str) -> None:
    check(source)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(blocks, max_size=3))
def test_any_file_keeps_its_structure(parts: list[str]) -> None:
    check("\n\n".join(parts))
