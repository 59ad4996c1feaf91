"""Counts the sentences of a text, by their ends."""

import re

_CLOSING, _OPENING = "\"'’”»“)\\]", "\"'‘“„«»(\\[¿¡"
_WIDE = "。！？｡"  # no space follows them
END_MARKS = ".!?…।؟" + _WIDE
# Abbreviations before a name, of several languages; a single letter is an initial.
_TITLE = re.compile(
    r"mrs?|ms|dr|prof|st|mt|hr|fr|sra?|jr|gen|col|lt|capt|sgt|rev|hon|gov|sen|rep|mme|mlle|dott|sig"
    r"|ing|no|nr|vs",
    re.IGNORECASE,
)
# The word before the end, the mark, closing marks, opening marks, the next word.
_END = re.compile(rf"([^\W_]*)([.!?…।؟]+)([{_CLOSING}]*)\s+([{_OPENING}—–-]*\s?)(?=([^\W\d_]+))")
_WIDE_END = re.compile(rf"[{_WIDE}]+[」』）{_CLOSING}]*(?=\s*\w|\s*[「『（])")
_MARKS = re.compile(rf"[{END_MARKS}]+(?=[{_CLOSING}」』）]*(?:\s|$))|[{_WIDE}]+")


def n_sentences(text: str, *, ordinals: bool = True) -> int:
    """How many sentences a text surely has. An end has a mark, and no lower-case letter follows;
    abbreviations, initials, ordinals ("3. Mai") and "... I" are no ends. ordinals: whether there
    may be some, or each number ends a sentence ("She is 3. Tom is 4.").
    """
    ends = [_is_end(match, ordinals) for match in _END.finditer(text)]
    return 1 + len(_WIDE_END.findall(text)) + sum(ends)


def _is_end(match: re.Match[str], ordinals: bool) -> bool:
    word, mark, closing, opening, following = match.groups()
    if following[0].islower() or (mark[-2:] in ("..", "…") and following == "I"):
        return False
    if closing and not opening:  # "Stop!" Tom said.
        return mark == "."
    if mark != ".":
        return True
    if word.isdecimal():
        return len(word) > 2 or not ordinals
    return len(word) > 1 and not _TITLE.fullmatch(word)


def most_sentences(text: str) -> int:
    """How many sentences a text can have: its marks, and one more if there is none at the end."""
    ends = [match.end() for match in _MARKS.finditer(text)]
    rest = text[ends[-1] :] if ends else text
    return len(ends) + any(map(str.isalnum, rest))
