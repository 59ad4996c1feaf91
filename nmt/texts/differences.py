"""In what a translation differs from its source: placeholders, tags, addresses, numbers."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nmt.texts.patterns import FORMS, NEXT_VALUE, NUMBER, PATTERNS

_FORMS = re.compile(FORMS)  # the words in the inner braces are text
_BRANCH = re.compile(r"(?<=\w)\s*\{[^{}]*\}")
_WITH_KEY = re.compile(r"[^\W_]+_[^\W_]+")
_POSITION = re.compile(r"\d+\$")  # of an argument: the order may change
_TAG = re.compile(r"<(/?)([A-Za-z0-9][\w:.-]*)(?:\s[^<>]*?)?(/?)>")
_ORDER = re.compile(r"%\d+\$")
_NUMBER = re.compile(NUMBER)
_GLUED = re.compile(r"[^\W\d_]\d|[:-]\d")
_DIGITS = re.compile(r"\d{1,1000}")  # Python refuses to read longer ones as a number
_SEPARATOR = re.compile(r"(?<=\d)[\s.,:/'’-](?=\d)")
_HALF_DAY = re.compile(r"\d\s?[ap]\.?\s?m\b", re.IGNORECASE)  # 2:30 p.m. is 14:30
_MYRIADS = re.compile("[万萬億亿만억]")  # Chinese, Japanese and Korean write 10万 for 100,000
MAX_WORD = 12  # larger numbers are seldom written as words


@dataclass(frozen=True)
class Difference:
    """An item in which a translation differs from its source.

    Attributes:
        kind: placeholder, tag, entity, address, name, file, emoji or number.
        text: as it is written; of a tag without its attributes.
        start: where it begins: if it is missing, in the source, or else in the translation.
        problem: whether it is missing in the translation, is there once too often, ("misplaced", of
            tags) closes what is not open, or ("moved") is not in the order of the source.
    """

    kind: str
    text: str
    start: int
    problem: Literal["missing", "extra", "misplaced", "moved"] = "missing"


def differences(source: str, translation: str) -> list[Difference]:
    """What a translation lacks of the placeholders, tags, addresses and numbers of its source; then
    what it has too many; if it is nothing of these, the first placeholder that takes the value of
    another one, or the tags that are not well-formed.

    Numbers are compared by their digits: "1,250" may become "1.250", and the parts of a date may
    change places. Whole numbers up to `MAX_WORD` may become words. If the source has no digits at
    all, the translation may have numbers ("two thousand" -> "2000"), but not glued to words.
    """
    wanted, found = _find(source), _find(translation)
    missing = [Difference(*each) for each in _beyond(wanted, found)]
    lost = [Difference("number", *each) for each in _lost_numbers(source, translation)]
    missing += lost
    extra = [Difference(*each, "extra") for each in _beyond(found, wanted)]
    if not lost:  # or else it stands for the lost one
        has_digits = _DIGITS.search(source)
        extra += [
            Difference("number", text, start, "extra")
            for text, start in _lost_numbers(translation, source, max_word=-1)
            if has_digits or _GLUED.match(translation, max(start - 1, 0))
        ]
    if source.count("_") == translation.count("_") == 1:  # before the key of a menu: "Sna_p to"
        missing, extra = (
            [each for each in both if not _WITH_KEY.fullmatch(each.text)]
            for both in (missing, extra)
        )
    if missing or extra:
        return _outer(missing) + _outer(extra)
    values, own = NEXT_VALUE.findall(source), [*NEXT_VALUE.finditer(translation)]
    if len(values) == len(own):  # or some have numbers: %2$s
        for value, match in zip(values, own, strict=True):
            if value != match.group():
                return [Difference("placeholder", match.group(), match.start(), "moved")]
    return [] if _misplaced_tags(source) else _misplaced_tags(translation)


def keeps_items(source: str, translation: str) -> bool:
    """Whether there are no `differences`."""
    return not differences(source, translation)


def has_wrong_number(source: str, translation: str) -> bool:
    """Whether the translation lacks a number, or has one that the source has not."""
    if not any(map(str.isdecimal, source + translation)):
        return False
    return any(each.kind == "number" for each in differences(source, translation))


def _find(text: str) -> dict[tuple[str, str], list[re.Match[str]]]:
    """The items of each kind, by what must be the same."""
    found = defaultdict(list)
    if _FORMS.search(text):
        text = _BRANCH.sub(lambda branch: " " * len(branch[0]), text)
    for row in PATTERNS:
        for match in row.pattern.finditer(text) if row.is_compared else ():
            item = match.group()
            found[row.kind, _POSITION.sub("", item) if item[0] == "%" else item].append(match)
    return found


def _beyond(
    found: Mapping[tuple[str, str], Sequence[re.Match[str]]],
    other: Mapping[tuple[str, str], Sequence[re.Match[str]]],
) -> Iterator[tuple[str, str, int]]:
    """Kind, text and place of the items that another text has not, or less often."""
    for key, matches in found.items():
        for match in matches[len(other.get(key, ())) :]:
            yield key[0], f"{match.group()}{'>' if key[0] == 'tag' else ''}", match.start()


def _outer(found: Sequence[Difference]) -> list[Difference]:
    """In the order of the text, and without those inside of others: a number in an address."""
    outer: list[Difference] = []
    for each in sorted(found, key=lambda each: (each.start, -len(each.text))):
        if not outer or each.start >= outer[-1].start + len(outer[-1].text):
            outer.append(each)
    return outer


def _lost_numbers(
    source: str, translation: str, max_word: int = MAX_WORD
) -> Iterator[tuple[str, int]]:
    """max_word: no whole number up to it is lost."""
    source, translation = (
        _ORDER.sub(lambda order: " " * len(order[0]), text) for text in (source, translation)
    )
    if not (numbers := [*_NUMBER.finditer(source)]):
        return
    translation = unicodedata.normalize("NFKC", translation)
    written, parts = _SEPARATOR.sub("", translation), {*map(int, _DIGITS.findall(translation))}
    if _HALF_DAY.search(source) or _HALF_DAY.search(translation):
        parts |= {(part + 12) % 24 for part in parts if part < 24}
    has_myriads = _MYRIADS.search(source + translation)
    for match in numbers:
        number = unicodedata.normalize("NFKC", match.group())
        groups = _DIGITS.findall(number)
        digits = "".join(groups)
        shortest = digits.rstrip("0") if has_myriads else digits
        if len(groups) == 2 and groups[1] == "00":  # "4:00" may become "4"
            del groups[1]
        lost = [int(group) for group in groups if int(group) not in parts]
        # The month of a date may become a word.
        is_date = len(groups) == 3 and max(map(len, groups)) == 4
        is_written = (len(digits) > 2 or has_myriads) and shortest in written
        is_kept = is_written or not lost or (is_date and len(lost) == 1 and lost[0] <= 12)
        is_small = number.isdecimal() and int(groups[0]) <= max_word
        if not is_kept and not is_small:
            yield match.group(), match.start()


def _misplaced_tags(text: str) -> list[Difference]:
    """The first tag that closes another one than the last that is open. A name that no tag closes,
    such as br, stands alone.
    """
    tags = [*_TAG.finditer(text)]
    closed = {tag[2] for tag in tags if tag[1]}
    is_open: list[str] = []
    for tag in tags:
        if tag[1] and tag[2] != (is_open.pop() if is_open else None):
            return [Difference("tag", tag.group(), tag.start(), "misplaced")]
        if tag[2] in closed and not tag[1] and not tag[3]:
            is_open.append(tag[2])
    return []
