"""Finds what a translation must have unchanged, each as a whole: placeholders, tags, numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from nmt.decoding.items import PATTERNS

Kind = Literal["item", "number", "tag", "sign"]


@dataclass(frozen=True)
class Span:
    """A part of a text that stays as it is.

    Attributes:
        start, end: its characters.
        kind: `item` and `number` take the place of a word. `tag` encloses words, or stands between
            them. So does `sign`: an emoji, an entity such as &amp;, or \\n as two signs, with the
            spaces before it.
    """

    start: int
    end: int
    kind: Kind


_EMOJI = "[\U0001f000-\U0001faff\u2600-\u27bf]"
_VALUE = r"\"[^\"<]*\"|'[^'<]*'|[^\s\"'<>/]+"
_FLAGS = "checked|controls|disabled|download|hidden|multiple|open|readonly|required|selected"
_FORMS: list[tuple[Kind, str]] = [
    ("tag", r"</[A-Za-z\d][\w:.-]*\s*>"),
    (
        "tag",
        rf"<[A-Za-z\d][\w:.-]*(?:\s+(?:[\w:@.-]+\s*=\s*(?:{_VALUE})|(?:{_FLAGS})(?=[\s/>])))*"
        r"\s*/?>",
    ),
    (
        "sign",
        rf"(?<!\s)\s*(?:(?:{_EMOJI}[\ufe0f\u200d]*)+|\\[nrt](?![a-z])|<!--.*?-->"
        r"|&(?:amp|nbsp|quot|apos|[lg]t|hellip|[mn]dash|[lr][ad]quo|copy|reg|#\w+);)",
    ),
    # {n, plural, one {# dog} other {# dogs}}
    (
        "item",
        r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,"
        r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}",
    ),
    ("number", r"\d{4}-\d\d-\d\dT[\d:.]+\d(?:Z|[+-]\d\d:?\d\d)?"),
    ("number", r"(?<!\d)\d+\.\d+\.\d+(?:[.+-]\w+)*"),
    ("number", r"\d+(?:[.,:/'’-]\d+)+|(?<!\d)\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)|\d{3,}"),
]
_PATTERNS: list[tuple[Kind, re.Pattern[str]]] = [
    *((kind, re.compile(form)) for kind, form in _FORMS),
    *(("item", pattern) for kind, pattern in PATTERNS if kind not in ("tag", "emoji")),
]
_SMALL = re.compile(r"\d{1,2}[/'’-]\d|\d[/'’-]\d\d")  # "5-6" and "1/2" are left to the model
# Most sentences have nothing of all this.
_HINT = re.compile(rf"\d[\d.,:/'’-]*\d|[{{%<&@#$\\`_/\[]|\w\.\w|{_EMOJI}|[A-Z\d]-\d|\d-[A-Z]")

# What belongs to an item beside it: "file_%d.txt", "{0}%", "250GB", but not "1990s" and "100th".
_WORD = r"[A-Za-z\d_\u00c0-\u024f\u0370-\u052f]"
_BEFORE = re.compile(rf"(?:{_WORD}+=?|[#@])\Z")
_AFTER = {
    "item": re.compile(rf"(?:{_WORD}+)?(?:\.[a-z]\w{{0,3}}(?!\w))?(?:%%|%(?!\w))?"),
    "number": re.compile(rf"(?!(?:s|st|nd|rd|th|er|ers|e|ème)\b)(?:{_WORD}+)?(?:%%)?"),
}
MAX_BEFORE = 100  # characters
_JOINT = re.compile(r"[/:.,|=+~_\\-]?")  # between two items that are one: "{a}/{b}"


def spans(text: str, keep: Sequence[re.Pattern[str]] = ()) -> list[Span]:
    """The parts of a text that stay as they are, in order; none overlaps another. Numbers have
    three digits at least, or are decimals, dates or times.

    Args:
        keep: finds further items.
    """
    if not keep and not _HINT.search(text):
        return []
    found = [
        Span(*match.span(), kind)
        for kind, pattern in [*_PATTERNS, *(("item", pattern) for pattern in keep)]
        for match in pattern.finditer(text)
        if match.group() and not (kind == "number" and _SMALL.fullmatch(match.group()))
    ]
    whole: list[Span] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if not whole or span.start >= whole[-1].end:
            whole.append(span)
    last_end = 0
    following = [*(span.start for span in whole), len(text)][1:]
    for index, end in enumerate(following):
        whole[index] = _with_neighbors(text, whole[index], last_end, end)
        last_end = whole[index].end
    return _joined(text, whole)


def _with_neighbors(text: str, span: Span, first: int, last: int) -> Span:
    """The item and the letters that touch it, between two places."""
    if span.kind in ("tag", "sign"):
        return span
    before = _BEFORE.search(text, max(first, span.start - MAX_BEFORE), span.start)
    start = span.start if before is None else before.start()
    after = _AFTER[span.kind].match(text, span.end, last)
    return Span(start, span.end if after is None else after.end(), span.kind)


def _joined(text: str, found: Sequence[Span]) -> list[Span]:
    """Items that touch are one."""
    joined = [*found[:1]]
    for before, span in pairwise(found):
        are_items = {before.kind, span.kind} <= {"item", "number"}
        if are_items and _JOINT.fullmatch(text, before.end, span.start):
            kind = span.kind if joined[-1].kind == "number" else joined[-1].kind
            joined[-1] = Span(joined[-1].start, span.end, kind)
        else:
            joined.append(span)
    return joined
