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
UPPER = r"[^\W\d_a-zß-ÿа-яё]"  # or a letter of a script without cases
# Stars also stress words: "*sighs* I see." begins with a sound, "*This* is it." does not.
SOUND = rf"\[[^\[\]]*\]|\([^()]*\)|\*[^*\n]+\*(?=\s*+(?:[^\w\s]|{UPPER}|\Z))"
# TOM:, "Tom Smith:" or "Tom (sighs):"; but not "He said:"
NAME = (
    rf"(?:{UPPER}[^a-zß-ÿа-яё:\n<>{{}}]{{0,60}}|{UPPER}\w+(?: {UPPER}\w+)?)"
    rf"(?: ?(?:{SOUND}))?:(?=\s|</)"
)
# Before the words of a speaker: dashes, ">>", notes of music or "#", sounds, a name.
LEAD = re.compile(
    r"(?:[-‐–—•♪♫¶\s]|#(?=\s)|(?:>|&gt;){2,}|\{\\[^{}]*\}|<v[ .][^<>]*>"
    rf"|<[^<>]*>(?=[-‐–—•♪♫¶>\[(]|&gt;|{NAME})|(?:{SOUND}):?|{NAME})*+"
)
# Where another speaker begins inside a line, with the first letter after a dash; and also inside
# one that begins with a dash.
AFTER_END = r"(?<=[.?!…♪>)\]\"”’»][ \t])[ \t]*+"
BEFORE = r"[-‐–—](?:<[^<>]{0,50}>|[ \t¿¡\"“„«'‘…♪\[(]){0,5}"
TURN = re.compile(rf"(?<![>;])(?=(?:>|&gt;){{2}})|{AFTER_END}(?:(?={BEFORE}([^\W\d_]))|(?={NAME}))")
DASH = re.compile(rf"{AFTER_END}(?={BEFORE}\w)|(?<=[ \t])(?={BEFORE}([^\W\d_]))")
# Tags, and sounds between the words of a speaker. Others in round brackets are a part of them.
MARKUP = re.compile(
    TAG.pattern + r"|(?P<sound>\[[^\[\]]*\]|(?<=[.?!…♪)\]\"”’»>]\s)(?:\([^()]*\)|\*[^*\n]+\*)"
    r"|\([^()]*\)(?=(?:\s|<[^<>]*>|[♪♫])*+\Z))"
)
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
        lead = _lead(line[0]).strip()
        has_dash = TAG.sub("", lead).startswith(("-", "‐", "–", "—"))
        for turn in (*TURN.finditer(line[0]), *(DASH.finditer(line[0]) if has_dash else ())):
            if not (turn[1] and turn[1].islower()):
                starts.add(start + line.start() + turn.end())
        if lead and lead[0] != "(":  # which may stand inside a sentence, too
            starts.add(start + line.start())
    for first, last in pairwise([*sorted(starts), end]):
        yield from _speech(text, first, last)


def _lead(text: str) -> str:
    found = LEAD.match(text)
    return found[0] if found else ""


def _speech(text: str, first: int, end: int) -> Iterator[Segment]:
    """What one speaker says, and the sounds before, between and behind the words."""
    start = first + len(_lead(text[first:end]))
    end = start + len(text[start:end].rstrip("♪♫¶ \t\n").removesuffix(" #").rstrip())
    sounds = [*re.compile(SOUND).finditer(text, first, start)]
    pieces, position = list[Piece](), start
    for found in MARKUP.finditer(text, start, end):
        kind: Kind = "empty" if found[1] is None else "close" if found[1] else "open"
        pieces += [Piece(position, found.start()), Piece(*found.span(), kind, found[2] or "")]
        position = found.end()
        sounds += [found] if found["sound"] else []
    for sound in sounds:
        yield from _speech(text, sound.start() + 1, sound.end() - 1)
    content, start, end = marked_of(text, [*pieces, Piece(position, end)], str)
    if not any(map(str.isalpha, content.text)):
        return
    lines = TAG.sub("", text[start:end]).split("\n")
    width = max(WIDTH, *map(len, lines))

    def write(translation: Marked) -> str:
        return Marked(_broken(translation.text, len(lines), width), translation.marks).written

    yield Segment(start, end, content, write)


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
