"""Pairs that are wrong by themselves: a damaged encoding, markup of one side only, no text."""

import re
from typing import Literal, get_args

from nmt.data.cleaning import is_phrase

Reason = Literal[
    "encoding", "markup", "copies", "other_language", "boilerplate", "misaligned", "partial"
]
REASONS: tuple[Reason, ...] = get_args(Reason)  # keys of data.cleaning

# A byte that continues a character of UTF-8, read as Latin-1 or Windows-1252. Some of them are
# punctuation, which may stand behind a capital letter at the end of a word.
_SIGNS = "\x80-\x9f¡-ª¬-¶¸-º¼-¿€‚ƒ†‡ˆ‰Š‹ŒŽ•˜™š›œžŸ"
_PUNCTUATION = "«·»„‘’“”–—…"
_NEXT = f"[{_SIGNS}{_PUNCTUATION}\xa0]"
MOJIBAKE = re.compile(
    # "Å²" is an area.
    f"(?:[ÂÃÄ]|Å(?![²³]))(?:[{_SIGNS}]|[„“”–—](?=[a-zß-ÿ]))|(?<![«»„“\"'(])Â[«»·]"
    "|â(?:[€\x80]|‚¬)|ï¿½|\ufffd"
    f"|(?:[Â-ß]{_NEXT}|[à-ï]{_NEXT}{{2}}){{2}}"
    # The same, read as Windows-1250, Windows-1251 (German, then Cyrillic), and code pages of DOS.
    "|Ă[Ľ¶¤ź„–ś©]|Г[ј¶¤џ„©]|(?:[РС][Ђ-Џ‚ђѓ„…†‡€‰‹‘’“”•™љ›њќћџЎўЈ¤Ґ¦§©Є«¬®Ї°±Ііґµ¶·№є»јЅѕї]){2}"
    r"|[├┬╨╤](?![─├┬│\s])"
)
MARKUP = re.compile(
    r"</?(?:a|b|i|u|p|br|em|li|ul|ol|td|tr|th|table|div|span|font|img|strong|h\d|sup|sub|script"
    r"|style|center)\b[^<>]*>|</[A-Za-z][\w-]*>|\[\[[^\[\]]*\]\]|\[/(?:b|i|u|url|img|quote|code)\]"
    # Quotation marks and the French space before a colon belong to the language.
    r"|&(?:#(?!39;|160;|x27;)\w+|[lg]t|hellip|[mn]dash|copy|amp;#?\w+"
    r"|[A-Za-z]{1,2}(?:uml|acute|grave|circ|cedil|tilde|ring|lig));|&nbsp;(?! ?[:;!?»%\d])"
)
FILLERS = {"todo", "tbd", "xxx", "n/a", "n.n.", "na", "none", "null"}


def reason_of(src: str, tgt: str) -> Reason | None:
    """Why a pair is wrong; None if it may be right. The sides are as the file has them."""
    for text in (src, tgt):
        if not text.isascii() and MOJIBAKE.search(text):
            return "encoding"
    if bool(MARKUP.search(src)) != bool(MARKUP.search(tgt)):
        return "markup"
    return "partial" if _is_nothing(src, tgt) or _is_nothing(tgt, src) else None


def number_of_reason(src: str, tgt: str) -> int:
    """The place of the reason in `REASONS`, from 1 on; 0 if there is none."""
    return (None, *REASONS).index(reason_of(src, tgt))


def _is_nothing(text: str, other: str) -> bool:
    """Whether `text` only stands in the place of `other`. "1" may be "one", and "N/A" two words."""
    if len(text) > 12 or not any(map(str.isalpha, other)):
        return False
    text, other = text.strip().lower(), other.strip()
    if text in FILLERS:
        return is_phrase(other, n_words=4)
    n_digits = sum(map(str.isdigit, text))
    return not any(map(str.isalpha, text)) and is_phrase(other, n_words=2 + 2 * n_digits)
