"""Normalization: one line of text in Unicode NFC, without invisible characters."""

import re
import unicodedata

# Repairs, counted in sentences.
CONTROL_CHARACTERS = "control characters"
WHITE_SPACE = "white space"
UNICODE_NFC = "Unicode NFC"
REPAIRS = (CONTROL_CHARACTERS, WHITE_SPACE, UNICODE_NFC)

# Invisible: control characters other than white space, soft hyphen, zero-width space, marks of
# writing direction, word joiner, byte order mark, lone surrogates. The zero-width joiners U+200C
# and U+200D stay: Persian, Hindi and emoji need them.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]+"
)

FIRST_VOWEL_SIGN = "\u0900"


def _vowel_signs() -> str:
    """The combining signs of the scripts of India and South-East Asia, without which words are
    others; `\\w` lacks them.
    """
    blocks = (range(ord(FIRST_VOWEL_SIGN), 0x1D00), range(0xA800, 0xAC00), range(0x11000, 0x12000))
    characters = (chr(code) for block in blocks for code in block)
    return "".join(
        character for character in characters if unicodedata.category(character) in ("Mn", "Mc")
    )


# For character classes of regular expressions: letters, digits, underscore and vowel signs.
WORD_CHARACTERS = rf"\w{_vowel_signs()}"


def normalize(text: str) -> str:
    """One line in Unicode NFC without invisible characters, words separated by one space each."""
    return text if _is_normal(text) else normalize_and_report(text)[0]


def normalize_and_report(text: str) -> tuple[str, list[str]]:
    """The normal form of `text`, and the names of the repairs (see `REPAIRS`) that changed it."""
    if _is_normal(text):
        return text, []
    visible = _INVISIBLE.sub("", text)
    spaced = " ".join(visible.split())
    composed = unicodedata.normalize("NFC", spaced)
    steps = (
        (CONTROL_CHARACTERS, text, visible),
        (WHITE_SPACE, visible, spaced),
        (UNICODE_NFC, spaced, composed),
    )
    return composed, [name for name, before, after in steps if before != after]


def _is_normal(text: str) -> bool:
    """A fast check that nearly every sentence passes: printable characters are neither invisible
    nor white space, except " ".
    """
    return (
        text.isprintable()
        and "  " not in text
        and text[:1] != " "
        and text[-1:] != " "
        and (text.isascii() or unicodedata.is_normalized("NFC", text))
    )
