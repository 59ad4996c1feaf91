"""Java's resource bundles: `key=value` lines."""

import re
from collections.abc import Iterator
from functools import partial

from nmt.extras.documents.document import Segment, Skipped
from nmt.extras.documents.messages import FORMS, HAS_FORMS, is_text, message
from nmt.extras.texts.marked import Marked

LINE = re.compile(
    r"""^[ \t\f]*+(?: [#!].*+ | (?P<key>(?:[^\\\s=:]++ | \\[\s\S])++) [ \t\f]*+[=:]?[ \t\f]*+
    (?P<value>(?:[^\\\n]++ | \\[\s\S])*+) )""",
    re.VERBOSE | re.MULTILINE,
)
ESCAPED = re.compile(r"\\(?:u([\da-fA-F]{4})|\n[ \t\f]*|(.))")
NAMES = dict(zip("fnrt", "\f\n\r\t", strict=True))
ESCAPES = str.maketrans({char: f"\\{name}" for name, char in NAMES.items()} | {"\\": r"\\"})
HAS_QUOTES = "has quoted braces ('{'); translate it by hand"


def find(text: str) -> Iterator[Segment | Skipped]:
    """The values."""
    write = partial(_written, is_ascii=text.isascii())
    for line in LINE.finditer(text):
        value = ESCAPED.sub(_character, line["value"] or "")
        value = value.encode("utf-16", "surrogatepass").decode(
            "utf-16", "replace"
        )  # of two escapes
        if not is_text(value):
            continue
        if FORMS.search(value) or re.search(r"(?<!')'[{}]", value):
            reason = HAS_FORMS if FORMS.search(value) else HAS_QUOTES
            yield Skipped(line.start("value"), f"{line['key']} {reason}")
            continue
        # In the patterns of MessageFormat, which have arguments, an apostrophe is doubled.
        is_pattern = "''" in value or (re.search(r"\{\d", value) and "'" not in value)
        yield message(
            *line.span("value"),
            Marked(value.replace("''", "'") if is_pattern else value),
            partial(write, is_pattern=bool(is_pattern)),
        )


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return NAMES.get(found[2], found[2]) if found[2] else ""


def _written(value: str, *, is_ascii: bool, is_pattern: bool) -> str:
    """A value as in the file. is_ascii: whether the file has other characters as escapes only."""
    value = value.replace("'", "''") if is_pattern else value
    value = value.translate(ESCAPES)
    value = re.sub(r"\A ", r"\\ ", value)
    return re.sub(r"[^\x00-\x7f]" if is_ascii else r"[^\x00-\uffff]", _escape, value)


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
