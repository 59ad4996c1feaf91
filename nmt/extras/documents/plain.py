"""Plain text: each line is a text."""

import re
from collections.abc import Iterator

from nmt.extras.documents.document import Segment
from nmt.extras.texts.marked import Marked


def find(text: str) -> Iterator[Segment]:
    """The lines, without the white space around them."""
    for match in re.finditer(r"\S[^\n]*(?<=\S)", text):
        yield Segment(match.start(), match.end(), Marked(match[0]), lambda line: line.text)
