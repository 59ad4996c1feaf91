"""XML of any kind, a whole file or a part of one: which tags stand inside a sentence is seen from
the text around them.
"""

import re
from collections.abc import Collection, Iterator
from itertools import chain
from xml.sax.saxutils import escape

from nmt.errors import FormatError
from nmt.extras.documents.document import Segment, stripped
from nmt.extras.documents.markup import (
    Kind,
    Piece,
    Tag,
    blocks,
    elements,
    kind_in_section,
    marked_of,
    tags,
    without_sections,
)

DECLARATION = re.compile(r"(?:\s*<\?xml[^<>]*>)?")
# What is no text; of a section, all is.
REMARKS = re.compile(r"<!\[CDATA\[(.*?)\]\]>|<!--.*?-->|<\?.*?\?>", re.DOTALL)
ROOT = "<t>"  # around a text, which may have several elements


def find(
    text: str,
    *,
    ignored: Collection[str] = (),
    borders: Collection[str] = (),
    inline: Collection[str] = (),
) -> Iterator[Segment]:
    """The texts between borders. A tag is one unless the element around it has text of its own, or
    stands inside a text itself.

    Args:
        ignored: names of elements that stay as they are, as a word of the text around.
        borders: names of tags that always are borders. inline: that never are.

    Raises:
        ExpatError: the text is not well-formed.
        FormatError: it has a DOCTYPE, which may define entities, or is nested too deeply.
    """
    if "<!DOCTYPE" in text:
        raise FormatError("line 1: XML with a DOCTYPE, which may define entities; leave it out")
    first = len(DECLARATION.match(text)[0])  # type: ignore[index]
    text = f"{text[:first]}{ROOT}{text[first:]}</{ROOT[1:]}"
    places: dict[int, Tag] = {}
    holders = set[Tag]()  # of texts
    inside = set[Tag]()  # a text
    for tag in sorted(elements(text), key=lambda each: each.start):
        places |= (
            {tag.start: tag}
            if tag.attributes.endswith("/")
            else dict.fromkeys((tag.start, tag.inner_end), tag)
        )
        if tag.name in inline or (tag.parent in holders and tag.name not in borders):
            inside.add(tag)
        if tag in inside or _has_text(text, tag):
            holders.add(tag)

    def kind_of(tag: Tag) -> tuple[Kind | None, str, bool]:
        element, name = places.get(tag.start), tag.name.lstrip("/")
        if element is None or element in inside or name in ignored:
            kind, *_ = kind_in_section(tag)
            is_item = name in ignored or (kind == "empty" and name)
            return "item" if is_item else kind, name, name in ignored
        return None, name, False

    found = [tag for tag in tags(text) if not text.startswith("<![CDATA[", tag.start)]
    for _, pieces in blocks(found, 0, len(text), kind_of):
        yield from _segment(text, pieces)


def _has_text(text: str, element: Tag) -> bool:
    """Whether an element has text outside of those inside it."""
    inner = ((each.start, each.outer_end) for each in element.children)
    borders = [element.end, *chain.from_iterable(inner), element.inner_end]
    own = (text[start:end] for start, end in zip(borders[::2], borders[1::2], strict=True))
    return bool(REMARKS.sub(r"\1", "".join(own)).strip())


def _segment(text: str, pieces: list[Piece]) -> Iterator[Segment]:
    marked, start, end = marked_of(text, pieces, without_sections, keeps_space=True)
    before, body, after = stripped(marked)
    if any(map(str.isalpha, body.text)):
        yield Segment(
            start - len(ROOT),
            end - len(ROOT),
            body,
            lambda translation: f"{before}{translation.escaped(escape)}{after}",
        )
