"""What the messages of programs have in common, in whichever file they stand."""

import re
from collections.abc import Callable, Mapping

from nmt.extras.documents.document import Segment, Skipped
from nmt.texts.marked import Marked
from nmt.texts.patterns import FORMS

HAS_FORMS = re.compile(rf"{FORMS}|\{{\s*[\w.$-]+\s*,\s*choice\s*,")
# Values without text: colors, addresses, paths, names of files and keys, locales, dates such as
# "DD.MM.YYYY", and half a surrogate pair.
NO_TEXT = re.compile(
    r"""[#][\da-fA-F]{3,8}|rgba?\(.*|[a-z][a-z\d+.-]*:\S+|(?:[.~]{0,2}/|\.)\w\S*|[^\s\\_@]*[\\_@]\S*
    |[a-z\d]+(?:[-./:][a-z\d]+)+|[\w-]+(?:/[\w.-]+)*\.[a-z]{2,5}|[a-z]{2,3}-[A-Z]{2}
    |[a-z]+[A-Z][A-Za-z\d]*|\d\S*|(?=.*(?:yy|YY|MM|dd|DD|HH|hh|mm))(?:([A-Za-z])\1*(?![A-Za-z])
    [^A-Za-z]*)+|.*[\ud800-\udfff].*""",
    re.VERBOSE | re.DOTALL,
)
# The letter after it opens a menu: "_File", "E_xit", "&File"; not "user_id", "R&D", "&amp;".
ACCELERATOR = re.compile(
    r"""(?<![^\s(“-])(?:([_&])(?=[^\W_])|[A-Z][a-z]*([_&])(?=[a-z]))(?!\w*[;_=])""",
    re.VERBOSE,
)
# The first letter of a text that stands in no tag and no placeholder.
FIRST_LETTER = re.compile(r"<[^<>]*>|%\(?\w+|\{[^{}]*\}|&\w+;|([^\W\d_])")
ESCAPED = re.compile(r"\\(?:u([\da-fA-F]{4})|\n[ \t\f]*|(.))")
NAMES = dict(zip("fnrt", "\f\n\r\t", strict=True))
# Vue, Symfony and Laravel write forms of plurals as "one file | {n} files". Each is translated by
# itself: an empty line takes the place of the "|". Braces may hold one, too.
SIDES = re.compile(r"\{[^{}]*\}|\|\||(\|)")


def is_text(value: str) -> bool:
    """Whether a value has letters, and is for people."""
    return any(map(str.isalpha, value)) and not NO_TEXT.fullmatch(value.strip())


def without_accelerator(text: str) -> tuple[str, str]:
    """A text without the mark of its accelerator, and this mark, or ""."""
    found = [*ACCELERATOR.finditer(text)]
    mark = (found[0][1] or found[0][2]) if len(found) == 1 else ""
    if mark and text.replace("&&", "").count(mark) != 1:
        mark = ""
    return (text.replace(mark, "", 1) if mark else text).replace("&&", "&"), mark


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
    has_accelerators: bool = True,
) -> Segment | Skipped:
    """The segment of a text without the white space around it and the mark of its accelerator.

    Args:
        write: from the whole text, with its markup, to what stands in the file.
        escape: for the characters of the text. name: of the message, for remarks.
    """
    if HAS_FORMS.search(text.text):
        return Skipped(
            start, f"{name} has plural or select forms in braces; translate it by hand".lstrip()
        )
    if text.marks:
        return Segment(start, end, text, lambda other: write(other.escaped(escape)), target)
    body = text.text.strip()
    lead, _, tail = text.text.partition(body) if body else (text.text, "", "")
    source, letter = without_accelerator(body) if has_accelerators else (body, "")
    sides = SIDES.sub(lambda found: "\n\n" if found[1] else found[0], source)
    has_sides = "\n" not in source and sides != source

    def written(translation: Marked) -> str:
        content = translation.written
        if has_accelerators and "&&" in body:
            content = content.replace("&", "&&")
        content = content.replace("\n\n", "|") if has_sides else content
        first = next((each for each in FIRST_LETTER.finditer(content) if each[1]), None)
        if letter and first:
            content = content[: first.start()] + letter + content[first.start() :]
        return write(escape(f"{lead}{content}{tail}"))

    return Segment(start, end, Marked(sides if has_sides else source), written, target)
