"""Android's string resources."""

import re
from collections.abc import Iterator
from functools import partial
from xml.sax.saxutils import escape

from nmt.extras.documents.document import FormatError, Segment
from nmt.extras.documents.messages import Kind, is_text, message
from nmt.extras.documents.xml import TOKEN, Element, body_of, elements, marked

PARENTS = {"string": {"resources"}, "item": {"plurals", "string-array"}}
REFERENCE = re.compile(r"[@?][\w.:+*-]*/[\w.]+")
# White space around a text, also as escapes.
EDGE = r"(?:\s|\\n|\\t|\\u00(?:20|[aA]0))*"
EDGES = re.compile(rf"({EDGE}).*?(?<!\\)({EDGE})", re.DOTALL)
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
# The tags of HTML in a CDATA section.
HTML = re.compile(
    r"<(?P<close>/?)(?P<tag>[A-Za-z][\w:-]*)(?P<attributes>[^<>]*?)(?P<empty>/?)>"
    r"|(?P<cdata>[^<]+|<)|(?P<text>(?!))|(?P<entity>(?!))"
)
VOID = {"br", "hr", "img"}
ESCAPED = re.compile(r'\\(?:u([\da-fA-F]{4})|(.))|(\s+)|"', re.DOTALL)
NAMES = {"n": "\n", "t": "\t"}
ESCAPES = str.maketrans({"\\": r"\\", "'": r"\'", '"': r"\"", "\n": r"\n", "\t": r"\t"})


def find(text: str) -> Iterator[Segment]:
    """The strings, forms of plurals and items of arrays."""
    for element in elements(text):
        if element.parent is None:
            if element.name != "resources":
                raise FormatError("line 1: is XML, but has no string resources of Android")
        elif element.parent.name in PARENTS.get(element.name, ()):
            segment = _value(text, element)
            if segment and not element.inherits("translatable", "false"):
                yield segment


def _value(text: str, element: Element) -> Segment | None:
    start, end, is_section = body_of(text, element)
    # Quotation marks around all of it keep its white space.
    is_quoted = QUOTED.fullmatch(text, start, end) is not None
    edges = EDGES.fullmatch(text, start + is_quoted, end - is_quoted)
    if edges is None or REFERENCE.fullmatch(text, start, end):
        return None
    start, end = edges.end(1), edges.start(2)
    pattern = HTML if is_section else TOKEN
    content = marked(text, start, end, _kind, partial(_decoded, is_quoted=is_quoted), pattern)
    if not is_text(content.text):
        return None
    return message(
        start,
        end,
        content,
        lambda translation: re.sub(r"\A[@?]", r"\\\g<0>", translation),
        escape=lambda part: (
            part.translate(ESCAPES) if is_section else escape(part.translate(ESCAPES))
        ),
    )


def _kind(element: Element) -> tuple[Kind, bool]:
    """Whether a tag opens or closes something, stands between words, or for one."""
    token = element.token
    if token["tag"] == "xliff:g":
        return "item", True
    if token["empty"] or token["tag"] in VOID:
        return "empty", False
    return "close" if token["close"] else "open", False


def _decoded(raw: str, *, is_quoted: bool) -> str:
    def char(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        if found[3]:
            return found[3] if is_quoted else " "
        return NAMES.get(found[2], found[2]) if found[2] else ""

    return ESCAPED.sub(char, raw)
