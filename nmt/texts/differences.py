"""In what a translation differs from its source: placeholders, tags, addresses, numbers."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nmt.texts.patterns import CONVERSION, FORMS, GROUPED, MINUS, NEXT_VALUE, ONE_NUMBER, PATTERNS

_FORMS = re.compile(FORMS)  # the words in the inner braces are text
_BRANCH = re.compile(r"(?<=\w)\s*\{[^{}]*\}")
_WITH_KEY = re.compile(r"[^\W_]+_[^\W_]+")
_UNNUMBERED = re.compile(f"%({CONVERSION})")
_TAG = re.compile(r"<(/?)([A-Za-z0-9][\w:.-]*)(?:\s[^<>]*?)?(/?)>")
_ORDER = re.compile(r"%\d+\$")
# The ends of a range with a long dash are numbers of their own, which may become words.
_NUMBER = re.compile(rf"{MINUS}(?:{GROUPED}|{ONE_NUMBER})")
_NEGATIVE = re.compile(
    r"(?:[-−–]|minus|moins|menos|meno|miinus|минус|мінус|マイナス|负|零下)\s?(\d{1,1000})",
    re.IGNORECASE,
)
_BELOW = re.compile("below|unter|sous|bajo|sotto|ниже|нижче|nolla|零下|氷点下", re.IGNORECASE)
_GLUED = re.compile(r"[^\W\d_]\d|[:-]\d")
_DIGITS = re.compile(r"\d{1,1000}")  # Python refuses to read longer ones as a number
_SEPARATOR = re.compile(r"(?<=\d)[\s.,:/'’٬٫-](?=\d)")
_HALF_DAY = re.compile(r"\d\s?[ap]\.?\s?m\b", re.IGNORECASE)  # 2:30 p.m. is 14:30
_MYRIADS = re.compile("[万萬億亿만억]")  # Chinese, Japanese and Korean write 10万 for 100,000
MAX_WORD = 12  # larger numbers are seldom written as words
MAX_MYRIADS = 10_000  # characters of a text with 万 whose numbers are compared


@dataclass(frozen=True)
class Difference:
    """An item in which a translation differs from its source.

    Attributes:
        kind: placeholder, tag, entity, address, name, file, emoji or number.
        text: as it is written; of a tag without its attributes.
        start: where it begins: if it is missing, in the source, or else in the translation.
        problem: whether it is missing in the translation, is there ("extra") without being in the
            source or ("surplus") more often than there, ("misplaced", of tags) closes what is not
            open, or ("moved") is not in the order of the source.
    """

    kind: str
    text: str
    start: int
    problem: Literal["missing", "extra", "surplus", "misplaced", "moved"] = "missing"


def differences(source: str, translation: str) -> list[Difference]:
    """What a translation lacks of the placeholders, tags, addresses and numbers of its source; then
    what it has too many; if it is nothing of these, the first placeholder that takes the value of
    another one, or the tags that are not well-formed.

    If a placeholder has a number, as %1$s, each is compared with its number, or its place: "%s of
    %d" may become "%2$d: %1$s". Numbers are compared by their digits, and counted: "1,250" may
    become "1.250" or "1 250", and the parts of a date may change places. Whole numbers up to
    `MAX_WORD` may become words. If the source has no digits at all, the translation may have
    numbers ("two thousand" -> "2000"), but not glued to words.
    """
    numbered = _ORDER.search(source + translation) is not None
    wanted, found = _find(source, numbered=numbered), _find(translation, numbered=numbered)
    lost = [*_lost_numbers(source, translation)]
    missing, extra = [*_beyond(wanted, found), *lost], [*_beyond(found, wanted)]
    if not lost:  # or else it stands for the lost one
        has_digits = _DIGITS.search(source)
        extra += (
            each
            for each in _lost_numbers(translation, source, max_word=-1)
            if has_digits or _GLUED.match(translation, max(each.start - 1, 0))
        )
    if source.count("_") == translation.count("_") == 1:  # before the key of a menu: "Sna_p to"
        missing, extra = (
            [each for each in both if not _WITH_KEY.fullmatch(each.text)]
            for both in (missing, extra)
        )
    if missing or extra:
        return _outer(missing) + [
            replace(each, problem="surplus" if each.text in source else "extra")
            for each in _outer(extra)
        ]
    values, own = NEXT_VALUE.findall(source), [*NEXT_VALUE.finditer(translation)]
    moved = [each for value, each in zip(values, own, strict=False) if value != each.group()]
    if moved and len(values) == len(own):  # or some have numbers: %2$s
        return [Difference("placeholder", moved[0].group(), moved[0].start(), "moved")]
    return [] if _misplaced_tags(source) else _misplaced_tags(translation)


def has_wrong_number(source: str, translation: str) -> bool:
    """Whether the translation lacks a number, or has one that the source has not."""
    if not any(map(str.isdecimal, source + translation)):
        return False
    return any(each.kind == "number" for each in differences(source, translation))


def _find(text: str, *, numbered: bool) -> dict[tuple[str, str], list[re.Match[str]]]:
    """The items of each kind, by what must be the same. numbered: %s counts as %1$s."""
    if _FORMS.search(text):
        text = _BRANCH.sub(lambda branch: " " * len(branch[0]), text)
    rows = [row for row in PATTERNS if row.is_compared]
    all_items = [(row.kind, match) for row in rows for match in row.pattern.finditer(text)]
    found = defaultdict(list)
    n_values = 0
    for kind, match in sorted(all_items, key=lambda item: item[1].start()):
        form = match.group()
        if numbered and (unnumbered := _UNNUMBERED.fullmatch(form)):
            n_values += 1
            form = f"%{n_values}${unnumbered[1]}"
        found[kind, form].append(match)
    return found


def _beyond(
    found: Mapping[tuple[str, str], Sequence[re.Match[str]]],
    other: Mapping[tuple[str, str], Sequence[re.Match[str]]],
) -> Iterator[Difference]:
    """The items that another text has not, or less often."""
    for key, matches in found.items():
        for match in matches[len(other.get(key, ())) :]:
            text = f"{match.group()}{'>' if key[0] == 'tag' else ''}"
            yield Difference(key[0], text, match.start())


def _outer(found: Sequence[Difference]) -> list[Difference]:
    """In the order of the text, and without those inside of others: a number in an address."""
    outer: list[Difference] = []
    for each in sorted(found, key=lambda each: (each.start, -len(each.text))):
        if not outer or each.start >= outer[-1].start + len(outer[-1].text):
            outer.append(each)
    return outer


def _lost_numbers(source: str, translation: str, max_word: int = MAX_WORD) -> Iterator[Difference]:
    """The numbers that a translation has not, or less often. max_word: no whole number up to it is
    lost; no other one up to `MAX_WORD` is counted.
    """
    source, translation = (
        _ORDER.sub(lambda order: " " * len(order[0]), text) for text in (source, translation)
    )
    numbers = [*_NUMBER.finditer(source)]
    has_myriads = _MYRIADS.search(source + translation) is not None
    if not numbers or (has_myriads and max(len(source), len(translation)) > MAX_MYRIADS):
        return
    has_half_days = _HALF_DAY.search(source) or _HALF_DAY.search(translation)
    found = _Numbers(translation, has_half_days=bool(has_half_days), has_myriads=has_myriads)
    for match in numbers:
        if not found.take(_plain_digits(match.group()), max_word):
            yield Difference("number", match.group(), match.start())


class _Numbers:
    """The numbers of a text, each as often as it is there.

    Attributes:
        wholes: by their digits. parts: the values of what signs divide: 12 and 500 of "12,500".
        values: of all parts. negative: of those after a minus sign, or the word for it.
    """

    def __init__(self, text: str, *, has_half_days: bool, has_myriads: bool) -> None:
        text = _plain_digits(text)
        self.has_myriads, self.is_below = has_myriads, _BELOW.search(text) is not None
        self.written = _SEPARATOR.sub("", _MYRIADS.sub("", text))
        self.wholes = Counter("".join(_DIGITS.findall(each[0])) for each in _NUMBER.finditer(text))
        self.wholes |= Counter(_DIGITS.findall(self.written))
        self.parts = Counter(map(int, _DIGITS.findall(text)))
        if has_half_days:
            hours = [part for part in self.parts if part < 24]
            self.parts.update({(hour + 12) % 24: self.parts[hour] for hour in hours})
        self.values, self.negative = {*self.parts}, {*map(int, _NEGATIVE.findall(text))}

    def take(self, number: str, max_word: int) -> bool:
        """Whether a number is there once more, or may stand there as a word. It is then gone."""
        groups = _DIGITS.findall(number)
        digits = "".join(groups)
        first = int(groups[0])
        if len(groups) == 2 and groups[1] == "00":  # "4:00" may become "4"
            del groups[1]
        own = Counter(map(int, groups))
        lost = own - self.parts
        # The month of a date may become a word.
        is_date = len(groups) == 3 and max(map(len, groups)) == 4
        is_month = is_date and lost.total() == 1 and min(lost) <= 12
        is_whole = self.wholes[digits] > 0 and len(digits) > 2
        is_whole = is_whole or (self.has_myriads and digits.rstrip("0") in self.written)
        is_uncounted = first <= MAX_WORD and first in self.values
        is_small = number.isdecimal() and (first <= max_word or is_uncounted)
        self.wholes[digits] -= 1
        self.parts -= own
        if number[0] in "-−" and first not in self.negative and not self.is_below:
            return False
        return is_whole or not lost or is_month or is_small


def _plain_digits(text: str) -> str:
    """With the digits of all scripts as 0 to 9; raised ones are none of the number before them."""
    text = unicodedata.normalize("NFKC", re.sub("[⁰¹²³⁴-⁹₀-₉]", " ", text))
    return re.sub(r"[^\x00-\x7f]", lambda sign: str(unicodedata.decimal(sign[0], sign[0])), text)


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
