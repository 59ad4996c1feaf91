"""What must be the same in a source and its translation: placeholders, tags, addresses, numbers."""

import re
import unicodedata
from collections import Counter

# Each is compared by itself: a placeholder in an address counts in both.
_PATTERNS = [
    re.compile(pattern)
    for pattern in (
        r"\{\s*[^\s{},]*\s*\}",  # {name}, {0:.2f}, ${x}, and {{ x }} inside its outer braces
        r"\{%.*?%\}",
        r"\[[A-Z\d_]+\]|%[A-Z_]{2,}%|\\[nrt](?![A-Za-z])",  # [NAME], %NAME%, and \n as two signs
        # %s, %1$d, %(name)s, %1; but "100%ig" and "5 %ige" are no placeholders
        r"(?<![\d%])(?<!\d\s)%(?:\(\w+\)|\d+\$)?[-+#0]*[\d*]*(?:\.\d+)?[hlqjzt]*"
        r"[diouxXeEfFgGcrsp@]",
        r"(?<![\d%])%\d+(?![\w$])",
        r"(?<!\w)\$[A-Za-z_]\w*",  # $name
        r"</?[A-Za-z0-9][\w:.-]*(?=[\s/>])(?=[^<>]*>)",  # <b>, </b>, <a href="...">: their names
        r"&(?:[A-Za-z]\w*|#\w+);",
        r"\w+://[^\s<>\"')\]]*[\w/]",
        r"\bwww\.[\w.-]+\w",
        r"[\w.+-]+@[\w-]+\.[\w.-]*\w",
        r"(?<![\w&/])[@#][A-Za-z_]\w*",
        r"(?<![\w.@/-])[\w-]{2,}(?:\.[a-z]{2,5})+(?!\.?\w)",  # example.org, list.txt
        r"(?<!\w)[A-Za-z]:\\[^\s<>\"]*\w",  # C:\list.txt
        r"(?<!\S)~?/\w[\w.-]*/[\w./-]*\w",
        "[\U0001f000-\U0001faff\u2600-\u27bf]",  # emoji
    )
]
_POSITION = re.compile(r"\d+\$")  # of an argument: the order may change
_NUMBER = re.compile(r"\d+(?:[.,:/'’-]\d+)*")
_SEPARATOR = re.compile(r"(?<=\d)[\s.,:/'’-](?=\d)")
_MYRIADS = re.compile("[万萬億亿만억]")  # Chinese, Japanese and Korean write 10万 for 100,000
MAX_WORD = 12  # larger numbers are seldom written as words


def keeps_items(source: str, translation: str) -> bool:
    """Whether the translation has the placeholders, tags and addresses of the source and no others,
    and its numbers.

    Numbers are compared by their digits: "1,250" may become "1.250", and the parts of a date may
    change places. Whole numbers up to `MAX_WORD` may become words. The translation may have other
    numbers ("two thousand" -> "2000").
    """
    found = [_find(text) for text in (source, translation)]
    return found[0] == found[1] and _keeps_numbers(source, translation)


def _find(text: str) -> Counter[str]:
    return Counter(
        _POSITION.sub("", item) if item[0] == "%" else item
        for pattern in _PATTERNS
        for item in pattern.findall(text)
    )


def _keeps_numbers(source: str, translation: str) -> bool:
    source, translation = (unicodedata.normalize("NFKC", text) for text in (source, translation))
    written, parts = _SEPARATOR.sub("", translation), {*map(int, re.findall(r"\d+", translation))}
    for number in _NUMBER.findall(source):
        groups = re.findall(r"\d+", number)
        digits = "".join(groups)
        shortest = digits.rstrip("0") if _MYRIADS.search(translation) else digits
        if len(groups) == 2 and groups[1] == "00":  # "4:00" may become "4"
            del groups[1]
        is_kept = shortest in written or parts.issuperset(map(int, groups))
        is_small = number.isdecimal() and int(number) <= MAX_WORD
        if not is_kept and not is_small:
            return False
    return True
