"""What is mended in a sentence, and which pairs are dropped and why. Every repair and every drop is counted under its name."""

import re
import unicodedata

from nmt.config.schema import CleaningConfig

# Why a pair is dropped, in the order of the report. The first two are found while reading, the last two over all pairs.
UNDECODABLE = "undecodable"
TOO_FEW_COLUMNS = "too few columns"
EMPTY_SOURCE = "empty source"
EMPTY_TARGET = "empty target"
TOO_LONG = "too long"
LENGTH_RATIO = "length ratio"
DUPLICATE = "exact duplicate"
BEYOND_MAX_PAIRS = "beyond max_pairs"
REASONS = (UNDECODABLE, TOO_FEW_COLUMNS, EMPTY_SOURCE, EMPTY_TARGET, TOO_LONG, LENGTH_RATIO, DUPLICATE, BEYOND_MAX_PAIRS)

# What is mended, counted in sentences.
CONTROL_CHARACTERS = "control characters"
WHITE_SPACE = "white space"
UNICODE_NFC = "Unicode NFC"
REPAIRS = (CONTROL_CHARACTERS, WHITE_SPACE, UNICODE_NFC)

# Invisible: controls that are no white space, soft hyphen, zero-width space, marks of writing direction, word joiner, byte order
# mark, lone surrogates. The zero-width joiners U+200C and U+200D stay: Persian, Hindi and emoji are spelled with them.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]+"
)


def normalize(text: str) -> str:
    """One line in Unicode NFC without invisible characters, words parted by one plain space each, none at the ends."""
    return text if _is_normal(text) else mend(text)[0]


def mend(text: str) -> tuple[str, list[str]]:
    """The normal form of `text`, and the names of the repairs that it took."""
    if _is_normal(text):
        return text, []
    visible = _INVISIBLE.sub("", text)
    spaced = " ".join(visible.split())
    composed = unicodedata.normalize("NFC", spaced)
    steps = ((CONTROL_CHARACTERS, text, visible), (WHITE_SPACE, visible, spaced), (UNICODE_NFC, spaced, composed))
    return composed, [name for name, before, after in steps if before != after]


def fault(src: str, tgt: str, config: CleaningConfig) -> str | None:
    """Why the pair of normalized sentences is to be dropped, or None to keep it. Lengths are in characters."""
    if not src:
        return EMPTY_SOURCE
    if not tgt:
        return EMPTY_TARGET
    longer, shorter = max(len(src), len(tgt)), min(len(src), len(tgt))
    if longer > config.max_characters:
        return TOO_LONG
    # The 10 lets short pairs differ: "Hi." may well be "Guten Tag, die Herrschaften."
    if (longer + 10) / (shorter + 10) > config.max_length_ratio:
        return LENGTH_RATIO
    return None


def _is_normal(text: str) -> bool:
    """A quick way out for nearly every sentence: printable characters are neither invisible nor white space, but for the space."""
    return (
        text.isprintable()
        and "  " not in text
        and text[:1] != " "
        and text[-1:] != " "
        and (text.isascii() or unicodedata.is_normalized("NFC", text))
    )
