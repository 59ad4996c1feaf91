"""Splits a text into its sentences."""

import re

from nmt.text.sentences import find_ends

WITHOUT_SPACES = {"bo", "dz", "ja", "jpn", "km", "lo", "my", "th", "yue", "zh", "zho", "cmn"}

LINE_FEED = re.compile(r"[^\S\n]*\n([^\S\n]*\n)?\s*(?=\S)")


def sentences(text: str, language: str) -> list[tuple[int, int]]:
    """The first character of each sentence, and the one after its last; spaces stand between them.

    An end must be one by nmt's rules and, where they are installed, by those of sentencex, which
    knows the abbreviations of many languages. A line ends one, too, unless the next one goes on
    with a lower-case letter.
    """
    feeds = [feed for feed in LINE_FEED.finditer(text) if feed[1] or not text[feed.end()].islower()]
    starts = [0, *(feed.end() for feed in feeds)]
    lines = zip(starts, [*(feed.start() for feed in feeds), len(text)], strict=True)
    return [
        (start + first, start + last)
        for start, end in lines
        for first, last in _of_line(text[start:end], language)
    ]


def _of_line(text: str, language: str) -> list[tuple[int, int]]:
    ends = find_ends(text)
    if ends and (known := _starts(text, language)) is not None:
        ends = [
            (end, start)
            for end, start in ends
            # Items of lists, and ends without a space, are not in sentencex.
            if start in known or start == end or text[start].isdecimal()
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
