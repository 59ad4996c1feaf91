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
# No space follows: "I love you.I miss you." and "Hello!Hi!", but neither "Mr.Smith" nor "ASP.NET".
_LOWER, _UPPER = "a-zß-ÿα-ώа-я", "A-ZÀ-ÞΑ-ΩА-Я"
_TIGHT_END = re.compile(
    rf"(?:\b[{_LOWER}]{{2,}}\.|\w[!?])(?=[{_UPPER}](?:[{_LOWER}]+|(?<=I))(?![\w@./=-]))"
)
_LIST_NUMBER = re.compile(r"(?<!\S)(\d+)[.)]\s+(?=\w)")
_WIDE_END = re.compile(rf"[{_WIDE}]+[」』）{_CLOSING}]*(?=\s*\w|\s*[「『（])")
_MARKS = re.compile(rf"[{END_MARKS}]+(?=[{_CLOSING}」』）]*(?:\s|$))|[{_WIDE}]+")


def n_sentences(text: str, *, ordinals: bool = True) -> int:
    """How many sentences a text surely has. An end has a mark, and no lower-case letter follows;
    abbreviations, initials, ordinals ("3. Mai") and "... I" are no ends. ordinals: whether there
    may be some, or each number ends a sentence ("She is 3. Tom is 4."). The items of a list that
    begins the text ("1. Milk 2. Bread") count as sentences.
    """
    ends = [_is_end(match, ordinals) for match in _END.finditer(text)]
    n_ends = len(_WIDE_END.findall(text)) + len(_TIGHT_END.findall(text)) + sum(ends)
    numbers = _LIST_NUMBER.findall(text)
    is_list = _LIST_NUMBER.match(text) and numbers == [str(i + 1) for i in range(len(numbers))]
    return max(1 + n_ends, len(numbers) if is_list else 0)


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
    return len(word) != 1 and match.start(2) > 0 and not _TITLE.fullmatch(word)


def most_sentences(text: str) -> int:
    """How many sentences a text can have: its marks, and one more if there is none at the end."""
    ends = [match.end() for match in _MARKS.finditer(text)]
    rest = text[ends[-1] :] if ends else text
    n_marked = len(ends) + any(map(str.isalnum, rest))
    return max(n_marked, n_sentences(text)) if text else 0
