"""Java's resource bundles: `key=value` lines."""

import json
import re
from collections.abc import Iterator
from functools import partial

from nmt.extras.documents.document import Segment, Skipped
from nmt.extras.documents.messages import NAMES, escapes, is_text, message, unescaped
from nmt.text.accelerators import Words
from nmt.texts.marked import Marked

LINE = re.compile(
    r"""^[ \t\f]*+(?: [#!].*+ | (?P<key>(?:[^\\\s=:]++ | \\[\s\S])++) [ \t\f]*+[=:]?[ \t\f]*+
    (?P<value>(?:[^\\\n]++ | \\[\s\S])*+) )""",
    re.VERBOSE | re.MULTILINE,
)
ESCAPES = escapes(NAMES)


def find(text: str) -> Iterator[Segment | Skipped]:
    """The values."""
    is_ascii, words = text.isascii(), Words(text)
    for line in LINE.finditer(text):
        value = unescaped(line["value"] or "")
        if not is_text(value):
            continue
        if re.search(r"(?<!')'[{}]", value):
            yield Skipped(
                line.start("value"),
                f"{line['key']} has quoted braces ('{{'); translate it by hand",
            )
            continue
        # In the patterns of MessageFormat, which have arguments, an apostrophe is doubled.
        is_pattern = "''" in value or (re.search(r"\{\d", value) and "'" not in value)
        content = Marked(value.replace("''", "'") if is_pattern else value)
        write = partial(_written, is_ascii=is_ascii, is_pattern=bool(is_pattern))
        yield message(*line.span("value"), content, write, name=line["key"], words=words)


def _written(value: str, *, is_ascii: bool, is_pattern: bool) -> str:
    """A value as in the file. is_ascii: whether the file has other characters as escapes only."""
    value = value.replace("'", "''") if is_pattern else value
    value = re.sub(r"\A ", r"\\ ", value.translate(ESCAPES))
    to_escape = r"[^\x00-\x7f]" if is_ascii else r"[^\x00-\uffff]"
    return re.sub(to_escape, lambda found: json.dumps(found[0])[1:-1], value)
