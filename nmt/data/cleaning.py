"""Why a pair is dropped by what it is alone: without a text on one side, too long, or with sides of
very different lengths.
"""

from nmt.config.schema import CleaningConfig

EMPTY_SOURCE = "empty source"
EMPTY_TARGET = "empty target"
MISSING_VALUE = "missing value"
NO_LETTERS = "no letters or digits"
TOO_LONG = "too long"
LENGTH_RATIO = "length ratio"

# How pandas, R, databases and spreadsheets write an empty cell, in lower case (the values that
# `pandas.read_csv` reads as missing). "na" is a word of many languages, "NA" is none.
MISSING = {
    *("nan", "-nan", "none", "null", "(null)", "undefined", "nat", "\\n", "n/a", "<na>"),
    *("#na", "#n/a", "#n/a n/a", "#value!", "#ref!", "#name?", "#div/0!", "#num!", "#null!"),
    *("1.#ind", "1.#qnan", "-1.#ind", "-1.#qnan", "<null>", "[null]"),
}
LONGEST_MISSING = max(map(len, MISSING))

# Added to both lengths, so that short pairs may differ more.
RATIO_SLACK = 10


def drop_reason(src: str, tgt: str, config: CleaningConfig) -> str | None:
    """Why to drop a pair of normalized sentences, or None to keep it. Lengths are in characters."""
    if reason := no_translation(src, tgt):
        return reason
    longer, shorter = max(len(src), len(tgt)), min(len(src), len(tgt))
    if longer > config.max_characters:
        return TOO_LONG
    if (longer + RATIO_SLACK) / (shorter + RATIO_SLACK) > config.max_length_ratio:
        return LENGTH_RATIO
    return None


def no_translation(src: str, tgt: str) -> str | None:
    """Why one of the sentences is no translation of the other; None if it may be one."""
    if not (src and tgt):
        return EMPTY_TARGET if src else EMPTY_SOURCE
    return _is_missing(src, tgt) or _is_missing(tgt, src)


def _is_missing(text: str, other: str) -> str | None:
    """Why `text` only stands for a translation of `other`; None for "null" beside "zero"."""
    if len(text) > LONGEST_MISSING and text[0].isalnum():  # most texts; this is faster
        return None
    if text == "NA" or text.lower() in MISSING:
        return MISSING_VALUE if is_phrase(other, n_words=4) else None
    if any(map(str.isalnum, text)) or not any(map(str.isalnum, other)):
        return None
    return NO_LETTERS if is_phrase(other, n_words=2) else None


def is_phrase(text: str, n_words: int) -> bool:
    """Whether a text has that many words, one fewer with a full stop, or as many without spaces."""
    n_needed = n_words - (text[-1] in ".?!…")
    return text.count(" ") + 1 >= n_needed or text[-1] in "。？！" or len(text.encode()) > 36
