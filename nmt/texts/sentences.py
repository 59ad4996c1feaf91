"""Splits a text into its sentences: an end must be one by the rules of this file and by those of
sentencex, which knows the abbreviations of many languages.
"""

import re
from dataclasses import replace
from itertools import pairwise

import sentencex

from nmt.texts.marked import Marked

WITHOUT_SPACES = {"bo", "dz", "ja", "jpn", "km", "lo", "my", "th", "yue", "zh", "zho", "cmn"}
_CLOSING, _OPENING = "\"'’”»“)\\]", "\"'‘“„«»(\\[¿¡"
_WIDE = "。！？｡"  # no space follows them
END_MARKS = ".!?…।॥؟۔።" + _WIDE
# Abbreviations before a name, of several languages; a single letter is an initial.
TITLE = re.compile(
    r"mrs?|ms|dr|prof|st|mt|hr|fr|sra?|jr|gen|col|lt|capt|sgt|rev|hon|gov|sen|rep|mme|mlle|dott|sig"
    r"|ing|nr|vs|fig|vol|approx|cf|ca|bzw|evtl|inkl|vgl|bspw|abb|núm|av|bd|uds?|ул|им|рис|см|пр|стр",
    re.IGNORECASE,
)
# They begin a sentence after "5 p.m.", "etc." and a quotation.
BEGINS = re.compile(
    r"(?:He|She|It|We|They|You|The|Then|This|That|There|These|Those|But|And|So|What|Why|When|How|Who"
    r"|Er|Wir|Es|Das|Dann|Aber|Und|Il|Elle|On|Nous|Mais|Ella|Pero|Entonces)\b"
)
# Languages that write ordinals with a full stop: "3. Mai".
_WITH_ORDINALS = "bs cs da de et eu fi fo hr hu is lb lv nb nn no pl sk sl sr tr"
# The word before the end, the mark, closing marks, opening marks, the next word. None is at the
# start: "... And you?"
END = re.compile(
    rf"(?<![^\W_])([^\W_]+|(?<![.!?…।॥؟۔]))(?!^)(?<!^[{_OPENING}])([.!?…।॥؟۔]+)"
    rf"([{_CLOSING}]*)\s+((?:\.{{3}}|…)?[{_OPENING}—–-]*\s?)(?=([^\W\d_]+))"
)
# No space follows: "I love you.I miss you." and "Hello!Hi!", but neither "Mr.Smith" nor "ASP.NET".
_LOWER, _UPPER = "a-zß-ÿα-ώа-я", "A-ZÀ-ÞΑ-ΩА-Я"
TIGHT_END = re.compile(
    rf"(?:\b[{_LOWER}]{{2,}}\.|\w[!?])(?=[{_UPPER}](?:[{_LOWER}]+|(?<=I))(?![\w@./=-]))"
)
LIST_NUMBER = re.compile(r"(?<!\S)(\d+)[.)]\s+(?=\w)")
WIDE_END = re.compile(
    rf"(?<![{_WIDE}])[{_WIDE}]+[」』）{_CLOSING}]*(?=\s*\w|\s*[「『（])(?!と|って)"
)
LINE_FEED = re.compile(r"(?<!\s)[^\S\n\t]*(?:\n([^\S\n]*\n)?|(?!^)(\t))\s*(?=\S)")
_SPACES = re.compile(r"\s*")
_MARKS = re.compile(rf"(?<![{END_MARKS}])[{END_MARKS}]+(?=[{_CLOSING}」』）]*(?:\s|$))|[{_WIDE}]+")
_SEPARATOR = re.compile(r"(?<!\s)\s+[•·|/]\s+")  # of elements
_BREAKS = re.compile(r"(?<!\s)\s*+\0[\s\0]*+")  # with the spaces around them


def split(text: Marked, src_language: str, tgt_language: str) -> tuple[list[Marked], list[Marked]]:
    """The sentences of a text, and what stands between their translations."""
    shown = _with_tabs(text)
    places = [
        (line + start, line + end)
        for line, line_end in _lines(text)
        for start, end in split_sentences(shown[line:line_end], src_language)
    ]
    borders = [border for (_, end), (start, _) in pairwise(places) for border in (end, start)]
    pieces = text.cut([0, *borders, len(text.text)])
    parts, gaps = pieces[::2], pieces[1::2]
    if writes_spaces(tgt_language):
        # None after a line feed that is written as two signs.
        glued = [any(mark.position == len(part.text) for mark in part.marks) for part in parts]
        gaps = [
            gap if gap.written or is_glued else Marked(" ")
            for gap, is_glued in zip(gaps, glued, strict=False)
        ]
    else:
        gaps = [
            gap
            if gap.text.strip(" ")
            else Marked("", tuple(replace(mark, position=0) for mark in gap.marks))
            for gap in gaps
        ]
    return parts, gaps


def _lines(text: Marked) -> list[tuple[int, int]]:
    """What stands between breaks. After a single one, a lower-case letter goes on with the line."""
    places = [0, *(mark.position for mark in text.marks if mark.kind == "break"), len(text.text)]
    shown = "\0".join(text.text[slice(*part)].replace("\0", " ") for part in pairwise(places))
    borders, n_breaks = list[int](), 0
    for found in _BREAKS.finditer(shown):
        end, n_own = found.start() - n_breaks, found[0].count("\0")
        n_breaks += n_own
        following = shown[found.end() : found.end() + 1]
        if found.start() and following and not (n_own == 1 and following.islower()):
            borders += [end, found.end() - n_breaks]
    edges = [0, *borders, len(text.text)]
    return [*zip(edges[::2], edges[1::2], strict=True)]


def _with_tabs(text: Marked) -> str:
    """A text in which tabs divide elements, where a sign such as "|" stands between two."""
    starts = {mark.position for mark in text.marks if mark.kind == "open" or mark.parts}
    ends = {mark.end for mark in text.marks if mark.kind == "close" or mark.parts}

    def divided(found: re.Match[str]) -> str:
        is_between = found.start() in ends and found.end() in starts
        return re.sub(".", "\t", found[0]) if is_between else found[0]

    return _SEPARATOR.sub(divided, text.text)


def split_sentences(text: str, language: str) -> list[tuple[int, int]]:
    """The first character of each sentence, and the one after its last; spaces stand between them.

    A tab ends one, too, and so does a line, unless the next one goes on with a lower-case letter.
    """
    feeds = [
        feed
        for feed in LINE_FEED.finditer(text)
        if feed[1] or feed[2] or not text[feed.end()].islower()
    ]
    starts = [0, *(feed.end() for feed in feeds)]
    ends = [*(feed.start() for feed in feeds), len(text)]
    return [
        (start + first, start + last)
        for start, end in zip(starts, ends, strict=True)
        for first, last in _sentences_of_line(text[start:end], language)
    ]


def _sentences_of_line(text: str, language: str) -> list[tuple[int, int]]:
    ends = find_ends(text, ordinals=has_ordinals(language))
    if ends:
        boundaries = sentencex.get_sentence_boundaries(language or "en", text)
        known = {each["start_index"] for each in boundaries}
        ends = [
            (end, start)
            for end, start in ends
            # It has no items of lists, ends without a space, and none after a number.
            if start in known
            or start == end
            or text[start].isdecimal()
            or text[end - 2].isdecimal()
            or text[start].islower()
            or text[start] in ".…"
            or BEGINS.match(text, start)
        ]
    starts = [0, *(start for _, start in ends)]
    return [*zip(starts, [*(end for end, _ in ends), len(text)], strict=True)]


def writes_spaces(language: str) -> bool:
    """Whether there are spaces between the sentences of a language."""
    return language not in WITHOUT_SPACES


def find_ends(text: str, *, ordinals: bool = True) -> list[tuple[int, int]]:
    """Where a sentence surely ends inside the text: (end, start of the next one), in order. An end
    has a mark, and no lower-case letter follows, if the text has others; abbreviations, initials,
    ordinals ("3. Mai") and "... I" are no ends. Each item of a list ("1. Milk 2. Bread") is a
    sentence. ordinals: whether there may be some, or each number ends a sentence ("She is 3. Tom is
    4.").
    """
    numbers = [*LIST_NUMBER.finditer(text)]
    is_list = bool(LIST_NUMBER.match(text)) and [int(each[1]) for each in numbers] == [
        *range(1, len(numbers) + 1)
    ]
    starts = {0, *(each.start() for each in numbers if is_list)}
    found, is_lower = dict[int, int](), text.islower()
    for match in END.finditer(text):
        begins_list = match.start(1) in starts and re.fullmatch(r"\d\d?", match[1])
        if not begins_list and _is_end(match, ordinals, is_lower):
            found[match.end(3)] = match.start(4)
            starts.add(match.start(4))
    for pattern in (WIDE_END, TIGHT_END):
        for match in pattern.finditer(text):
            found[match.end()] = _SPACES.match(text, match.end()).end()  # type: ignore[union-attr]
    if is_list:
        found |= {len(text[: each.start()].rstrip()): each.start() for each in numbers[1:]}
    return sorted(found.items())


def n_sentences(text: str, *, ordinals: bool = True) -> int:
    """How many sentences a text surely has, see `find_ends`."""
    return 1 + len(find_ends(text, ordinals=ordinals))


def has_ordinals(language: str) -> bool:
    """Whether "3." may be one; so it may in an unknown language."""
    return language in _WITH_ORDINALS.split() or len(language) != 2


def _is_end(match: re.Match[str], ordinals: bool, is_lower: bool) -> bool:
    word, mark, closing, opening, following = match.groups()
    begins = BEGINS.match(match.string, match.start(5)) is not None
    goes_on = (following[0].islower() and (not is_lower or len(mark) > 1)) or (
        mark[-2:] in ("..", "…") and following == "I"
    )
    if goes_on and opening[:1] not in (".", "…"):  # "Wait... ...and see."
        return False
    if closing and not opening:  # "Stop!" Tom said.
        return mark == "." or begins
    if mark != ".":
        return True
    if word.isdecimal():
        return len(word) > 2 or not ordinals
    if len(word) == 1:
        return word.islower() and begins
    return match.start(2) > 0 and not TITLE.fullmatch(word)


def most_sentences(text: str) -> int:
    """How many sentences a text can have: its marks, and one more if there is none at the end."""
    ends = [match.end() for match in _MARKS.finditer(text)]
    rest = text[ends[-1] :] if ends else text
    n_marked = len(ends) + any(map(str.isalnum, rest))
    return max(n_marked, n_sentences(text)) if text else 0
