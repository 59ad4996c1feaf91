"""Subtitles: SubRip (srt) and WebVTT."""

import math
import re
from collections.abc import Iterator
from itertools import count, pairwise

from nmt.extras.documents.document import FormatError, Segment
from nmt.extras.documents.messages import Kind, nested
from nmt.extras.texts.marked import Mark, Marked

TIME = r"(?:\d+:)?\d\d?:\d\d?[.,]\d{1,3}"
# What stands before the lines of a cue.
CUE = re.compile(
    rf"^(?:[ \t]*\d+[ \t]*\n)?[ \t]*{TIME}[ \t]*-->[ \t]*{TIME}[^\n]*(?:\n|\Z)", re.MULTILINE
)
PARAGRAPH = re.compile(r"(?:[^\n]*\S[^\n]*(?:\n|\Z))+")
TAG = re.compile(r"<(/?)[A-Za-z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}")
# Before what is said: a dash, a note of music, a name. Such a line begins a text.
LEAD = re.compile(
    r"(?:[-–—♪♫\s]|\{\\[^{}]*\}|<v[ .][^<>]*>|[^\W\d_a-zß-ÿа-яё][^a-zß-ÿа-яё:\n<>{}]*:(?=\s))*"
)
SOUND = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")
WIDTH = 42  # of a line


def find(text: str) -> Iterator[Segment]:
    """What each speaker of a cue says, without its line breaks. Raises: FormatError."""
    cues = [*CUE.finditer(text)]
    if not cues and not re.match(r"WEBVTT|\s*\Z", text):
        raise FormatError("line 1: has no times of subtitles")
    ends = [*(cue.start() for cue in cues[1:]), len(text)]
    for cue, end in zip(cues, ends, strict=False):
        paragraphs = [*PARAGRAPH.finditer(text, cue.end(), end)]
        if text.startswith("WEBVTT"):  # a note, a style or the name of the next cue may follow
            paragraphs = [each for each in paragraphs[:1] if each.start() == cue.end()]
        for paragraph in paragraphs:
            if "-->" not in paragraph[0]:  # a time that is none
                yield from _texts(text, *paragraph.span())


def _texts(text: str, start: int, end: int) -> Iterator[Segment]:
    lines = [*re.finditer(r"[^\n]+", text[start:end])]
    starts = [line.start() for line in lines[1:] if line[0][: _lead(line[0])].strip()]
    for first, last in pairwise([0, *starts, end - start]):
        segment = _text(text, start + first, start + last)
        if any(map(str.isalpha, segment.text.text)):
            yield segment


def _text(text: str, start: int, end: int) -> Segment:
    start += _lead(text[start:end])
    end = start + len(text[start:end].rstrip("♪♫ \t\n"))
    is_sound = SOUND.fullmatch(text, start, end) is not None
    start, end = start + is_sound, end - is_sound
    raw, marks, length = text[start:end], list[Mark](), 0
    lines = raw.split("\n")
    for tag in TAG.finditer(raw):
        kind: Kind = "empty" if tag[1] is None else "close" if tag[1] else "open"
        marks.append(Mark(tag.start() - length, tag[0], kind))
        length += len(tag[0])
    content = Marked(TAG.sub("", raw).replace("\n", " "), nested(marks))
    width = max(WIDTH, *(len(TAG.sub("", line)) for line in lines))

    def write(translation: Marked) -> str:
        broken = _broken(translation.text, len(lines), width)
        return Marked(broken, translation.marks).written

    return Segment(start, end, content, write)


def _lead(text: str) -> int:
    """How many characters stand before what is said."""
    found = LEAD.match(text)
    return found.end() if found else 0


def _broken(text: str, n_lines: int, width: int) -> str:
    """A text on lines of similar lengths: as many as before, or more if one is longer than the
    width. No character moves.
    """
    n_lines = max(n_lines, math.ceil(len(text) / width))
    for length in count(max(1, len(text) // n_lines)):
        lines = [*re.finditer(rf"\S(?:.{{0,{length - 1}}}(?!\S)|\S*)", text)]
        if len(lines) <= n_lines:
            break
    chars = list(text)
    for line in lines[1:]:
        chars[line.start() - 1] = "\n"
    return "".join(chars)
