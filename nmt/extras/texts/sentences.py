"""Splits a text into its sentences, and tells what a word is.

A word has letters or digits, with the signs inside it ("don't", "3.5"); "'s" and every other sign
are words by themselves.
"""

import re

from nmt.text.sentences import BEGINS, find_ends, has_ordinals
from nmt.text.tokenizers import WORD_CHARACTERS

WITHOUT_SPACES = {"bo", "dz", "ja", "jpn", "km", "lo", "my", "th", "yue", "zh", "zho", "cmn"}

# Thai, Lao, Tibetan, Burmese, Khmer, Japanese, Chinese
NO_SPACES = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf"
NO_SPACES += "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Accents that follow their letter, joiners of letters, and what no reader sees inside a word.
_INSIDE = "\u0300-\u036f\u00ad\u200b-\u200f\u2060\ufe0f"
_LETTER = rf"(?:(?![{NO_SPACES}])[{WORD_CHARACTERS}{_INSIDE}])"
_SIGN = r"(?!['’]s\b)['’-]|(?<=\d)[.,:](?=\d)"
WORD = re.compile(rf"{_LETTER}+(?:(?:{_SIGN}){_LETTER}+)*|['’]s\b|\S[{_INSIDE}]*")

LINE_FEED = re.compile(r"[^\S\n\t]*(?:\n([^\S\n]*\n)?|(?!^)(\t))\s*(?=\S)")


def sentences(text: str, language: str) -> list[tuple[int, int]]:
    """The first character of each sentence, and the one after its last; spaces stand between them.

    An end must be one by nmt's rules and, where they are installed, by those of sentencex, which
    knows the abbreviations of many languages. A tab ends one, too, and so does a line, unless the
    next one goes on with a lower-case letter.
    """
    feeds = [
        feed
        for feed in LINE_FEED.finditer(text)
        if feed[1] or feed[2] or not text[feed.end()].islower()
    ]
    starts = [0, *(feed.end() for feed in feeds)]
    lines = zip(starts, [*(feed.start() for feed in feeds), len(text)], strict=True)
    return [
        (start + first, start + last)
        for start, end in lines
        for first, last in _of_line(text[start:end], language)
    ]


def _of_line(text: str, language: str) -> list[tuple[int, int]]:
    ends = find_ends(text, ordinals=has_ordinals(language))
    if ends and (known := _starts(text, language)) is not None:
        ends = [
            (end, start)
            for end, start in ends
            # It has no items of lists, ends without a space, and none after a number.
            if start in known
            or start == end
            or text[start].isdecimal()
            or text[end - 2].isdecimal()
            or text[start].islower()
            or BEGINS.match(text, start)
        ]
    starts = [0, *(start for _, start in ends)]
    return [*zip(starts, [*(end for end, _ in ends), len(text)], strict=True)]


def writes_spaces(language: str) -> bool:
    """Whether there are spaces between the sentences of a language."""
    return language.lower().replace("_", "-").partition("-")[0] not in WITHOUT_SPACES


def _starts(text: str, language: str) -> set[int] | None:
    """Where sentences start for sentencex; None if it is not installed."""
    try:
        import sentencex
    except ImportError:
        return None
    code = language.replace("_", "-").partition("-")[0] or "en"
    return {each["start_index"] for each in sentencex.get_sentence_boundaries(code, text)}
