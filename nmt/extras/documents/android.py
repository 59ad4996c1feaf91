"""Android's string resources."""

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

from nmt.errors import FormatError
from nmt.extras.documents.document import Segment, Skipped
from nmt.extras.documents.markup import Kind, Tag, body_of, content_of, elements, kind_in_section
from nmt.extras.documents.messages import escapes, is_text, message, unescaped

PARENTS = {"string": {"resources"}, "item": {"plurals", "string-array"}}
REFERENCE = re.compile(r"[@?][\w.:+*-]*/[\w.]+")
# White space, also as escapes; or something else.
TOKEN = re.compile(r"(\s+|\\n|\\t|\\u00(?:20|[aA]0))|\\.|[^\\\s]+|\\", re.DOTALL)
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
ESCAPES = escapes({"n": "\n", "t": "\t", "'": "'", '"': '"'})


def find(text: str) -> Iterator[Segment | Skipped]:
    """The strings, forms of plurals and items of arrays."""
    for element in elements(text):
        if element.parent is None:
            if element.local != "resources":
                raise FormatError("line 1: is XML, but has no string resources of Android")
        elif element.parent.name in PARENTS.get(element.name, ()):
            segment = _value(text, element)
            if segment and not element.inherits("translatable", "false"):
                yield segment


def _value(text: str, element: Tag) -> Segment | Skipped | None:
    start, end, is_section = body_of(text, element)
    # Quotation marks around all of it keep its white space.
    is_quoted = QUOTED.fullmatch(text, start, end) is not None
    tokens = TOKEN.finditer(text, start + is_quoted, end - is_quoted)
    words = [token.span() for token in tokens if not token[1]]
    if not words or REFERENCE.fullmatch(text, start, end):
        return None
    body = words[0][0], words[-1][1], is_section
    content = content_of(
        text,
        body,
        _kind,
        lambda raw: unescaped(re.sub(r'(\\.)|"', r"\1", raw)),
        keeps_space=is_quoted,
    )
    if not is_text(content.text):
        return None
    return message(
        *body[:2],
        content,
        lambda translation: re.sub(r"\A[@?]", r"\\\g<0>", translation),
        escape=lambda part: (
            part.translate(ESCAPES) if is_section else escape(part.translate(ESCAPES))
        ),
    )


def _kind(tag: Tag) -> tuple[Kind | None, str, bool]:
    """As `blocks` asks for it."""
    if tag.name == "xliff:g" or tag.is_entity:
        return "item", "", not tag.is_entity
    return kind_in_section(tag)
