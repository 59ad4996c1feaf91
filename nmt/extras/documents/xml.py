"""Elements of XML and their places in a file."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html import unescape
from xml.parsers import expat

from nmt.extras.documents.document import FormatError
from nmt.extras.documents.messages import Kind, nested
from nmt.extras.texts.marked import Mark, Marked

# In well-formed XML, each character belongs to one of these.
TOKEN = re.compile(
    r"""<!--.*?--> | <\?.*?\?> | <!\[CDATA\[(?P<cdata>.*?)\]\]>
    | <!DOCTYPE(?:[^"'\[>] | "[^"]*" | '[^']*'
      | \[(?:<!--.*?--> | [^"'\]] | "[^"]*" | '[^']*')*\])*>
    | <(?P<close>/?)(?P<tag>[^\s/>]+)
      (?P<attributes>(?:[^"'>/]++ | "[^"]*" | '[^']*')*+)(?P<empty>/?)>
    | &(?P<entity>[^;]+); | (?P<text>[^<&]+)""",
    re.VERBOSE | re.DOTALL,
)
ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
SECTION = re.compile(r"\s*<!\[CDATA\[((?:(?!\]\]>).)*)\]\]>\s*", re.DOTALL)
PREDEFINED = {"amp", "lt", "gt", "quot", "apos"}


@dataclass
class Element:
    """An element.

    Attributes:
        token: its start tag, or in `marked` its end tag.
        parent: the element around it.
        inner_end, end: of its content, and of the whole.
        children: by their names without prefix, the last of each.
        name: without prefix.
    """

    token: re.Match[str]
    parent: "Element | None" = None
    inner_end: int = 0
    end: int = 0
    children: dict[str, "Element"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start, self.inner = self.token.span()
        self.name = self.token["tag"].rpartition(":")[2]

    @cached_property
    def attributes(self) -> dict[str, str]:
        found = ATTRIBUTE.finditer(self.token["attributes"])
        return {each[1]: unescape(each[2] or each[3] or "") for each in found}

    def inherits(self, name: str, value: str) -> bool:
        """Whether the nearest attribute `name`, its own or of an element around it, has a value."""
        element: Element | None = self
        while element is not None and name not in element.attributes:
            element = element.parent
        return element is not None and element.attributes[name] == value


def elements(text: str) -> Iterator[Element]:
    """All elements, at their ends.

    Raises:
        ExpatError: the text is not well-formed.
        FormatError: it defines entities that hold others, or files.
    """
    parser = expat.ParserCreate()

    def refuse(name: str, _parameter: bool, value: str | None, *_: str | None) -> None:
        if value is None or re.search(r"[&%]\w", value):
            line = parser.CurrentLineNumber
            raise FormatError(f"line {line}: entity {name} stands for a file or other entities")

    parser.EntityDeclHandler = refuse
    parser.DefaultHandler = lambda _: None  # it lets entities stand
    parser.Parse(text, True)
    element: Element | None = None
    for token in TOKEN.finditer(text):
        if not token["tag"]:
            continue
        if not token["close"]:
            element = Element(token, element, token.end(), token.end())
        if element is not None and (token["close"] or token["empty"]):
            if token["close"]:
                element.inner_end, element.end = token.span()
            yield element
            if element.parent is not None:
                element.parent.children[element.name] = element
            element = element.parent


def body_of(text: str, element: Element) -> tuple[int, int, bool]:
    """Where the content of an element begins and ends, without white space around it; and whether
    it is all in one CDATA section, whose inside it is.
    """
    section = SECTION.fullmatch(text, element.inner, element.inner_end)
    start, end = section.span(1) if section else (element.inner, element.inner_end)
    content = text[start:end]
    start += len(content) - len(content.lstrip())
    return start, start + len(content.strip()), section is not None


def marked(
    text: str,
    start: int,
    end: int,
    kind_of: Callable[[Element], tuple[Kind, bool]],
    decode: Callable[[str], str] = str,
    pattern: re.Pattern[str] = TOKEN,
) -> Marked:
    """The content of an element.

    Args:
        kind_of: the kind of mark of a tag, and whether it stands for the whole element.
        decode: for the characters between tags.
        pattern: of tags and text, with the groups of `TOKEN`.
    """
    parts, marks, run, length = list[str](), list[Mark](), "", 0
    position = start
    while position < end:
        token = pattern.match(text, position, end)
        assert token is not None  # the text is well-formed
        position = token.end()
        entity = token["entity"] or ""
        is_character = entity in PREDEFINED or entity.startswith("#")
        if token["text"] or token["cdata"] is not None or is_character:
            run += unescape(token[0]) if token["cdata"] is None else token["cdata"]
            continue
        kind: Kind = "item" if entity else "empty"
        if token["tag"]:
            kind, is_whole = kind_of(Element(token))
            if is_whole and not token["empty"]:
                position = _end_of(text, token)
        parts.append(decode(run))
        run, length = "", length + len(parts[-1])
        marks.append(Mark(length, text[token.start() : position], kind))
    parts.append(decode(run))
    return Marked("".join(parts), nested(marks, _is_element))


def _end_of(text: str, token: re.Match[str]) -> int:
    """Where the element of a start tag ends."""
    depth = 0
    for each in TOKEN.finditer(text, token.start()):
        if each["tag"] and not each["empty"]:
            depth += -1 if each["close"] else 1
        if depth == 0:
            return each.end()
    return token.end()


def _is_element(mark: Mark) -> bool:
    """Whether a mark is a whole element, and no tag that has a partner."""
    return mark.written.endswith("/>") or "</" in mark.written[1:]
