"""Subtitles: SubRip (srt) and WebVTT."""

import math
import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from nmt.errors import FormatError
from nmt.extras.documents.document import Segment
from nmt.extras.documents.markup import Kind, Piece, marked_of
from nmt.texts.marked import Marked

TIME = r"(?:\d+:)?\d\d?:\d\d?[.,]\d{1,3}"
# What stands before the lines of a cue.
CUE = re.compile(
    rf"^(?:[ \t]*\d+[ \t]*\n)?[ \t]*{TIME}[ \t]*-->[ \t]*{TIME}[^\n]*(?:\n|\Z)", re.MULTILINE
)
PARAGRAPH = re.compile(r"^(?:[^\n]*\S[^\n]*(?:\n|\Z))+", re.MULTILINE)
TAG = re.compile(r"<(/?)([A-Za-z])[^<>]*>|<[\d:.]+>|\{\\[^{}]*\}")
# Before the words of a speaker: a dash, ">>", a note of music, a name. Such a line begins a text.
LEAD = re.compile(
    r"(?:[-–—♪♫\s]|>>|&gt;&gt;|\{\\[^{}]*\}|<v[ .][^<>]*>|<[^<>]*>(?=[-–—♪♫])"
    r"|[^\W\d_a-zß-ÿа-яё][^a-zß-ÿа-яё:\n<>{}]*:(?=\s))*"
)
# "Where are you? - I am here.": the second speaker of a line that begins with a dash; or ">>".
SPEAKER = re.compile(r"(?<=[^\W\d_][.?!…])[\"”’]?[ \t]+(?=[-–—][ \t]*\S)|[ \t]+(?=(?:>>|&gt;&gt;))")
SOUND = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")
AFTER_SOUND = re.compile(r":?\s*")
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
    starts = {start}
    for line in re.finditer(r"[^\n]+", text[start:end]):
        if lead := _lead(line[0]).strip():
            starts.add(start + line.start())
        if lead[:1] in ("-", "–", "—") or ">" in line[0]:
            starts |= {start + line.start() + each.end() for each in SPEAKER.finditer(line[0])}
    for first, last in pairwise([*sorted(starts), end]):
        for part in _with_sounds(text, first, last):
            segment = _text(text, *part)
            if any(map(str.isalpha, segment.text.text)):
                yield segment


def _with_sounds(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """What a speaker says, and the sounds in brackets before and behind it."""
    while sound := SOUND.match(text, start + len(_lead(text[start:end])), end):
        yield sound.span()
        start = AFTER_SOUND.match(text, sound.end(), end).end()  # type: ignore[union-attr]
    sounds = [
        each for each in SOUND.finditer(text, start, end) if not text[each.end() : end].strip()
    ]
    for sound in sounds:
        yield sound.span()
        end = sound.start()
    yield start, end


def _lead(text: str) -> str:
    found = LEAD.match(text)
    return found[0] if found else ""


def _text(text: str, start: int, end: int) -> Segment:
    start += len(_lead(text[start:end]))
    end = start + len(text[start:end].rstrip("♪♫ \t\n"))
    is_sound = SOUND.fullmatch(text, start, end) is not None
    pieces, position = list[Piece](), start + is_sound
    for tag in TAG.finditer(text, position, end):
        kind: Kind = "empty" if tag[1] is None else "close" if tag[1] else "open"
        pieces += [Piece(position, tag.start()), Piece(*tag.span(), kind, tag[2] or "")]
        position = tag.end()
    content, start, end = marked_of(text, [*pieces, Piece(position, end - is_sound)], str)
    lines = TAG.sub("", text[start:end]).split("\n")
    width = max(WIDTH, *map(len, lines))

    def write(translation: Marked) -> str:
        return Marked(_broken(translation.text, len(lines), width), translation.marks).written

    return Segment(start, end, content, write)


def _broken(text: str, n_lines: int, width: int) -> str:
    """A text on lines of similar lengths: as many as before, or more if one is longer than the
    width. No character moves.
    """
    n_lines = max(n_lines, math.ceil(len(text) / width))

    def starts(length: int) -> list[int]:
        """Of the lines, if none has more characters, but for a longer word."""
        lines = re.finditer(rf"\S(?:.{{0,{length - 1}}}(?!\S)|\S*)", text)
        return [line.start() for line in lines]

    lengths = range(max(1, len(text) // n_lines), len(text) + 2)
    shortest = bisect_left(lengths, -n_lines, key=lambda length: -len(starts(length)))
    chars = list(text)
    for start in starts(lengths[shortest])[1:]:
        chars[start - 1] = "\n"
    return "".join(chars)
