"""XLIFF 1.2 and 2.0: pairs of source and target."""

import re
from collections.abc import Iterator
from functools import partial
from xml.sax.saxutils import escape

from nmt.extras.documents.document import FormatError, Segment, Skipped
from nmt.extras.documents.messages import FORMS, HAS_FORMS, Kind, message
from nmt.extras.documents.xml import Element, body_of, elements, marked
from nmt.extras.texts.marked import Marked

UNITS = ("trans-unit", "segment")  # of version 1 and 2
PAIRS = {"g", "mrk", "pc"}  # elements with text
OPEN, CLOSE = {"bpt", "bx", "sc"}, {"ept", "ex", "ec"}
UNTRANSLATED = {"new", "needs-translation", "initial"}
STATE = re.compile(r"""\s(?:state|state-qualifier|subState)\s*=\s*(?:"[^"]*"|'[^']*')""")
NO_LANGUAGE = "has no trgLang, which a file with targets needs; add it"


def find(text: str) -> Iterator[Segment | Skipped]:
    """The sources of units; a target is marked as one to review."""
    for element in elements(text):
        if element.parent is None:
            if element.name != "xliff":
                raise FormatError("line 1: is XML, but no XLIFF")
            has_language = element.attributes.keys() & {"trgLang"}
            if element.attributes.get("version", "").startswith("2") and not has_language:
                yield Skipped(element.start, NO_LANGUAGE)
        is_unit = element.name in UNITS and "source" in element.children
        if is_unit and not element.inherits("translate", "no"):
            segment = _unit(text, element)
            if isinstance(segment, Skipped) or segment.text != Marked(""):
                yield segment


def _unit(text: str, unit: Element) -> Segment | Skipped:
    source, target = unit.children["source"], unit.children.get("target")
    inner, inner_end, is_section = body_of(text, source)
    content = _content(text, source)
    if FORMS.search(content.text):
        return Skipped(source.start, HAS_FORMS)
    present = Marked("") if target is None else _content(text, target)
    states = [each.attributes.get("state") for each in (target, unit) if each is not None]
    if present == content and not UNTRANSLATED.isdisjoint(states):
        present = Marked("")
    prefix = source.token["tag"].removesuffix("source")
    before = f"<{prefix}target"
    if target is None:
        start = end = unit.children.get("seg-source", source).end
        indent = text[text.rfind(">", 0, source.start) + 1 : source.start]
        before = indent + before if indent.isspace() else before
    else:
        start, end = target.start, target.end
        before += STATE.sub("", target.token["attributes"].rstrip())
    if unit.name == "segment":
        tag = unit.token["tag"] + STATE.sub("", unit.token["attributes"].rstrip())
        before = f'<{tag} state="translated">{text[unit.inner : start]}{before}>'
        start = unit.start
    else:
        before += ' state="needs-review-translation">'
    before += text[source.inner : inner]
    after = f"{text[inner_end : source.inner_end]}</{prefix}target>"
    return message(
        start,
        end,
        content,
        lambda translation: f"{before}{translation}{after}",
        present,
        str if is_section else escape,
    )


def _content(text: str, element: Element) -> Marked:
    start, end, is_section = body_of(text, element)
    if is_section:
        return Marked(text[start:end])
    keeps_lines = element.inherits("xml:space", "preserve")
    decode = str if keeps_lines else partial(re.sub, r"\s*\n\s*", " ")
    return marked(text, start, end, _kind, decode)


def _kind(element: Element) -> tuple[Kind, bool]:
    """Whether a tag opens or closes something, stands between words, or for one."""
    name, token, own = element.name, element.token, element.attributes
    number = own.get("id", "")  # Angular: START_LINK, CLOSE_LINK, LINE_BREAK
    is_kept = own.get("translate") == "no" or own.get("mtype") == "protected"
    if name in PAIRS and not is_kept:
        return ("close" if token["close"] else "empty" if token["empty"] else "open"), False
    if name in OPEN or number.startswith("START_"):
        return "open", True
    if name in CLOSE or number.startswith("CLOSE_"):
        return "close", True
    is_break = number.startswith("LINE_BREAK") or own.get("ctype") == "lb"
    return ("empty" if is_break or own.get("subType") == "xlf:lb" else "item"), True
