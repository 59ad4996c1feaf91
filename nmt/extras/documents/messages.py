"""What the messages of programs have in common, in whichever file they stand."""

import re
from collections.abc import Callable, Mapping

from nmt.extras.documents.document import Segment, Skipped
from nmt.text.accelerators import (
    Words,
    split_accelerator,
    with_accelerator,
    without_accelerators,
)
from nmt.texts.marked import Marked
from nmt.texts.patterns import FORMS

HAS_FORMS = re.compile(rf"{FORMS}|\{{\s*[\w.$-]+\s*,\s*choice\s*,")
# Values without text: colors, addresses, paths, names of files, classes and keys, single letters,
# locales, dates such as "DD.MM.YYYY", and half a surrogate pair.
NO_TEXT = re.compile(
    r"""[#][\da-fA-F]{3,8}|rgba?\(.*|[a-z][a-z\d+.-]*:\S+|(?:[.~]{0,2}/|\.)\w\S*|[^\s\\_@]*[\\_@]\S*
    |[a-z\d]+(?:[-./:][a-z\d]+)+|[\w-]+(?:/[\w.-]+)*\.[a-z]{2,5}|[a-z]{2,3}-[A-Z]{2}
    |[a-z]+[A-Z][A-Za-z\d]*|[a-z\d]+(?:\.[A-Za-z]\w*)+|[A-Za-z]|true|false|null|\d\S*
    |(?=.*(?:yy|YY|MM|dd|DD|HH|hh|mm))(?:([A-Za-z])\1*(?![A-Za-z])
    [^A-Za-z]*)+|.*[\ud800-\udfff].*""",
    re.VERBOSE | re.DOTALL,
)
ESCAPED = re.compile(r"\\(?:u([\da-fA-F]{4})|\n[ \t\f]*|(.))")
NAMES = dict(zip("fnrt", "\f\n\r\t", strict=True))
# Vue, Symfony and Laravel write forms of plurals as "one file | {n} files". Each is translated by
# itself: an empty line takes the place of the "|". Braces may hold one, too.
SIDES = re.compile(r"\{[^{}]*\}|\|\||(\|)")


def is_text(value: str) -> bool:
    """Whether a value has letters, and is for people."""
    return any(map(str.isalpha, value)) and not NO_TEXT.fullmatch(value.strip())


def unescaped(raw: str, names: Mapping[str, str] = NAMES) -> str:
    """Without backslashes: `\\n`, `\\u00e4`, `\\'`, also at the end of a line."""

    def character(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        return names.get(found[2], found[2]) if found[2] else ""

    text = ESCAPED.sub(character, raw)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # of two escapes


def escapes(names: Mapping[str, str]) -> dict[int, str]:
    """For `str.translate`: these characters with backslashes, and backslashes."""
    return str.maketrans({char: f"\\{name}" for name, char in names.items()} | {"\\": r"\\"})


def message(
    start: int,
    end: int,
    text: Marked,
    write: Callable[[str], str],
    target: Marked | None = None,
    escape: Callable[[str], str] = str,
    *,
    name: str = "",
    words: Words | None = None,
    is_form: bool = False,
) -> Segment | Skipped:
    """The segment of a text without the white space around it and the mark of its accelerator.

    Args:
        write: from the whole text, with its markup, to what stands in the file.
        escape: for the characters of the text. name: of the message, for remarks.
        words: of a file whose messages may have accelerators.
        is_form: whether it is one of several plural forms.
    """
    if HAS_FORMS.search(text.text):
        return Skipped(
            start, f"{name} has plural or select forms in braces; translate it by hand".lstrip()
        )
    if text.marks:
        return Segment(start, end, text, lambda other: write(other.escaped(escape)), target)
    body = text.text.strip()
    lead, _, tail = text.text.partition(body) if body else (text.text, "", "")
    source, accelerator = (body, "") if words is None else split_accelerator(body, words)
    sides = SIDES.sub(lambda found: "\n\n" if found[1] else found[0], source)
    has_sides = "\n" not in source and sides != source

    def written(translation: Marked) -> str:
        content = translation.written
        if words is not None:  # a model may have learned to write marks
            content = without_accelerators(body, content, words)[1]
            content = content.replace("&", "&&") if "&&" in body else content
        content = content.replace("\n\n", "|") if has_sides else content
        if accelerator:
            content = with_accelerator(content, accelerator)
        return write(escape(f"{lead}{content}{tail}"))

    text = Marked(sides if has_sides else source)
    labelled = None if words is None else body
    return Segment(start, end, text, written, target, labelled, is_form)
