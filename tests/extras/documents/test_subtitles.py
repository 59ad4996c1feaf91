"""Subtitles."""

import pytest
import srt
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.texts.marked import Mark, Marked
from tests.extras.documents.catalogs import document, into, texts, translated

SUBRIP = """\
1
00:00:01,000 --> 00:00:02,500
Hello there,
my friend.

2
00:00:03,000 --> 00:00:04,000
- Who are you?
- <i>I am Tom.</i>

3
00:00:05,000 --> 00:00:06,000
{\\an8}JOHN: Run!

4
00:00:07,000 --> 00:00:08,000
♪ la la la ♪

5
00:00:09,000 --> 00:00:09,500
[door slams]

6
00:00:10,000 --> 00:00:11,000

7
00:00:12,000 --> 00:00:13,000
<i>Two lines</i>
<i>of text</i>
8
00:00:14,000 --> 00:00:15,000
No blank line before, none after"""
WEB = """\
WEBVTT - a title

NOTE
Do not touch

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.000 align:start line:10%
<v Bob>Hello and welcome
<v Ann>Hi <c.loud>there</c>

NOTE the end

00:03.000 --> 00:04.000
Text <00:03.500>later
"""


def test_subrip() -> None:
    assert texts("x.srt", SUBRIP) == [
        "Hello there, my friend.",
        "Who are you?",
        "I am Tom.",
        "Run!",
        "la la la",
        "door slams",
        "Two lines of text",
        "No blank line before, none after",
    ]
    assert translated("x.srt", SUBRIP, str) == SUBRIP
    result = translated("x.srt", SUBRIP)
    assert "HELLO THERE,\nMY FRIEND.\n" in result
    assert "- WHO ARE YOU?\n- <i>I AM TOM.</i>\n" in result
    assert "{\\an8}JOHN: RUN!\n" in result
    assert result.lower() == SUBRIP.lower()
    times = [(cue.index, cue.start, cue.end) for cue in srt.parse(SUBRIP)]
    assert [(cue.index, cue.start, cue.end) for cue in srt.parse(result)] == times


def test_web() -> None:
    assert texts("x.vtt", WEB) == ["Hello and welcome", "Hi there", "Text later"]
    assert translated("x.vtt", WEB, str) == WEB
    expected = WEB.replace("Hello and welcome", "HELLO AND WELCOME")
    expected = expected.replace("Hi <c.loud>there", "HI <c.loud>THERE")
    assert translated("x.vtt", WEB) == expected.replace(
        "Text <00:03.500>later", "TEXT <00:03.500>LATER"
    )


def test_marks() -> None:
    kinds = [[mark.kind for mark in each.text.marks] for each in document("x.vtt", WEB).segments]
    assert kinds == [[], ["open", "close"], ["empty"]]
    text = "1\n00:00:01,000 --> 00:00:02,000\nHe said <i>no\n"
    (segment,) = document("x.srt", text).segments
    assert segment.text.marks == (Mark(8, "<i>", "empty"),)


@pytest.mark.parametrize(
    ("lines", "translation", "expected"),
    [
        ("One line", "Nur eine Zeile", "Nur eine Zeile"),
        ("Two\nlines", "Das sind zwei kurze Zeilen", "Das sind zwei\nkurze Zeilen"),
        ("Two\nlines", "Wort", "Wort"),
        (
            "A short line",
            "Das wird nun aber eine recht lange Zeile für einen Film",
            "Das wird nun aber eine recht\nlange Zeile für einen Film",
        ),
    ],
)
def test_lines_are_about_as_long_as_each_other(lines: str, translation: str, expected: str) -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"
    assert into(translation)("x.srt", cue.format(lines)) == cue.format(expected)


def test_a_line_break_beside_a_tag() -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"
    marks = (Mark(4, '<font color="#ffffff">', "open"), Mark(9, "</font>", "close"))
    result = into(Marked("Das sind Zeilen", marks))("x.srt", cue.format("These\nlines"))
    assert result == cue.format('Das <font color="#ffffff">sind\n</font>Zeilen')


def test_speakers_inside_tags_keep_their_dashes() -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,000\n<i>- He is late.</i>\n<i>- Who?</i>\n"
    assert texts("x.srt", cue) == ["He is late.", "Who?"]
    assert translated("x.srt", cue) == cue.replace("He is late", "HE IS LATE").replace("Who", "WHO")


def test_what_is_no_subtitle_is_an_error() -> None:
    with pytest.raises(DataError, match="has no times of subtitles"):
        document("x.srt", "Just a line.\n")
    assert translated("x.srt", "") == ""


@given(
    cues=st.lists(
        st.lists(st.text("aZ -♪[]:<i>/", min_size=1, max_size=20), min_size=1, max_size=3)
    )
)
def test_any_cues(cues: list[list[str]]) -> None:
    text = "".join(
        f"{number}\n00:00:{number:02},000 --> 00:00:{number:02},900\n" + "\n".join(lines) + "\n\n"
        for number, lines in enumerate(cues, 1)
    )
    if cues:
        assert translated("x.srt", text, str) == text
        assert translated("x.srt", text).lower().split() == text.lower().split()
